package web

import (
	"strings"

	"purser/fault"
	"purser/ids"
	"purser/notify"
	"purser/notify/delivery"
	"purser/store/notifications"
	"purser/tenancy"
	"purser/views/component"
	notifypage "purser/views/page/notifications"
)

func (s *Site) endpoints(req *request) (response, error) {
	list, err := req.notifications().Endpoints(req.context)
	if err != nil {
		return response{}, err
	}
	waiting, err := req.notifications().Waiting(req.context)
	if err != nil {
		return response{}, err
	}
	view := notifypage.EndpointList{
		Frame: req.frame("Webhooks", "webhooks"), Base: req.appPath("webhooks"), MayEdit: req.may(tenancy.WebhooksWrite), Feed: req.appPath("notifications"),
	}
	for _, e := range list {
		view.Endpoints = append(view.Endpoints, notifypage.EndpointRow{Endpoint: e, Waiting: waiting[e.ID]})
	}
	trial, remember, err := localTrial(req)
	if err != nil {
		return response{}, err
	}
	view.Trial = trial
	return remember(show(notifypage.Endpoints(view))), nil
}

// localTrial are the steps that bring the first notification to a program on the
// developer's machine.
func localTrial(req *request) (trial notifypage.Trial, remember func(response) response, err error) {
	language, remember := req.exampleLanguage()
	trial = notifypage.Trial{
		Path: req.appPath("webhooks"), Program: req.site.server.Program, Address: req.site.server.Address,
		Language: language.Receiving(), Open: req.query("language") != "",
	}
	if trial.Receiver, err = trial.Language.Receiver(); err != nil {
		return trial, remember, err
	}
	progress, err := req.reports().Progress(req.context, req.site.now())
	if err != nil {
		return trial, remember, err
	}
	call, _, err := firstCall(req, progress)
	if err != nil {
		return trial, remember, err
	}
	if !progress.HasCredit {
		trial.Commands = append(trial.Commands, call.DefineCredit())
	}
	trial.Commands = append(trial.Commands, call.Deposit())
	if req.may(tenancy.KeysWrite) {
		trial.NewKey = req.appPath("keys", "new")
	}
	return trial, remember, nil
}

func (s *Site) newEndpoint(req *request) (response, error) {
	return show(notifypage.NewEndpoint(s.endpointForm(req, notifypage.EndpointForm{ID: ids.New().Format(ids.WebhookEndpoint), Scope: notifypage.AllTypes}))), nil
}

// endpointForm adds what every form of an endpoint shows.
func (s *Site) endpointForm(req *request, form notifypage.EndpointForm) notifypage.EndpointForm {
	form.Base, form.Live = req.appPath("webhooks"), req.app.Live
	form.About = s.aboutTypes()
	title := "New webhook endpoint"
	if !form.Stored.ID.IsZero() {
		title = "Edit webhook endpoint"
	}
	form.Frame = req.frame(title, "webhooks")
	return form
}

// aboutTypes says what each type of notification reports, as the API's document does. It
// is empty without the document.
func (s *Site) aboutTypes() map[notify.Type]string {
	about := map[notify.Type]string{}
	reference, err := s.reference()
	if err != nil {
		return about
	}
	for _, w := range reference.Webhooks {
		about[notify.Type(w.Type)] = w.Text
	}
	return about
}

// endpointFields reads the fields of the form. Types that were checked before "all" was
// chosen are ignored.
func endpointFields(req *request, f *form) (address string, types []notify.Type, description string, err error) {
	address, description = f.text("url"), f.text("description")
	if err := f.check("url", withoutField(notify.CheckURL(address, req.app.Live))); err != nil {
		return "", nil, "", err
	}
	if len([]rune(description)) > notify.MaxDescription {
		f.fail("description", "At most 500 characters.")
	}
	if choice(f, "scope", notifypage.AllTypes, notifypage.SomeTypes) == notifypage.SomeTypes {
		for _, name := range f.list("types") {
			types = append(types, notify.Type(name))
		}
		if len(types) == 0 {
			f.fail("types", "Select at least one type, or send all of them.")
		}
		types, err = notify.CheckTypes(types)
		if err := f.check("types", withoutField(err)); err != nil {
			return "", nil, "", err
		}
	}
	return address, types, description, nil
}

// withoutField removes the name of the field from a message: the page shows it there.
func withoutField(err error) error {
	if refusal, ok := err.(*fault.Fault); ok {
		if _, message, found := strings.Cut(refusal.Message, ": "); found {
			return fault.Newf(refusal.Code, "%s", message)
		}
	}
	return err
}

