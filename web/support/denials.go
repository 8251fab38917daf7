package support

import (
	"strconv"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store"
	"purser/store/reports"
	"purser/tenancy"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

var denialReasons = []component.Option{
	{Value: "", Text: "All reasons"},
	{Value: string(fault.InsufficientBalance), Text: reasonText(fault.InsufficientBalance)},
	{Value: string(fault.FeatureLimitExceeded), Text: reasonText(fault.FeatureLimitExceeded)},
	{Value: string(fault.SubscriptionInactive), Text: reasonText(fault.SubscriptionInactive)},
}

// reasonText is the reason of a denial in a few words.
func reasonText(code fault.Code) string {
	switch code {
	case fault.InsufficientBalance:
		return "Balance too low"
	case fault.FeatureLimitExceeded:
		return "Plan limit reached"
	case fault.SubscriptionInactive:
		return "Subscription on hold"
	default:
		return string(code)
	}
}

// denialQuery parses the filters and their validation errors.
func denialQuery(req *site.Request) (q reports.DenialQuery, problems []component.Problem) {
	q.Identity, q.FeatureKey = req.Query("identity"), req.Query("feature")
	if reason := req.Query("reason"); component.HasOption(denialReasons, reason) {
		q.Reason = fault.Code(reason)
	}
	q.From, q.To, problems = readDays(req, req.Zone())
	return q, problems
}

// readDays reads the filter by days of a time zone: half-open, in milliseconds, 0 for none.
func readDays(req *site.Request, zone *time.Location) (from, to int64, problems []component.Problem) {
	for _, end := range []struct {
		field string
		into  *int64
		days  int // to include the whole last day
	}{{"from", &from, 0}, {"to", &to, 1}} {
		text := req.Query(end.field)
		if text == "" {
			continue
		}
		day, err := time.Parse(dayLayout, text)
		if err != nil {
			problems = append(problems, component.Problem{Field: end.field, Message: "Enter a date such as 2026-01-31."})
			continue
		}
		*end.into = rollup.FirstOfDay(day.Year(), day.Month(), day.Day()+end.days, zone)
	}
	if len(problems) == 0 && from != 0 && to != 0 && from >= to {
		problems = append(problems, component.Problem{Field: "to", Message: "Enter a day on or after the first one."})
	}
	return from, to, problems
}

func (s *Pages) denials(req *site.Request, p store.Page) (site.Response, error) {
	features, err := featureFilter(req, "All features")
	if err != nil {
		return site.Response{}, err
	}
	q, problems := denialQuery(req)
	q.Page = p
	list := req.Listing(req.AppPath("denials"), "identity", "feature", "reason", "from", "to")
	view := supportpage.DenialList{
		Frame: req.Frame("Denials", "denials"), Path: list.Path, Check: req.AppPath("check"), Identity: q.Identity, FeatureKey: q.FeatureKey, Features: features,
		Reason: string(q.Reason), Reasons: denialReasons, From: req.Query("from"), To: req.Query("to"), Active: len(list.Filter) > 0,
		KeptDays: s.keptDenialDays(), Problems: problems, Presets: presets(req, list),
	}
	if len(problems) > 0 {
		return site.Invalid(supportpage.Denials(view)), nil
	}
	found, next, err := req.Reports().Denials(req.Context, q)
	if err != nil {
		return site.Response{}, err
	}
	for _, d := range found {
		view.Denials = append(view.Denials, newDenialRow(req, d, true))
	}
	view.Pages, view.Unfinished = denialPages(list, p, next, len(found))
	return site.Show(supportpage.Denials(view)), nil
}

// denialPages links to the next page, and reports whether this one is partial.
func denialPages(list site.Listing, p store.Page, next *store.Page, found int) (pages component.Pages, unfinished bool) {
	older := ""
	if next != nil {
		older, unfinished = next.Before.Format(ids.Denial), found < p.Limit
	}
	return list.Pages("before", !p.Before.IsZero(), older), unfinished
}

func (s *Pages) keptDenialDays() int { return int(s.Store.Stats().KeepsDenials().Hours() / 24) }

func newDenialRow(req *site.Request, d reports.Denial, whole bool) supportpage.DenialRow {
	row := supportpage.DenialRow{
		Href: req.AppPath("denials", d.ID.Format(ids.Denial)), FeatureKey: d.FeatureKey, Quantity: d.Decision.Event.Quantity, Unit: d.Unit,
		Check: d.Check, Reason: reasonText(d.Decision.Code), Numbers: comparedText(&d.Decision), At: d.At(),
	}
	if whole {
		row.Identity = d.Identity
		if !d.WalletID.IsZero() {
			row.WalletHref = req.WalletLink(d.WalletID)
		}
	}
	return row
}

// comparedText is what the gate that refused has compared.
func comparedText(d *metering.Decision) string {
	for _, g := range d.Gates() {
		if g.Outcome == metering.GateFailed {
			return gateLine(g, d).Numbers
		}
	}
	return ""
}

func (s *Pages) denial(req *site.Request, id ids.ID) (site.Response, error) {
	d, err := req.Reports().Denial(req.Context, id)
	if err != nil {
		return site.Response{}, err
	}
	e := &d.Decision.Event
	view := supportpage.DenialDetails{
		List: req.AppPath("denials"), ID: id.Format(ids.Denial), Check: d.Check, Code: string(d.Decision.Code), CodeHref: "/docs/errors/" + string(d.Decision.Code),
		Title: fault.New(d.Decision.Code).Message, Gates: gateLines(&d.Decision), Identity: d.Identity,
		FeatureKey: d.FeatureKey, FeatureName: d.FeatureName, Unit: d.Unit, Quantity: e.Quantity, EventID: e.EventID, EntityID: e.EntityID,
		Charge: e.Charge, Balance: d.Decision.Before, Allowance: d.Decision.Allowance, At: d.At(),
		KeyName: d.KeyName, KeyID: d.KeyID.Format(ids.APIKey), RequestID: d.RequestID.Format(ids.Request), Again: checkAgain(req, d),
		FeatureHref: req.LinkIfPermitted(tenancy.FeaturesRead, "features", d.FeatureKey, "edit"),
	}
	if !d.WalletID.IsZero() {
		view.HasWallet, view.WalletHref = true, req.WalletLink(d.WalletID)
		view.Wallet = req.LinkIfPermitted(tenancy.WalletsRead, "wallets", d.WalletID.Format(ids.Wallet), "denials")
	}
	if d.KeyName != "" {
		view.KeyHref = req.LinkIfPermitted(tenancy.KeysRead, "keys", view.KeyID)
	}
	if !d.RequestID.IsZero() {
		view.RequestHref = req.LinkIfPermitted(tenancy.RequestsRead, "requests", view.RequestID)
	}
	view.Frame = req.Frame("Denied: "+d.FeatureName, "denials")
	return site.Show(supportpage.DenialPage(view)), nil
}

// checkAgain is the URL of the same check, or "" if its amount is not known: of usage that
// an allowance has covered in part, or that was denied before it had a price.
func checkAgain(req *site.Request, d reports.Denial) string {
	e := &d.Decision.Event
	list := site.Listing{Path: req.AppPath("check"), Filter: map[string][]string{
		"identity": {d.Identity}, site.Exact: {"1"}, "feature": {d.FeatureKey}, "quantity": {strconv.FormatInt(e.Quantity, 10)},
	}}
	if e.EntityID != "" {
		list.Filter.Set("entity", e.EntityID)
	}
	if e.Charge.PricingMode == metering.Callback {
		if e.Charge.Amount == 0 || e.Charge.Billable != e.Quantity {
			return ""
		}
		list.Filter.Set("amount", e.Charge.Amount.Credits())
	}
	return list.At("", "")
}

func (s *Pages) walletDenials(req *site.Request, p store.Page) (site.Response, error) {
	head, w, err := s.walletHead(req, "denials")
	if err != nil {
		return site.Response{}, err
	}
	found, next, err := req.Reports().Denials(req.Context, reports.DenialQuery{Identity: w.Identity, Page: p})
	if err != nil {
		return site.Response{}, err
	}
	view := supportpage.WalletDenials{WalletHead: head, KeptDays: s.keptDenialDays()}
	for _, d := range found {
		view.Denials = append(view.Denials, newDenialRow(req, d, false))
	}
	view.Pages, _ = denialPages(site.Listing{Path: head.Path + "/denials"}, p, next, len(found))
	return site.Show(supportpage.WalletDenialsPage(view)), nil
}
