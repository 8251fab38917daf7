package developers

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
	"purser/web/site"
)

func (s *Pages) endpoints(req *site.Request) (site.Response, error) {
	list, err := req.Notifications().Endpoints(req.Context)
	if err != nil {
		return site.Response{}, err
	}
	waiting, err := req.Notifications().Waiting(req.Context)
	if err != nil {
		return site.Response{}, err
	}
	view := notifypage.EndpointList{
		Frame: req.Frame("Webhooks", "webhooks"), Base: req.AppPath("webhooks"), MayEdit: req.May(tenancy.WebhooksWrite), Feed: req.AppPath("notifications"),
	}
	for _, e := range list {
		view.Endpoints = append(view.Endpoints, notifypage.EndpointRow{Endpoint: e, Waiting: waiting[e.ID]})
	}
	trial, remember, err := localTrial(req)
	if err != nil {
		return site.Response{}, err
	}
	view.Trial = trial
	return remember(site.Show(notifypage.Endpoints(view))), nil
}

// localTrial are the steps that bring the first notification to a program on the
// developer's machine.
func localTrial(req *site.Request) (trial notifypage.Trial, remember func(site.Response) site.Response, err error) {
	language, remember := req.ExampleLanguage()
	trial = notifypage.Trial{
		Path: req.AppPath("webhooks"), Program: req.Site.Server.Program, Address: req.Site.Server.Address,
		Language: language.Receiving(), Open: req.Query("language") != "",
	}
	if trial.Receiver, err = trial.Language.Receiver(); err != nil {
		return trial, remember, err
	}
	progress, err := req.Reports().Progress(req.Context, req.Site.Now())
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
	trial.NewKey = req.LinkIfEditable(tenancy.KeysRead, tenancy.KeysWrite, "keys", "new")
	return trial, remember, nil
}

func (s *Pages) newEndpoint(req *site.Request) (site.Response, error) {
	return site.Show(notifypage.NewEndpoint(s.endpointForm(req, notifypage.EndpointForm{ID: ids.New().Format(ids.WebhookEndpoint), Scope: notifypage.AllTypes}))), nil
}

// endpointForm adds what every form of an endpoint shows.
func (s *Pages) endpointForm(req *site.Request, form notifypage.EndpointForm) notifypage.EndpointForm {
	form.Base, form.Live = req.AppPath("webhooks"), req.App.Live
	form.About = s.aboutTypes()
	title := "New webhook endpoint"
	if !form.Stored.ID.IsZero() {
		title = "Edit webhook endpoint"
	}
	form.Frame = req.Frame(title, "webhooks")
	return form
}

// aboutTypes says what each type of notification reports, as the API's document does, as
// plain text. It is empty without the document.
func (s *Pages) aboutTypes() map[notify.Type]string {
	about := map[notify.Type]string{}
	reference, err := s.Reference()
	if err != nil {
		return about
	}
	for _, w := range reference.Webhooks {
		about[notify.Type(w.Type)] = strings.ReplaceAll(w.Text, "`", "")
	}
	return about
}