// createEndpoint shows the secret in this response, the only one that contains it. A
// resubmitted form finds the existing endpoint and shows no secret.
func (s *Site) createEndpoint(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	id, err := ids.Parse(ids.WebhookEndpoint, f.raw("id"))
	if err != nil || id.IsZero() {
		return response{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Open it again from the list of webhooks.")
	}
	address, types, description, err := endpointFields(req, f)
	if err != nil {
		return response{}, err
	}
	var e notify.Endpoint
	var secret notify.Secret
	if f.ok() {
		e, secret, err = s.delivery.Create(req.context, req.scope(), req.actor(), delivery.Draft{
			ID: id, URL: address, Types: types, Description: description, Live: req.app.Live, Now: req.now(),
		})
		if fault.Is(err, fault.AlreadyExists) {
			return endpointExists(req, id)
		}
		if err := f.check("", err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		form := typedEndpoint(f)
		form.ID = id.Format(ids.WebhookEndpoint)
		return invalid(notifypage.NewEndpoint(s.endpointForm(req, form))), nil
	}
	return show(notifypage.NewSecret(notifypage.EndpointSecret{
		Frame: req.frame("New webhook endpoint", "webhooks"), Base: req.appPath("webhooks"), Endpoint: e, Secret: secret,
	})), nil
}

// typedEndpoint is the form as it was submitted.
func typedEndpoint(f *form) notifypage.EndpointForm {
	return notifypage.EndpointForm{
		URL: f.text("url"), Description: f.text("description"), Scope: f.text("scope"), Types: f.list("types"),
		Answered: component.Answered{Problems: f.problems},
	}
}

// endpointExists responds to a resubmitted form.
func endpointExists(req *request, id ids.ID) (response, error) {
	e, err := req.notifications().Endpoint(req.context, id)
	if err != nil {
		return response{}, err
	}
	return conflict(notifypage.AlreadyCreated(notifypage.EndpointSecret{
		Frame: req.frame("Webhook endpoint", "webhooks"), Base: req.appPath("webhooks"), Endpoint: e,
	})), nil
}

// pathEndpoint is the endpoint of the path.
func pathEndpoint(req *request) (notify.Endpoint, error) {
	id, err := req.id("id", ids.WebhookEndpoint)
	if err != nil {
		return notify.Endpoint{}, err
	}
	return req.notifications().Endpoint(req.context, id)
}

func (s *Site) endpoint(req *request) (response, error) {
	e, err := pathEndpoint(req)
	if err != nil {
		return response{}, err
	}
	view, err := endpointPage(req, e)
	return show(notifypage.Endpoint(view)), err
}

// deliveryShows are the filters of an endpoint's deliveries.
var deliveryShows = map[string]notify.DeliveryStatus{"waiting": notify.Pending, "failed": notify.Failed}

func endpointPage(req *request, e notify.Endpoint) (notifypage.EndpointDetail, error) {
	path := req.appPath("webhooks", e.ID.Format(ids.WebhookEndpoint))
	view := notifypage.EndpointDetail{
		Frame: req.frame(notifypage.Title(e), "webhooks"), Base: req.appPath("webhooks"), Path: path, Now: req.site.now(),
		Endpoint: e, MayEdit: req.may(tenancy.WebhooksWrite), Live: req.app.Live, Show: req.query("show"),
	}
	waiting, err := req.notifications().Waiting(req.context)
	if err != nil {
		return view, err
	}
	view.Waiting = waiting[e.ID]
	p, err := req.before(ids.Notification)
	if err != nil {
		return view, err
	}
	found, more, err := req.notifications().Deliveries(req.context, e.ID, deliveryShows[view.Show], p)
	for _, d := range found {
		view.Deliveries = append(view.Deliveries, newDeliveryRow(req, d))
	}
	list := req.listing(path, "show")
	view.Pages = list.pages("before", !p.Before.IsZero(), lastID(found, more, ids.Notification, func(d notifications.Shown) ids.ID { return d.ID }))
	return view, err
}

func newDeliveryRow(req *request, d notifications.Shown) notifypage.DeliveryRow {
	row := notifypage.DeliveryRow{
		NotificationRow: newNotificationRow(req, d.Notification), EndpointID: d.EndpointID, Status: d.Status, Attempts: d.Attempts, DueAt: d.DueAt,
		LastStatus: d.LastStatus, LastError: d.LastError, LastAt: d.LastAt,
	}
	if req.may(tenancy.WebhooksWrite) && d.Status != notify.Pending {
		row.Redeliver = row.Href + "/redeliver"
	}
	return row
}
