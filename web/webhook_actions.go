package web

import (
	"fmt"
	"strconv"
	"time"

	"purser/fault"
	"purser/notify"
	"purser/store/notifications"
	"purser/views/component"
	notifypage "purser/views/page/notifications"
)

func (s *Site) editEndpoint(req *request) (response, error) {
	e, err := pathEndpoint(req)
	if err != nil {
		return response{}, err
	}
	return show(notifypage.EditEndpoint(s.endpointForm(req, storedEndpoint(e)))), nil
}

// storedEndpoint is the form with the stored values.
func storedEndpoint(e notify.Endpoint) notifypage.EndpointForm {
	form := notifypage.EndpointForm{Stored: e, URL: e.URL, Description: e.Description, Scope: notifypage.AllTypes, Revision: strconv.FormatInt(e.Revision, 10)}
	for _, t := range e.Types {
		form.Scope, form.Types = notifypage.SomeTypes, append(form.Types, string(t))
	}
	return form
}

func (s *Site) updateEndpoint(req *request) (response, error) {
	stored, err := pathEndpoint(req)
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	revision, err := f.revision()
	if err != nil {
		return response{}, err
	}
	address, types, description, err := endpointFields(req, f)
	if err != nil {
		return response{}, err
	}
	if f.ok() {
		patch := notify.EndpointPatch{ExpectedRevision: &revision, URL: &address, Types: &types, Description: &description}
		_, err := req.notifications().UpdateEndpoint(req.context, stored.ID, patch, req.app.Live, req.now())
		if fault.Is(err, fault.RevisionConflict) {
			return s.endpointConflict(req, f)
		}
		if err := f.check("", err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		form := typedEndpoint(f)
		form.Stored, form.Revision = stored, f.raw("revision")
		return invalid(notifypage.EditEndpoint(s.endpointForm(req, form))), nil
	}
	return req.done(req.endpointPath(stored.ID), "Endpoint saved.")
}

// endpointConflict shows the submitted values beside those stored in the meantime, with
// the current revision.
func (s *Site) endpointConflict(req *request, f *form) (response, error) {
	e, err := pathEndpoint(req)
	if err != nil {
		return response{}, err
	}
	theirs, yours := storedEndpoint(e), typedEndpoint(f)
	yours.Stored, yours.Revision = e, theirs.Revision
	yours.Clash = &component.Clash{Rows: []component.Difference{
		{Label: "URL", Yours: yours.URL, Theirs: theirs.URL},
		{Label: "Types", Yours: yours.TypesText(), Theirs: theirs.TypesText()},
		{Label: "Description", Yours: yours.Description, Theirs: theirs.Description},
	}}
	return conflict(notifypage.EditEndpoint(s.endpointForm(req, yours))), nil
}

// switchEndpoint pauses or enables an endpoint.
func (s *Site) switchEndpoint(req *request) (response, error) {
	e, f, err := endpointAction(req)
	if err != nil {
		return response{}, err
	}
	to := choice(f, "status", notify.Enabled, notify.Paused)
	if !f.ok() {
		return response{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Reload the page and try again.")
	}
	if _, err := req.notifications().UpdateEndpoint(req.context, e.ID, notify.EndpointPatch{Status: &to}, req.app.Live, req.now()); err != nil {
		return response{}, err
	}
	if to == notify.Paused {
		return req.done(req.endpointPath(e.ID), "Endpoint paused. Notifications wait until you enable it.")
	}
	return req.done(req.endpointPath(e.ID), "Endpoint enabled. Waiting notifications are being sent, oldest first.")
}

// endpointAction reads the endpoint of the path, and the form.
func endpointAction(req *request) (notify.Endpoint, *form, error) {
	e, err := pathEndpoint(req)
	if err != nil {
		return e, nil, err
	}
	f, err := req.form()
	return e, f, err
}

// endpointRefusal shows the endpoint's page with what is wrong with one of its forms.
func endpointRefusal(req *request, e notify.Endpoint, f *form) (response, error) {
	view, err := endpointPage(req, e)
	view.Problems, view.Typed = f.problems, f.draft("from", "to", "only", "type").Values
	return invalid(notifypage.Endpoint(view)), err
}

// testEndpoint sends an example and leads to its page, which shows what came of it.
func (s *Site) testEndpoint(req *request) (response, error) {
	e, f, err := endpointAction(req)
	if err != nil {
		return response{}, err
	}
	kind := choice(f, "type", notify.Types()...)
	if !f.ok() {
		return endpointRefusal(req, e, f)
	}
	n, err := s.delivery.Test(req.context, req.scope(), req.actor(), e.ID, kind, req.now())
	if err != nil {
		return response{}, err
	}
	if e.Status != notify.Enabled {
		return req.done(req.notificationPath(n.ID), "Test queued. It's sent when you enable the endpoint.")
	}
	return req.done(req.notificationPath(n.ID), "Test sent. The result appears below.")
}

func (s *Site) replayEndpoint(req *request) (response, error) {
	e, f, err := endpointAction(req)
	if err != nil {
		return response{}, err
	}
	replay := notifications.Replay{EndpointID: e.ID, From: f.count("from", 1), OnlyFailed: choice(f, "only", "failed", "all") == "failed", Now: req.now()}
	if f.text("to") != "" {
		if replay.To = f.count("to", 1); f.ok() && replay.To < replay.From {
			f.fail("to", "Enter a number that isn't below the first one.")
		}
	}
	queued := 0
	if f.ok() {
		queued, err = req.notifications().Replay(req.context, replay)
		if fault.Is(err, fault.InvalidRequest) {
			f.fail("to", fmt.Sprintf("A replay covers at most %s notifications. Replay up to #%s first.",
				component.CountText(notify.MaxReplay), component.CountText(uint64(replay.From+notify.MaxReplay-1))))
		} else if err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		return endpointRefusal(req, e, f)
	}
	if queued == 0 {
		return req.done(req.endpointPath(e.ID), "Nothing to send in this range.")
	}
	return req.done(req.endpointPath(e.ID), component.Counted(int64(queued), "notification", "notifications")+" queued.")
}

// rotateEndpoint replaces the secret and shows the new one, in this response only.
func (s *Site) rotateEndpoint(req *request) (response, error) {
	e, f, err := endpointAction(req)
	if err != nil {
		return response{}, err
	}
	var values []string
	for _, o := range notifypage.Overlaps() {
		values = append(values, o.Value)
	}
	chosen := choice(f, "overlap", values...)
	// A resubmitted form would replace the secret that was just shown.
	if revision, err := f.revision(); err != nil || revision != e.Revision {
		return req.done(req.endpointPath(e.ID), "The endpoint has changed since the page was opened. Nothing was rotated.")
	}
	if !f.ok() {
		return endpointRefusal(req, e, f)
	}
	seconds, err := strconv.Atoi(chosen)
	if err != nil {
		return response{}, err
	}
	e, secret, err := s.delivery.Rotate(req.context, req.scope(), req.actor(), e.ID, time.Duration(seconds)*time.Second)
	if err != nil {
		return response{}, err
	}
	return show(notifypage.NewSecret(notifypage.EndpointSecret{
		Frame: req.frame(notifypage.Title(e), "webhooks"), Base: req.appPath("webhooks"), Endpoint: e, Secret: secret, Rotated: true, Overlap: seconds > 0,
	})), nil
}

// deleteEndpoint drops what waits for the endpoint, so a live one's host must be typed.
func (s *Site) deleteEndpoint(req *request) (response, error) {
	e, f, err := endpointAction(req)
	if err != nil {
		return response{}, err
	}
	if req.app.Live && f.text("confirm") != notifypage.Host(e) {
		view, err := endpointPage(req, e)
		view.TypedBad = "The name doesn't match. Enter it exactly as shown."
		return invalid(notifypage.Endpoint(view)), err
	}
	if err := req.notifications().DeleteEndpoint(req.context, e.ID); err != nil {
		return response{}, err
	}
	return req.done(req.appPath("webhooks"), "Endpoint deleted.")
}
