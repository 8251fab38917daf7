package developers

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
	"purser/web/site"
)

const (
	// shownAttempts is how many attempts of a notification its page lists.
	shownAttempts = 100
	// pollAhead is how soon an attempt is due that a page waits for, in milliseconds.
	pollAhead = 15_000
)

func (s *Pages) feed(req *site.Request, before int64) (site.Response, error) {
	list := req.Listing(req.AppPath("notifications"), "type", "identity")
	view := notifypage.Feed{
		Frame: req.Frame("Notifications", "notifications"), Path: list.Path, Identity: req.Query("identity"), Type: req.Query("type"),
		Filtered: len(list.Filter) > 0, Webhooks: req.AppPath("webhooks"),
	}
	q := notifications.Backwards{Before: before, Limit: site.PageSize}
	if kind := notify.Type(view.Type); kind.Known() {
		q.Types = []notify.Type{kind}
	}
	if view.Identity != "" {
		w, err := req.Tenant().Wallet(req.Context, view.Identity)
		if fault.Is(err, fault.WalletNotFound) {
			return site.Show(notifypage.FeedPage(view)), nil
		}
		if err != nil {
			return site.Response{}, err
		}
		q.WalletID = w.ID
	}
	found, next, err := req.Notifications().Newest(req.Context, q)
	if err != nil {
		return site.Response{}, err
	}
	view.Rows = notificationRows(req, found)
	view.Unfinished = next != 0 && len(found) < q.Limit
	view.Pages = list.Pages("before", before != 0, site.OlderSeq(next))
	return site.Show(notifypage.FeedPage(view)), nil
}

func notificationRows(req *site.Request, list []notify.Notification) (rows []notifypage.NotificationRow) {
	for _, n := range list {
		rows = append(rows, newNotificationRow(req, n))
	}
	return rows
}

func newNotificationRow(req *site.Request, n notify.Notification) notifypage.NotificationRow {
	row := notifypage.NotificationRow{Notification: n, Href: req.NotificationPath(n.ID)}
	if n.Identity != "" {
		row.WalletHref = req.WalletLink(n.WalletID)
	}
	return row
}

func (s *Pages) notification(req *site.Request, id ids.ID) (site.Response, error) {
	h, err := req.Notifications().History(req.Context, id, shownAttempts)
	if err != nil {
		return site.Response{}, err
	}
	n := h.Notification
	view := notifypage.NotificationDetail{
		Frame: req.Frame(string(n.Type), "notifications"), List: req.AppPath("notifications"), Path: req.NotificationPath(n.ID),
		Notification: n, About: s.aboutTypes()[n.Type], Data: indentJSON(n.Data), MayEdit: req.May(tenancy.WebhooksWrite), Webhooks: req.AppPath("webhooks"),
	}
	if n.Identity != "" {
		view.WalletHref = req.WalletLink(n.WalletID)
	}
	endpoints, err := req.Notifications().Endpoints(req.Context)
	if err != nil {
		return site.Response{}, err
	}
	for _, e := range endpoints {
		view.Others = append(view.Others, component.Option{Value: e.ID.Format(ids.WebhookEndpoint), Text: e.URL})
	}
	for _, d := range h.Deliveries {
		sent, err := newSentDelivery(req, d, h.Attempts, endpoints)
		if err != nil {
			return site.Response{}, err
		}
		view.Sent = append(view.Sent, sent)
		view.Waits = view.Waits || sent.Endpoint.Status == notify.Enabled && d.Status == notify.Pending && d.DueAt < req.Now()+pollAhead
	}
	return site.Show(notifypage.NotificationPage(view)), nil
}

// newSentDelivery adds to a delivery its endpoint, which may have been deleted, and what
// each attempt sent.
func newSentDelivery(req *site.Request, d notifications.Shown, attempts []notifications.Attempt, endpoints []notify.Endpoint) (notifypage.SentDelivery, error) {
	sent := notifypage.SentDelivery{DeliveryRow: newDeliveryRow(req, d)}
	for _, e := range endpoints {
		if e.ID == d.EndpointID {
			sent.Endpoint, sent.EndpointHref = e, req.EndpointPath(e.ID)
		}
	}
	if sent.Endpoint.ID.IsZero() {
		sent.Redeliver = ""
	}
	for _, a := range attempts {
		if a.EndpointID != d.EndpointID {
			continue
		}
		headers, body, err := delivery.Sent(d.Delivery, a, req.App.Live)
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
func (s *Pages) redeliver(req *site.Request, id ids.ID) (site.Response, error) {
	f := req.Form
	endpoint, err := ids.Parse(ids.WebhookEndpoint, f.Text("endpoint"))
	if err != nil || endpoint.IsZero() { // zero would be all endpoints
		return site.Response{}, fault.New(fault.WebhookEndpointNotFound)
	}
	if _, err := req.Notifications().Redeliver(req.Context, id, endpoint, req.Now()); err != nil {
		return site.Response{}, err
	}
	return req.Done(req.NotificationPath(id), "Sending again. The result appears below.")
}
