package web

import (
	"bytes"
	"encoding/json"

	"purser/fault"
	"purser/ids"
	"purser/notify"
	"purser/notify/delivery"
	"purser/store/notifications"
	"purser/tenancy"
	"purser/views/component"
	notifypage "purser/views/page/notifications"
)

const (
	// shownAttempts is how many attempts of a notification its page lists.
	shownAttempts = 100
	// pollAhead is how soon an attempt is due that a page waits for, in milliseconds.
	pollAhead = 15_000
)

func (s *Site) feed(req *request) (response, error) {
	before, err := req.beforeSeq()
	if err != nil {
		return response{}, err
	}
	list := req.listing(req.appPath("notifications"), "type", "identity")
	view := notifypage.Feed{
		Frame: req.frame("Notifications", "notifications"), Path: list.path, Identity: req.query("identity"), Type: req.query("type"),
		Filtered: len(list.filter) > 0, Webhooks: req.appPath("webhooks"),
	}
	q := notifications.Backwards{Before: before, Limit: pageSize}
	if kind := notify.Type(view.Type); kind.Known() {
		q.Types = []notify.Type{kind}
	}
	if view.Identity != "" {
		w, err := req.tenant().Wallet(req.context, view.Identity)
		if fault.Is(err, fault.WalletNotFound) {
			return show(notifypage.FeedPage(view)), nil
		}
		if err != nil {
			return response{}, err
		}
		q.WalletID = w.ID
	}
	found, next, err := req.notifications().Newest(req.context, q)
	if err != nil {
		return response{}, err
	}
	view.Rows = notificationRows(req, found)
	view.Unfinished = next != 0 && len(found) < q.Limit
	view.Pages = list.pages("before", before != 0, olderSeq(next))
	return show(notifypage.FeedPage(view)), nil
}

func notificationRows(req *request, list []notify.Notification) (rows []notifypage.NotificationRow) {
	for _, n := range list {
		rows = append(rows, newNotificationRow(req, n))
	}
	return rows
}

func newNotificationRow(req *request, n notify.Notification) notifypage.NotificationRow {
	row := notifypage.NotificationRow{Notification: n, Href: req.notificationPath(n.ID)}
	if n.Identity != "" {
		row.WalletHref = req.walletPath(n.WalletID)
	}
	return row
}

func (s *Site) notification(req *request) (response, error) {
	id, err := req.id("id", ids.Notification)
	if err != nil {
		return response{}, err
	}
	h, err := req.notifications().History(req.context, id, shownAttempts)
	if err != nil {
		return response{}, err
	}
	n := h.Notification
	view := notifypage.NotificationDetail{
		Frame: req.frame(string(n.Type), "notifications"), List: req.appPath("notifications"), Path: req.notificationPath(n.ID),
		Notification: n, About: s.aboutTypes()[n.Type], Data: indentJSON(n.Data), MayEdit: req.may(tenancy.WebhooksWrite), Webhooks: req.appPath("webhooks"),
	}
	if n.Identity != "" {
		view.WalletHref = req.walletPath(n.WalletID)
	}
	endpoints, err := req.notifications().Endpoints(req.context)
	if err != nil {
		return response{}, err
	}
	for _, e := range endpoints {
		view.Others = append(view.Others, component.Option{Value: e.ID.Format(ids.WebhookEndpoint), Text: e.URL})
	}
	for _, d := range h.Deliveries {
		sent, err := newSentDelivery(req, d, h.Attempts, endpoints)
		if err != nil {
			return response{}, err
		}
		view.Sent = append(view.Sent, sent)
		view.Waits = view.Waits || sent.Endpoint.Status == notify.Enabled && d.Status == notify.Pending && d.DueAt < req.now()+pollAhead
	}
	return show(notifypage.NotificationPage(view)), nil
}

// newSentDelivery adds to a delivery its endpoint, which may have been deleted, and what
// each attempt sent.
func newSentDelivery(req *request, d notifications.Shown, attempts []notifications.Attempt, endpoints []notify.Endpoint) (notifypage.SentDelivery, error) {
	sent := notifypage.SentDelivery{DeliveryRow: newDeliveryRow(req, d)}
	for _, e := range endpoints {
		if e.ID == d.EndpointID {
			sent.Endpoint, sent.EndpointHref = e, req.endpointPath(e.ID)
		}
	}
	if sent.Endpoint.ID.IsZero() {
		sent.Redeliver = ""
	}
	for _, a := range attempts {
		if a.EndpointID != d.EndpointID {
			continue
		}
		headers, body, err := delivery.Sent(d.Delivery, a, req.app.Live)
		if err != nil {
			return sent, err
		}
		shown := notifypage.AttemptShown{
			ID: a.ID.Format(ids.DeliveryAttempt), URL: a.URL, Status: a.Status, Error: a.Error, Answer: a.Answer, StartedAt: a.StartedAt,
			TookMillis: a.TookMillis, Body: string(body),
		}
		for _, h := range headers {
			shown.Headers = append(shown.Headers, h.Name+": "+h.Value)
		}
		sent.Tries = append(sent.Tries, shown)
	}
	return sent, nil
}

// indentJSON is stored JSON for people.
func indentJSON(data []byte) string {
	var indented bytes.Buffer
	if json.Indent(&indented, data, "", "  ") != nil {
		return string(data)
	}
	return indented.String()
}

// redeliver sends a notification again, to the endpoint of the form.
func (s *Site) redeliver(req *request) (response, error) {
	id, err := req.id("id", ids.Notification)
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	endpoint, err := ids.Parse(ids.WebhookEndpoint, f.text("endpoint"))
	if err != nil {
		return response{}, fault.New(fault.WebhookEndpointNotFound)
	}
	if _, err := req.notifications().Redeliver(req.context, id, endpoint, req.now()); err != nil {
		return response{}, err
	}
	return req.done(req.notificationPath(id), "Sending again. The result appears below.")
}