// endpointFields reads the fields of the form. Types that were checked before "all" was
// chosen are ignored.
func endpointFields(req *site.Request, f *site.Form) (address string, types []notify.Type, description string) {
	address, description = f.Text("url"), f.Text("description")
	f.Check("url", withoutField(notify.CheckURL(address, req.App.Live)))
	if len([]rune(description)) > notify.MaxDescription {
		f.Fail("description", "At most 500 characters.")
	}
	if site.Choice(f, "scope", notifypage.AllTypes, notifypage.SomeTypes) == notifypage.SomeTypes {
		for _, name := range f.List("types") {
			types = append(types, notify.Type(name))
		}
		if len(types) == 0 {
			f.Fail("types", "Select at least one type, or send all of them.")
		}
		known, err := notify.CheckTypes(types)
		types = known
		f.Check("types", withoutField(err))
	}
	return address, types, description
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
func (s *Pages) createEndpoint(req *site.Request) (site.Response, error) {
	f := req.Form
	id, ok := site.ParseFormID(ids.WebhookEndpoint, f.Raw("id"))
	if !ok {
		return site.Response{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Open it again from the list of webhooks.")
	}
	address, types, description := endpointFields(req, f)
	var e notify.Endpoint
	var secret notify.Secret
	if f.OK() {
		var err error
		e, secret, err = s.Deliveries.Create(req.Context, req.Scope(), req.Actor(), delivery.Draft{
			ID: id, URL: address, Types: types, Description: description, Live: req.App.Live, Now: req.Now(),
		})
		if fault.Is(err, fault.AlreadyExists) {
			return endpointExists(req, id, err)
		}
		f.Check("", err)
	}
	if !f.OK() {
		form := typedEndpoint(f)
		form.ID = id.Format(ids.WebhookEndpoint)
		return site.Invalid(notifypage.NewEndpoint(s.endpointForm(req, form))), nil
	}
	return site.ShowOnce(notifypage.NewSecret(notifypage.EndpointSecret{
		Frame: req.Frame("New webhook endpoint", "webhooks"), Base: req.AppPath("webhooks"), Endpoint: e, Secret: secret,
	})), nil
}

// typedEndpoint is the form as it was submitted.
func typedEndpoint(f *site.Form) notifypage.EndpointForm {
	return notifypage.EndpointForm{
		URL: f.Text("url"), Description: f.Text("description"), Scope: f.Text("scope"), Types: f.List("types"),
		Answered: component.Answered{Problems: f.Problems},
	}
}

// endpointExists responds to a resubmitted form, with the refusal if the endpoint was
// deleted since.
func endpointExists(req *site.Request, id ids.ID, refusal error) (site.Response, error) {
	e, err := req.Notifications().Endpoint(req.Context, id)
	if fault.Is(err, fault.WebhookEndpointNotFound) {
		return site.Response{}, refusal
	}
	if err != nil {
		return site.Response{}, err
	}
	return site.Conflict(notifypage.AlreadyCreated(notifypage.EndpointSecret{
		Frame: req.Frame("Webhook endpoint", "webhooks"), Base: req.AppPath("webhooks"), Endpoint: e,
	})), nil
}

func pathEndpoint(req *site.Request) (notify.Endpoint, error) {
	id, err := req.ID("id", ids.WebhookEndpoint)
	if err != nil {
		return notify.Endpoint{}, err
	}
	return req.Notifications().Endpoint(req.Context, id)
}

func (s *Pages) endpoint(req *site.Request, e notify.Endpoint) (site.Response, error) {
	view, err := endpointPage(req, e)
	return site.Show(notifypage.Endpoint(view)), err
}

// deliveryShows are the filters of an endpoint's deliveries.
var deliveryShows = map[string]notify.DeliveryStatus{"waiting": notify.Pending, "failed": notify.Failed}

func endpointPage(req *site.Request, e notify.Endpoint) (notifypage.EndpointDetail, error) {
	path := req.AppPath("webhooks", e.ID.Format(ids.WebhookEndpoint))
	view := notifypage.EndpointDetail{
		Frame: req.Frame(notifypage.Title(e), "webhooks"), Base: req.AppPath("webhooks"), Path: path, Now: req.Site.Now(),
		Endpoint: e, MayEdit: req.May(tenancy.WebhooksWrite), MayDelete: req.Member.May(tenancy.WebhooksWrite), Live: req.App.Live, Show: req.Query("show"),
	}
	waiting, err := req.Notifications().Waiting(req.Context)
	if err != nil {
		return view, err
	}
	view.Waiting = waiting[e.ID]
	p, err := req.Before(ids.Notification)
	if err != nil {
		return view, err
	}
	found, more, err := req.Notifications().Deliveries(req.Context, e.ID, deliveryShows[view.Show], p)
	for _, d := range found {
		view.Deliveries = append(view.Deliveries, newDeliveryRow(req, d))
	}
	list := req.Listing(path, "show")
	view.Pages = list.Pages("before", !p.Before.IsZero(), site.LastID(found, more, ids.Notification, func(d notifications.Shown) ids.ID { return d.ID }))
	return view, err
}

func newDeliveryRow(req *site.Request, d notifications.Shown) notifypage.DeliveryRow {
	row := notifypage.DeliveryRow{
		NotificationRow: newNotificationRow(req, d.Notification), EndpointID: d.EndpointID, Status: d.Status, Attempts: d.Attempts, DueAt: d.DueAt,
		LastStatus: d.LastStatus, LastError: d.LastError, LastAt: d.LastAt,
	}
	if req.May(tenancy.WebhooksWrite) && d.Status != notify.Pending {
		row.Redeliver = row.Href + "/redeliver"
	}
	return row
}
