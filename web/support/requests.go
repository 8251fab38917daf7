package support

import (
	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/reports"
	"purser/tenancy"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

var statusClasses = []component.Option{
	{Value: "", Text: "Any status"},
	{Value: "2", Text: "2xx Success"},
	{Value: "4", Text: "4xx Rejected"},
	{Value: "5", Text: "5xx Server error"},
}

// requestQuery reads the filters of requests.
func requestQuery(req *site.Request) reports.RequestQuery {
	q := reports.RequestQuery{
		Failed: req.Query("show") == "failed", Identity: req.Query("identity"), Code: fault.Code(req.Query("code")), Route: req.Query("route"),
	}
	for i, class := range statusClasses {
		if class.Value != "" && class.Value == req.Query("status") {
			q.Class = []int{0, 2, 4, 5}[i]
		}
	}
	if req.May(tenancy.KeysRead) {
		q.KeyID, _ = ids.Parse(ids.APIKey, req.Query("key"))
	}
	return q
}

func (s *Pages) requests(req *site.Request, p store.Page) (site.Response, error) {
	q := requestQuery(req)
	q.Page = p
	day, err := req.Reports().DayStats(req.Context, req.Site.Now())
	if err != nil {
		return site.Response{}, err
	}
	filters := []string{"identity", "route", "status", "code", "key"}
	list, plain := req.Listing(req.AppPath("requests"), append(filters, "show")...), req.Listing(req.AppPath("requests"), filters...)
	view := supportpage.RequestList{
		Frame: req.Frame("Requests", "requests"), Path: list.Path, Failed: q.Failed, Counted: day.Requests, Failures: day.Failures,
		KeptDays: int(s.Store.Stats().KeepsFailures().Hours() / 24), Identity: q.Identity, Class: req.Query("status"), Classes: statusClasses,
		Code: string(q.Code), Route: q.Route, RequestID: req.Query("request"), Filtered: len(plain.Filter) > 0,
		All: plain.At("", ""), OnlyFailed: plain.At("show", "failed"),
	}
	if view.Keys, err = keyFilter(req); err != nil {
		return site.Response{}, err
	}
	if !q.KeyID.IsZero() {
		view.KeyID = q.KeyID.Format(ids.APIKey)
	}
	if view.RequestID != "" {
		if id, err := ids.Parse(ids.Request, view.RequestID); err == nil {
			return site.Redirect(requestPath(req, id)), nil
		}
		view.Problems = []component.Problem{{Field: "request", Message: "Enter a request ID such as req_01m7ewzp3pfr4976jxkvfa63gm."}}
		return site.Invalid(supportpage.Requests(view)), nil
	}
	found, next, err := req.Reports().Requests(req.Context, q)
	if err != nil {
		return site.Response{}, err
	}
	for _, r := range found {
		view.Requests = append(view.Requests, newRequestRow(req, r))
	}
	older := ""
	if next != nil {
		older, view.Unfinished = next.Before.Format(ids.Request), len(found) < p.Limit
	}
	view.Pages = list.Pages("before", !p.Before.IsZero(), older)
	return site.Show(supportpage.Requests(view)), nil
}

// keyFilter lists the API keys to filter by, for members who may read keys.
func keyFilter(req *site.Request) ([]component.Option, error) {
	if !req.May(tenancy.KeysRead) {
		return nil, nil
	}
	options := []component.Option{{Value: "", Text: "All keys"}}
	keys, _, err := req.Tenant().Keys(req.Context, store.Page{Limit: site.MaxOptions})
	for _, key := range keys {
		options = append(options, component.Option{Value: key.ID.Format(ids.APIKey), Text: key.Name + " " + key.Masked()})
	}
	return options, err
}

func requestPath(req *site.Request, id ids.ID) string {
	return req.AppPath("requests", id.Format(ids.Request))
}

func newRequestRow(req *site.Request, r reports.Request) supportpage.RequestRow {
	row := supportpage.RequestRow{
		Href: requestPath(req, r.ID), ID: r.ID.Format(ids.Request), At: r.At, Method: r.Method, Route: r.Route, Status: r.Status, Code: string(r.Code),
		CodeHref: "/docs/errors/" + string(r.Code), TookMicros: r.TookMicros, KeyName: r.KeyName, KeyMasked: r.KeyMasked, Feature: r.Feature,
		KeyHref: req.LinkIfPermitted(tenancy.KeysRead, "keys", r.KeyID.Format(ids.APIKey)),
	}
	if r.Identity != "" {
		row.Identity, row.WalletHref = r.Identity, req.CustomerLink(r.Identity)
	}
	return row
}

// maxRequestDenials is how many denials of one request its page lists. A batch may have
// more.
const maxRequestDenials = 100

// request shows a request, or what it did if only that is kept.
func (s *Pages) request(req *site.Request, id ids.ID) (site.Response, error) {
	view := supportpage.RequestDetails{List: req.AppPath("requests"), ID: id.Format(ids.Request)}
	r, err := req.Reports().Request(req.Context, id)
	switch {
	case err == nil:
		view.Known, view.Row, view.Message = true, newRequestRow(req, r), r.Message
		if view.Message == "" && r.Code != "" {
			view.Message = fault.New(r.Code).Message
		}
	case !fault.Is(err, fault.PathNotFound):
		return site.Response{}, err
	}
	if err := requestResult(req, id, &view); err != nil {
		return site.Response{}, err
	}
	if !view.Known && view.TxnHref == "" && len(view.Denials) == 0 {
		return site.Response{}, fault.New(fault.PathNotFound)
	}
	view.Frame = req.Frame("Request "+view.ID, "requests")
	return site.Show(supportpage.RequestPage(view)), nil
}

// requestResult finds the charge and the denials of a request, for members who may read
// the journal. A request's charge has its id.
func requestResult(req *site.Request, id ids.ID, view *supportpage.RequestDetails) error {
	if !req.May(tenancy.JournalRead) {
		return nil
	}
	t, err := req.Reports().Transaction(req.Context, id)
	switch {
	case err == nil:
		view.TxnHref, view.TxnTitle = req.TransactionPath(id), "View deposit"
		if t.Event != nil {
			view.TxnTitle = "View charge"
			view.Row.Feature = t.Event.FeatureKey
			if !view.Known {
				view.Row.At = t.Event.CreatedAt
			}
		}
		view.Row.Identity, view.Row.WalletHref = t.Identity, req.WalletLink(t.WalletID)
	case !fault.Is(err, fault.PathNotFound):
		return err
	}
	denials, _, err := req.Reports().Denials(req.Context, reports.DenialQuery{RequestID: id, Page: store.Page{Limit: maxRequestDenials}})
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
