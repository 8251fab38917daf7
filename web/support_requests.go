package web

import (
	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/reports"
	"purser/tenancy"
	"purser/views/component"
	supportpage "purser/views/page/support"
)

var statusClasses = []component.Option{
	{Value: "", Text: "Any status"},
	{Value: "2", Text: "2xx Success"},
	{Value: "4", Text: "4xx Rejected"},
	{Value: "5", Text: "5xx Server error"},
}

// requestQuery reads the filters of requests.
func requestQuery(req *request) reports.RequestQuery {
	q := reports.RequestQuery{
		Failed: req.query("show") == "failed", Identity: req.query("identity"), Code: fault.Code(req.query("code")), Route: req.query("route"),
	}
	for i, class := range statusClasses {
		if class.Value != "" && class.Value == req.query("status") {
			q.Class = []int{0, 2, 4, 5}[i]
		}
	}
	if req.may(tenancy.KeysRead) {
		q.KeyID, _ = ids.Parse(ids.APIKey, req.query("key"))
	}
	return q
}

func (s *Site) requests(req *request) (response, error) {
	p, err := req.before(ids.Request)
	if err != nil {
		return response{}, err
	}
	q := requestQuery(req)
	q.Page = p
	day, err := req.reports().DayStats(req.context, req.site.now())
	if err != nil {
		return response{}, err
	}
	filters := []string{"identity", "route", "status", "code", "key"}
	list, plain := req.listing(req.appPath("requests"), append(filters, "show")...), req.listing(req.appPath("requests"), filters...)
	view := supportpage.RequestList{
		Frame: req.frame("Requests", "requests"), Path: list.path, Failed: q.Failed, Counted: day.Requests, Failures: day.Failures,
		KeptDays: int(s.store.Stats().KeepsFailures().Hours() / 24), Identity: q.Identity, Class: req.query("status"), Classes: statusClasses,
		Code: string(q.Code), Route: q.Route, RequestID: req.query("request"), Filtered: len(plain.filter) > 0,
		All: plain.at("", ""), OnlyFailed: plain.at("show", "failed"),
	}
	if view.Keys, err = keyFilter(req); err != nil {
		return response{}, err
	}
	if !q.KeyID.IsZero() {
		view.KeyID = q.KeyID.Format(ids.APIKey)
	}
	if view.RequestID != "" {
		if id, err := ids.Parse(ids.Request, view.RequestID); err == nil {
			return redirect(requestPath(req, id)), nil
		}
		view.Problems = []component.Problem{{Field: "request", Message: "Enter a request ID such as req_01m7ewzp3pfr4976jxkvfa63gm."}}
		return invalid(supportpage.Requests(view)), nil
	}
	found, next, err := req.reports().Requests(req.context, q)
	if err != nil {
		return response{}, err
	}
	for _, r := range found {
		view.Requests = append(view.Requests, newRequestRow(req, r))
	}
	older := ""
	if next != nil {
		older, view.Unfinished = next.Before.Format(ids.Request), len(found) < p.Limit
	}
	view.Pages = list.pages("before", !p.Before.IsZero(), older)
	return show(supportpage.Requests(view)), nil
}

// keyFilter lists the API keys to filter by, for members who may read keys.
func keyFilter(req *request) ([]component.Option, error) {
	if !req.may(tenancy.KeysRead) {
		return nil, nil
	}
	options := []component.Option{{Value: "", Text: "All keys"}}
	keys, _, err := req.tenant().Keys(req.context, store.Page{Limit: maxOptions})
	for _, key := range keys {
		options = append(options, component.Option{Value: key.ID.Format(ids.APIKey), Text: key.Name + " " + key.Masked()})
	}
	return options, err
}

func requestPath(req *request, id ids.ID) string {
	return req.appPath("requests", id.Format(ids.Request))
}

func newRequestRow(req *request, r reports.Request) supportpage.RequestRow {
	row := supportpage.RequestRow{
		Href: requestPath(req, r.ID), ID: r.ID.Format(ids.Request), At: r.At, Method: r.Method, Route: r.Route, Status: r.Status, Code: string(r.Code),
		CodeHref: "/docs/errors/" + string(r.Code), TookMicros: r.TookMicros, KeyName: r.KeyName, KeyMasked: r.KeyMasked, Feature: r.Feature,
	}
	if r.Identity != "" {
		row.Identity, row.WalletHref = r.Identity, req.listing(req.appPath("wallets")).at("q", r.Identity)
	}
	if req.may(tenancy.KeysRead) {
		row.KeyHref = req.appPath("keys", r.KeyID.Format(ids.APIKey))
	}
	return row
}

// maxRequestDenials is how many denials of one request its page lists. A batch may have
// more.
const maxRequestDenials = 100

// request shows a request, or what it did if only that is kept.
func (s *Site) request(req *request) (response, error) {
	id, err := req.id("id", ids.Request)
	if err != nil {
		return response{}, err
	}
	view := supportpage.RequestDetails{List: req.appPath("requests"), ID: id.Format(ids.Request)}
	r, err := req.reports().Request(req.context, id)
	switch {
	case err == nil:
		view.Known, view.Row, view.Message = true, newRequestRow(req, r), r.Message
		if view.Message == "" && r.Code != "" {
			view.Message = fault.New(r.Code).Message
		}
	case !fault.Is(err, fault.PathNotFound):
		return response{}, err
	}
	if err := requestResult(req, id, &view); err != nil {
		return response{}, err
	}
	if !view.Known && view.TxnHref == "" && len(view.Denials) == 0 {
		return response{}, fault.New(fault.PathNotFound)
	}
	view.Frame = req.frame("Request "+view.ID, "requests")
	return show(supportpage.RequestPage(view)), nil
}

// requestResult finds the charge and the denials of a request, for members who may read
// the journal. A request's charge has its id.
func requestResult(req *request, id ids.ID, view *supportpage.RequestDetails) error {
	if !req.may(tenancy.JournalRead) {
		return nil
	}
	t, err := req.reports().Transaction(req.context, id)
	switch {
	case err == nil:
		view.TxnHref, view.TxnTitle = req.transactionPath(id), "View deposit"
		if t.Event != nil {
			view.TxnTitle = "View charge"
			view.Row.Feature = t.Event.FeatureKey
			if !view.Known {
				view.Row.At = t.Event.CreatedAt
			}
		}
		view.Row.Identity, view.Row.WalletHref = t.Identity, req.walletPath(t.WalletID)
	case !fault.Is(err, fault.PathNotFound):
		return err
	}
	denials, _, err := req.reports().Denials(req.context, reports.DenialQuery{RequestID: id, Page: store.Page{Limit: maxRequestDenials}})
	for _, d := range denials {
		row := newDenialRow(req, d, true)
		view.Denials = append(view.Denials, row)
		if !view.Known {
			view.Row.At, view.Row.Feature, view.Row.KeyName = d.At(), d.FeatureKey, d.KeyName
			view.Row.Identity, view.Row.WalletHref = d.Identity, row.WalletHref
		}
	}
	return err
}
