package developers

import (
	"fmt"
	"strconv"
	"time"

	"purser/fault"
	"purser/notify"
	"purser/store/notifications"
	"purser/views/component"
	notifypage "purser/views/page/notifications"
	"purser/web/site"
)

func (s *Pages) editEndpoint(req *site.Request, e notify.Endpoint) (site.Response, error) {
	return site.Show(notifypage.EditEndpoint(s.endpointForm(req, storedEndpoint(e)))), nil
}

// storedEndpoint is the form with the stored values.
func storedEndpoint(e notify.Endpoint) notifypage.EndpointForm {
	form := notifypage.EndpointForm{Stored: e, URL: e.URL, Description: e.Description, Scope: notifypage.AllTypes, Revision: strconv.FormatInt(e.Revision, 10)}
	for _, t := range e.Types {
		form.Scope, form.Types = notifypage.SomeTypes, append(form.Types, string(t))
	}
	return form
}

func (s *Pages) updateEndpoint(req *site.Request, stored notify.Endpoint) (site.Response, error) {
	f := req.Form
	revision, err := f.Revision()
	if err != nil {
		return site.Response{}, err
	}
	address, types, description := endpointFields(req, f)
	if f.OK() {
		patch := notify.EndpointPatch{ExpectedRevision: &revision, URL: &address, Types: &types, Description: &description}
		_, err := req.Notifications().UpdateEndpoint(req.Context, stored.ID, patch, req.App.Live)
		if fault.Is(err, fault.RevisionConflict) {
			return s.endpointConflict(req, f)
		}
		f.Check("", err)
	}
	if !f.OK() {
		form := typedEndpoint(f)
		form.Stored, form.Revision = stored, f.Raw("revision")
		return site.Invalid(notifypage.EditEndpoint(s.endpointForm(req, form))), nil
	}
	return req.Done(req.EndpointPath(stored.ID), "Endpoint saved.")
}

// endpointConflict shows the submitted values beside those stored in the meantime, with
// the current revision.
func (s *Pages) endpointConflict(req *site.Request, f *site.Form) (site.Response, error) {
	e, err := pathEndpoint(req)
	if err != nil {
		return site.Response{}, err
	}
	theirs, yours := storedEndpoint(e), typedEndpoint(f)
	yours.Stored, yours.Revision = e, theirs.Revision
	yours.Clash = &component.Clash{Rows: []component.Difference{
		{Label: "URL", Yours: yours.URL, Theirs: theirs.URL},
		{Label: "Types", Yours: yours.TypesText(), Theirs: theirs.TypesText()},
		{Label: "Description", Yours: yours.Description, Theirs: theirs.Description},
	}}
	return site.Conflict(notifypage.EditEndpoint(s.endpointForm(req, yours))), nil
}

