package web

import (
	"strconv"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/payments"
	"purser/store/reports"
	"purser/views/component"
	supportpage "purser/views/page/support"
)

func (s *Site) events(req *request) (response, error) {
	p, err := req.before(ids.Transaction)
	if err != nil {
		return response{}, err
	}
	options, err := featureFilter(req, "All features")
	if err != nil {
		return response{}, err
	}
	q := eventQuery(req)
	q.Page = p
	found, next, err := req.reports().Events(req.context, q)
	if err != nil {
		return response{}, err
	}
	list := req.listing(req.appPath("events"), "event", "feature")
	view := supportpage.EventList{Frame: req.frame("Events", "events"), Path: list.path, Export: list.file(), EventID: q.EventID, FeatureKey: q.FeatureKey, Features: options}
	for _, e := range found {
		view.Events = append(view.Events, newEventRow(req, e, true))
	}
	older := ""
	if next != nil {
		older = next.Before.Format(ids.Transaction)
		view.Unfinished = len(found) < p.Limit
	}
	view.Pages = list.pages("before", !p.Before.IsZero(), older)
	return show(supportpage.Events(view)), nil
}

func eventQuery(req *request) reports.EventQuery {
	return reports.EventQuery{EventID: req.query("event"), FeatureKey: req.query("feature")}
}

// featureFilter lists the features to filter by.
func featureFilter(req *request, none string) ([]component.Option, error) {
	options := []component.Option{{Value: "", Text: none}}
	features, _, err := req.tenant().Features(req.context, store.Page{Limit: maxOptions})
	for _, f := range features {
		options = append(options, component.Option{Value: f.Key, Text: f.Name + " (" + f.Key + ")"})
	}
	return options, err
}

var depositKinds = []component.Option{
	{Value: "", Text: "All kinds"},
	{Value: string(metering.EntryDeposit), Text: "Deposits"},
	{Value: string(metering.EntryGrant), Text: "Grants"},
	{Value: string(metering.EntryTopUp), Text: "Top-ups"},
}

const dayLayout = "2006-01-02"

// depositQuery parses the filters and their validation errors.
func depositQuery(req *request) (q reports.DepositQuery, problems []component.Problem) {
	q.CreditKey = req.query("credit")
	for _, kind := range depositKinds {
		if kind.Value == req.query("kind") {
			q.Kind = metering.EntryKind(kind.Value)
		}
	}
	q.From, q.To, problems = readDays(req)
	return q, problems
}

func (s *Site) deposits(req *request) (response, error) {
	p, err := req.before(ids.Deposit)
	if err != nil {
		return response{}, err
	}
	q, problems := depositQuery(req)
	q.Page = p
	list := req.listing(req.appPath("deposits"), "kind", "credit", "from", "to")
	view := supportpage.DepositList{
		Frame: req.frame("Deposits", "deposits"), Path: list.path, Export: list.file(),
		Kind: string(q.Kind), Kinds: depositKinds, CreditKey: q.CreditKey, Credits: []component.Option{{Value: "", Text: "All credits"}},
		From: req.query("from"), To: req.query("to"), Active: len(list.filter) > 0, Problems: problems,
	}
	credits, _, err := req.tenant().Credits(req.context, store.Page{Limit: maxOptions})
	if err != nil {
		return response{}, err
	}
	for _, c := range credits {
		view.Credits = append(view.Credits, component.Option{Value: c.Key, Text: c.Name})
	}
	if len(problems) > 0 {
		return invalid(supportpage.Deposits(view)), nil
	}
	found, more, err := req.reports().FindDeposits(req.context, q)
	if err != nil {
		return response{}, err
	}
	for _, d := range found {
		view.Deposits = append(view.Deposits, newDepositRow(req, d, true))
	}
	view.Pages = list.pages("before", !p.Before.IsZero(), lastID(found, more, ids.Deposit, func(d reports.DepositFound) ids.ID { return d.ID }))
	return show(supportpage.Deposits(view)), nil
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

func subscriptionQuery(req *request) reports.SubscriptionQuery {
	chosen := req.query("status")
	q := reports.SubscriptionQuery{OnHold: chosen == onHold}
	for _, status := range subscriptionStatuses {
		if status.Value == chosen && !q.OnHold {
			q.Status = metering.SubscriptionStatus(chosen)
		}
	}
	return q
}

func (s *Site) subscriptions(req *request) (response, error) {
	p, err := req.before(ids.Subscription)
	if err != nil {
		return response{}, err
	}
	q := subscriptionQuery(req)
	q.Page = p
	found, more, err := req.reports().FindSubscriptions(req.context, q)
	if err != nil {
		return response{}, err
	}
	list := req.listing(req.appPath("subscriptions"), "status")
	view := supportpage.SubscriptionList{
		Frame: req.frame("Subscriptions", "subscriptions"), Path: list.path, Export: list.file(), Status: req.query("status"), Statuses: subscriptionStatuses,
	}
	for _, row := range found {
		view.Subscriptions = append(view.Subscriptions, newSubscriptionRow(req, row, true))
	}
	view.Pages = list.pages("before", !p.Before.IsZero(), lastID(found, more, ids.Subscription, func(s reports.SubscriptionFound) ids.ID { return s.ID }))
	return show(supportpage.Subscriptions(view)), nil
}

var checkoutKinds = []component.Option{
	{Value: "", Text: "All kinds"},
	{Value: string(payments.SubscriptionCheckout), Text: "Subscriptions"},
	{Value: string(payments.TopUpCheckout), Text: "Top-ups"},
}

func checkoutQuery(req *request) payments.CheckoutPage {
	q := payments.CheckoutPage{Identity: req.query("identity")}
	for _, kind := range checkoutKinds {
		if kind.Value == req.query("kind") {
			q.Kind = payments.CheckoutKind(kind.Value)
		}
	}
	return q
}

func (s *Site) checkouts(req *request) (response, error) {
	p, err := req.before(ids.Checkout)
	if err != nil {
		return response{}, err
	}
	q := checkoutQuery(req)
	q.Page = p
	found, more, err := req.payments().Checkouts(req.context, q)
	if err != nil {
		return response{}, err
	}
	list := req.listing(req.appPath("checkouts"), "identity", "kind")
	view := supportpage.CheckoutList{
		Frame: req.frame("Checkouts", "checkouts"), Path: list.path, Export: list.file(), Identity: q.Identity, Kind: string(q.Kind), Kinds: checkoutKinds,
	}
	for _, c := range found {
		row := supportpage.CheckoutRow{
			ID: c.ID.Format(ids.Checkout), Sells: c.PlanKey, Amount: c.Amount, CreditKey: c.CreditKey,
			Price: component.Sum{AmountCents: c.AmountCents, Currency: c.Currency}, Identity: c.Identity,
			WalletHref: req.listing(req.appPath("wallets")).at("q", c.Identity), State: component.CheckoutBadge(c.State), CreatedAt: c.CreatedAt,
		}
		if c.IsOpen() {
			row.ExpiresAt = c.ExpiresAt
		}
		view.Checkouts = append(view.Checkouts, row)
	}
	view.Pages = list.pages("before", !p.Before.IsZero(), lastID(found, more, ids.Checkout, func(c payments.Checkout) ids.ID { return c.ID }))
	return show(supportpage.Checkouts(view)), nil
}

// count formats a whole number.
func count(n int64) string {
	if n < 0 {
		return strconv.FormatInt(n, 10)
	}
	return component.CountText(uint64(n))
}
