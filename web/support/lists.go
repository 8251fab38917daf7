package support

import (
	"slices"
	"strconv"
	"strings"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/payments"
	"purser/store/reports"
	"purser/tenancy"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

func (s *Pages) events(req *site.Request, p store.Page) (site.Response, error) {
	options, err := featureFilter(req, "All features")
	if err != nil {
		return site.Response{}, err
	}
	q, problems := eventQuery(req)
	q.Page = p
	list := req.Listing(req.AppPath("events"), eventFilters...)
	view := supportpage.EventList{
		Frame: req.Frame("Events", "events"), Path: list.Path, Export: list.File(), EventID: q.EventID, Identity: q.Identity, FeatureKey: q.FeatureKey, Features: options,
		From: req.Query("from"), To: req.Query("to"), Presets: presets(req, list), Active: len(list.Filter) > 0, Problems: problems,
	}
	if len(problems) > 0 {
		return site.Invalid(supportpage.Events(view)), nil
	}
	found, next, err := findEvents(req, &q)
	if err != nil {
		return site.Response{}, err
	}
	for _, e := range found {
		view.Events = append(view.Events, newEventRow(req, e, true))
	}
	view.Unfinished = next != "" && len(found) < p.Limit
	if view.PackedUntil, err = packedUntil(req, q); err != nil {
		return site.Response{}, err
	}
	if q.Identity != "" {
		view.Pages = list.Pages("seq", req.Query("seq") != "", next)
	} else {
		view.Pages = list.Pages("before", !p.Before.IsZero(), next)
	}
	return site.Show(supportpage.Events(view)), nil
}

var eventFilters = []string{"event", "identity", "feature", "from", "to"}

// findEvents answers a query, turns it to the next page, and returns that page's position,
// which is empty at the end.
func findEvents(req *site.Request, q *reports.EventQuery) (found []reports.EventFound, position string, err error) {
	if q.Identity != "" && q.EventID == "" {
		found, q.BeforeSeq, err = req.Reports().EventsOfCustomer(req.Context, *q)
		if q.BeforeSeq != 0 {
			position = strconv.FormatInt(q.BeforeSeq, 10)
		}
		return found, position, err
	}
	found, next, err := req.Reports().Events(req.Context, *q)
	if q.Identity != "" { // of an event by its id
		found = slices.DeleteFunc(found, func(e reports.EventFound) bool { return !strings.EqualFold(e.Identity, q.Identity) })
	}
	if next != nil {
		q.Page, position = *next, next.Before.Format(ids.Transaction)
	}
	return found, position, err
}

// packedUntil is the time up to which the query lacks packed events, or 0 if it lacks none:
// those of one customer, and one event by its id, are found in blocks.
func packedUntil(req *site.Request, q reports.EventQuery) (int64, error) {
	if q.Identity != "" || q.EventID != "" {
		return 0, nil
	}
	at, err := req.Reports().PackedUntil(req.Context)
	if q.From > at+req.ClockOffset {
		return 0, err
	}
	return at, err
}

// eventQuery parses the filters and their validation errors.
func eventQuery(req *site.Request) (q reports.EventQuery, problems []component.Problem) {
	q = reports.EventQuery{EventID: req.Query("event"), Identity: req.Query("identity"), FeatureKey: req.Query("feature")}
	q.BeforeSeq, _ = strconv.ParseInt(req.Query("seq"), 10, 64)
	q.From, q.To, problems = readDays(req, req.Zone())
	return q, problems
}

func featureFilter(req *site.Request, none string) ([]component.Option, error) {
	features, err := req.FeatureOptions()
	return append([]component.Option{{Value: "", Text: none}}, features...), err
}

var depositKinds = []component.Option{
	{Value: "", Text: "All kinds"},
	{Value: string(metering.EntryDeposit), Text: "Deposits"},
	{Value: string(metering.EntryGrant), Text: "Grants"},
	{Value: string(metering.EntryTopUp), Text: "Top-ups"},
}

var depositFilters = []string{"identity", "kind", "credit", "from", "to"}

const dayLayout = "2006-01-02"

// depositQuery parses the filters and their validation errors.
func depositQuery(req *site.Request) (q reports.DepositQuery, problems []component.Problem) {
	q.Identity, q.CreditKey, q.Oldest = req.Query("identity"), req.Query("credit"), req.Query("sort") == sortOldest
	if kind := req.Query("kind"); component.HasOption(depositKinds, kind) {
		q.Kind = metering.EntryKind(kind)
	}
	q.From, q.To, problems = readDays(req, req.Zone())
	return q, problems
}

func (s *Pages) deposits(req *site.Request, p store.Page) (site.Response, error) {
	q, problems := depositQuery(req)
	q.Page = p
	list := req.Listing(req.AppPath("deposits"), append(depositFilters, "sort")...)
	keepOrder(list, sortOldest)
	view := supportpage.DepositList{
		Frame: req.Frame("Deposits", "deposits"), Path: list.Path, Export: list.File(),
		Identity: q.Identity, Kind: string(q.Kind), Kinds: depositKinds, CreditKey: q.CreditKey, Credits: []component.Option{{Value: "", Text: "All credits"}},
		From: req.Query("from"), To: req.Query("to"), Active: len(list.Without("sort")) > 0, Problems: problems,
		Presets: presets(req, list), Sort: list.Filter.Get("sort"), ByAge: byAge(list),
	}
	credits, err := creditChoices(req)
	if err != nil {
		return site.Response{}, err
	}
	view.Credits = append(view.Credits, credits...)
	if len(problems) > 0 {
		return site.Invalid(supportpage.Deposits(view)), nil
	}
	found, more, err := req.Reports().FindDeposits(req.Context, q)
	if err != nil {
		return site.Response{}, err
	}
	for _, d := range found {
		view.Deposits = append(view.Deposits, newDepositRow(req, d, true))
	}
	view.Pages = list.Pages("before", !p.Before.IsZero(), site.LastID(found, more, ids.Deposit, func(d reports.DepositFound) ids.ID { return d.ID }))
	return site.Show(supportpage.Deposits(view)), nil
}

// onHold is the filter for failed payments, in either of the two states.
const onHold = "hold"

var subscriptionStatuses = []component.Option{
	{Value: "", Text: "Any state"},
	{Value: onHold, Text: "Payment hold"},
	{Value: string(metering.StatusActive), Text: "Active"},
	{Value: string(metering.StatusTrialing), Text: "Trialing"},
	{Value: string(metering.StatusPastDue), Text: "Past due"},
	{Value: string(metering.StatusUnpaid), Text: "Unpaid"},
	{Value: string(metering.StatusPaused), Text: "Paused"},
	{Value: string(metering.StatusIncomplete), Text: "Incomplete"},
	{Value: string(metering.StatusCanceled), Text: "Ended"},
}

// subscriptionQuery parses the filters and lists the plans to filter by.
func subscriptionQuery(req *site.Request) (q reports.SubscriptionQuery, plans []component.Option, err error) {
	chosen := req.Query("status")
	q = reports.SubscriptionQuery{Identity: req.Query("identity"), OnHold: chosen == onHold, Oldest: req.Query("sort") == sortOldest}
	if !q.OnHold && component.HasOption(subscriptionStatuses, chosen) {
		q.Status = metering.SubscriptionStatus(chosen)
	}
	if !req.May(tenancy.PlansRead) {
		return q, nil, nil
	}
	plans = []component.Option{{Value: "", Text: "All plans"}}
	found, _, err := req.Tenant().Plans(req.Context, store.Page{Limit: site.MaxOptions})
	for _, plan := range found {
		plans = append(plans, component.Option{Value: plan.Key, Text: plan.Name})
		if plan.Key == req.Query("plan") {
			q.PlanID = plan.ID
		}
	}
	return q, plans, err
}

func (s *Pages) subscriptions(req *site.Request, p store.Page) (site.Response, error) {
	q, plans, err := subscriptionQuery(req)
	if err != nil {
		return site.Response{}, err
	}
	q.Page = p
	found, more, err := req.Reports().FindSubscriptions(req.Context, q)
	if err != nil {
		return site.Response{}, err
	}
	list := req.Listing(req.AppPath("subscriptions"), "identity", "plan", "status", "sort")
	keepOrder(list, sortOldest)
	view := supportpage.SubscriptionList{
		Frame: req.Frame("Subscriptions", "subscriptions"), Path: list.Path, Export: list.File(), Status: req.Query("status"), Statuses: subscriptionStatuses,
		Identity: q.Identity, Plan: req.Query("plan"), Plans: plans, Active: len(list.Without("sort")) > 0,
		Sort: list.Filter.Get("sort"), ByAge: byAge(list),
	}
	for _, row := range found {
		view.Subscriptions = append(view.Subscriptions, newSubscriptionRow(req, row, true))
	}
	view.Pages = list.Pages("before", !p.Before.IsZero(), site.LastID(found, more, ids.Subscription, func(s reports.SubscriptionFound) ids.ID { return s.ID }))
	return site.Show(supportpage.Subscriptions(view)), nil
}

var checkoutKinds = []component.Option{
	{Value: "", Text: "All kinds"},
	{Value: string(payments.SubscriptionCheckout), Text: "Subscriptions"},
	{Value: string(payments.TopUpCheckout), Text: "Top-ups"},
}

func checkoutQuery(req *site.Request) payments.CheckoutPage {
	q := payments.CheckoutPage{Identity: req.Query("identity")}
	if kind := req.Query("kind"); component.HasOption(checkoutKinds, kind) {
		q.Kind = payments.CheckoutKind(kind)
	}
	return q
}

func (s *Pages) checkouts(req *site.Request, p store.Page) (site.Response, error) {
	q := checkoutQuery(req)
	q.Page = p
	found, more, err := req.Payments().Checkouts(req.Context, q)
	if err != nil {
		return site.Response{}, err
	}
	list := req.Listing(req.AppPath("checkouts"), "identity", "kind")
	view := supportpage.CheckoutList{
		Frame: req.Frame("Checkouts", "checkouts"), Path: list.Path, Export: list.File(), Identity: q.Identity, Kind: string(q.Kind), Kinds: checkoutKinds,
	}
	for _, c := range found {
		row := supportpage.CheckoutRow{
			ID: c.ID.Format(ids.Checkout), Sells: c.PlanKey, Amount: c.Amount, CreditKey: c.CreditKey,
			Price: component.Sum{AmountCents: c.AmountCents, Currency: c.Currency}, Identity: c.Identity,
			WalletHref: req.CustomerLink(c.Identity), State: component.CheckoutBadge(c.State, c.IsOpen()), CreatedAt: c.CreatedAt,
		}
		if c.IsOpen() {
			row.ExpiresAt = c.ExpiresAt
		}
		view.Checkouts = append(view.Checkouts, row)
	}
	view.Pages = list.Pages("before", !p.Before.IsZero(), site.LastID(found, more, ids.Checkout, func(c payments.Checkout) ids.ID { return c.ID }))
	return site.Show(supportpage.Checkouts(view)), nil
}

// count formats a whole number.
func count(n int64) string {
	if n < 0 {
		return strconv.FormatInt(n, 10)
	}
	return component.CountText(uint64(n))
}