// switchEndpoint pauses or enables an endpoint.
func (s *Pages) switchEndpoint(req *site.Request, e notify.Endpoint) (site.Response, error) {
	f := req.Form
	to := site.Choice(f, "status", notify.Enabled, notify.Paused)
	if !f.OK() {
		return site.Response{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Reload the page and try again.")
	}
	if _, err := req.Notifications().UpdateEndpoint(req.Context, e.ID, notify.EndpointPatch{Status: &to}, req.App.Live); err != nil {
		return site.Response{}, err
	}
	if to == notify.Paused {
		return req.Done(req.EndpointPath(e.ID), "Endpoint paused. Notifications wait until you enable it.")
	}
	return req.Done(req.EndpointPath(e.ID), "Endpoint enabled. Waiting notifications are being sent, oldest first.")
}

// endpointRefusal shows the endpoint's page with what is wrong with one of its forms.
func endpointRefusal(req *site.Request, e notify.Endpoint, f *site.Form) (site.Response, error) {
	view, err := endpointPage(req, e)
	view.Problems, view.Typed = f.Problems, f.Draft("from", "to", "only", "type").Values
	return site.Invalid(notifypage.Endpoint(view)), err
}

// testEndpoint sends an example and leads to its page, which shows what came of it.
func (s *Pages) testEndpoint(req *site.Request, e notify.Endpoint) (site.Response, error) {
	f := req.Form
	kind := site.Choice(f, "type", notify.Types()...)
	if !f.OK() {
		return endpointRefusal(req, e, f)
	}
	n, err := s.Deliveries.Test(req.Context, req.Scope(), req.Actor(), e.ID, kind, req.Now())
	if err != nil {
		return site.Response{}, err
	}
	if e.Status != notify.Enabled {
		return req.Done(req.NotificationPath(n.ID), "Test queued. It's sent when you enable the endpoint.")
	}
	return req.Done(req.NotificationPath(n.ID), "Test sent. The result appears below.")
}

func (s *Pages) replayEndpoint(req *site.Request, e notify.Endpoint) (site.Response, error) {
	f := req.Form
	replay := notifications.Replay{EndpointID: e.ID, From: f.Count("from", 1), OnlyFailed: site.Choice(f, "only", "failed", "all") == "failed", Now: req.Now()}
	if f.Text("to") != "" {
		if replay.To = f.Count("to", 1); f.OK() && replay.To < replay.From {
			f.Fail("to", "Enter a number that isn't below the first one.")
		}
	}
	queued := 0
	if f.OK() {
		var err error
		queued, err = req.Notifications().Replay(req.Context, replay)
		if fault.Is(err, fault.InvalidRequest) {
			f.Fail("to", fmt.Sprintf("A replay covers at most %s notifications. Replay up to %d first.",
				component.CountText(notify.MaxReplay), replay.From+notify.MaxReplay-1))
		} else if err != nil {
			return site.Response{}, err
		}
	}
	if !f.OK() {
		return endpointRefusal(req, e, f)
	}
	if queued == 0 {
		return req.Done(req.EndpointPath(e.ID), "Nothing to send in this range.")
	}
	return req.Done(req.EndpointPath(e.ID), component.Counted(int64(queued), "notification", "notifications")+" queued.")
}

// rotateEndpoint replaces the secret and shows the new one, in this response only.
func (s *Pages) rotateEndpoint(req *site.Request, e notify.Endpoint) (site.Response, error) {
	f := req.Form
	var values []string
	for _, o := range notifypage.Overlaps() {
		values = append(values, o.Value)
	}
	chosen := site.Choice(f, "overlap", values...)
	revision, err := f.Revision()
	if err != nil {
		return site.Response{}, err
	}
	if !f.OK() {
		return endpointRefusal(req, e, f)
	}
	seconds, err := strconv.Atoi(chosen)
	if err != nil {
		return site.Response{}, err
	}
	rotated, secret, err := s.Deliveries.Rotate(req.Context, req.Scope(), req.Actor(), e.ID, revision, time.Duration(seconds)*time.Second)
	if fault.Is(err, fault.RevisionConflict) {
		return notRotated(req)
	}
	if err != nil {
		return site.Response{}, err
	}
	return site.ShowOnce(notifypage.NewSecret(notifypage.EndpointSecret{
		Frame: req.Frame(notifypage.Title(e), "webhooks"), Base: req.AppPath("webhooks"), Endpoint: rotated, Secret: secret, Rotated: true, Overlap: seconds > 0,
	})), nil
}

// notRotated responds to a form whose endpoint has changed since: sent twice, it would
// replace the secret that was just shown. Each rotation sets when the previous secret ends.
func notRotated(req *site.Request) (site.Response, error) {
	e, err := pathEndpoint(req)
	if err != nil {
		return site.Response{}, err
	}
	if req.Form.Raw("previous_until") == strconv.FormatInt(e.PreviousUntil, 10) {
		return req.Done(req.EndpointPath(e.ID), "The endpoint has changed since the page was opened. Nothing was rotated.")
	}
	return site.Conflict(notifypage.AlreadyRotated(notifypage.EndpointSecret{
		Frame: req.Frame(notifypage.Title(e), "webhooks"), Base: req.AppPath("webhooks"), Endpoint: e, Overlap: e.PreviousUntil > req.Site.Now(),
	})), nil
}

// deleteEndpoint drops what waits for the endpoint, so a live one's host must be typed.
func (s *Pages) deleteEndpoint(req *site.Request, e notify.Endpoint) (site.Response, error) {
	f := req.Form
	if req.App.Live && !f.Confirms("confirm", notifypage.Host(e)) {
		f.Fail("confirm", "The name doesn't match. Enter it exactly as shown.")
		return endpointRefusal(req, e, f)
	}
	if err := req.Notifications().DeleteEndpoint(req.Context, e.ID); err != nil {
		return site.Response{}, err
	}
	return req.Done(req.AppPath("webhooks"), "Endpoint deleted.")
}
