package store_test

import (
	"strings"
	"testing"
	"time"

	"purser/billing"
	"purser/ids"
	"purser/metering"
	"purser/payments/sandbox/persist"
	"purser/store"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/storetest"
)

// storefront is what a tenant needs to sell plans: an account at the provider that knows
// them, and a lease for calls to it.
type storefront struct {
	tenant
	connection payments.Connection
	plan       billing.Plan // synchronized
	credit     metering.Credit
	feature    metering.Feature
}

// aMonth is the period that starts at the moment of the tests.
var aMonth = billing.Month.Containing(moment, moment)

func newStorefront(tb testing.TB, db *store.Store) storefront {
	tb.Helper()
	s := storefront{tenant: newTenant(tb, db)}
	s.credit = s.newCredit(tb, "tokens")
	s.feature = s.newFeature(tb, featureOf("messages", "tokens"))
	s.connection = s.connect(tb)
	s.plan = s.newPlan(tb, "pro", 2900, 1_000)
	return s
}

func (a tenant) connect(tb testing.TB) payments.Connection {
	tb.Helper()
	c, err := a.Accounts().PutConnection(tb.Context(), payments.Connection{
		ID: ids.New(), Mode: payments.StripeConnection, Live: true, AccountID: "acct_1", SealedKey: []byte("sealed key"), KeyLastFour: "9fQ2",
		Secrets: []payments.SealedSecret{{Sealed: []byte("current")}, {Sealed: []byte("former"), Until: moment + 1}},
	}, moment)
	noError(tb, err)
	return c
}

// newPlan is a plan that the provider has, and that grants tokens.
func (s storefront) newPlan(tb testing.TB, key string, cents int64, tokens metering.Amount) billing.Plan {
	tb.Helper()
	draft := billing.PlanDraft{
		Key: key, Name: key, Price: billing.Price{AmountCents: cents, Currency: "usd", Interval: billing.Month}, Active: true, TopupsEnabled: true,
		Limits: []metering.Limit{{FeatureKey: "messages", Limit: 5, Period: metering.LimitBilling, Overage: metering.OverageBlock}},
		Grants: []billing.Grant{{CreditKey: "tokens", Amount: tokens}},
	}
	p, err := s.CreatePlan(tb.Context(), draft, func(catalog billing.Catalog) (billing.Plan, error) {
		return billing.NewPlan(ids.New(), draft, catalog, moment)
	})
	noError(tb, err)
	terms := p.Terms()
	terms.PriceID = priceOf(key)
	p, err = s.Payments().PlanSynced(tb.Context(), s.lease(tb, "plan:"+key), payments.SyncedPlan{
		PlanID: p.ID, Began: p.Sync, Connection: s.connection.ID, ProductID: "prod_" + key, PriceID: terms.PriceID, Terms: terms,
	}, moment)
	noError(tb, err)
	return p
}

func priceOf(planKey string) string { return "price_" + planKey }

// lease takes a lease that is to be had.
func (a tenant) lease(tb testing.TB, name string) queue.Fence {
	tb.Helper()
	f, held, err := a.Queue().Lease(tb.Context(), name, ids.New(), 30*time.Second)
	noError(tb, err)
	if !held {
		tb.Fatalf("the lease %q is taken", name)
	}
	noError(tb, a.Queue().Release(tb.Context(), f))
	return f
}

// checkout is a request for a page on which to buy the plan.
func (s storefront) checkout(tb testing.TB, identity string, plan billing.Plan) (payments.OperationRecord, billing.Change) {
	tb.Helper()
	change := billing.Change{ID: ids.New(), Kind: billing.Checkout, Target: plan.Terms(), State: billing.ChangeRequested, RequestedAt: moment}
	rec := s.begin(tb, identity, billing.OperationCheckout, func(i *payments.Decision) { i.Change = &change })
	return rec, change
}

// begin keeps the intent of a request under an idempotency key of its own.
func (s storefront) begin(tb testing.TB, identity string, kind billing.OperationKind, decide func(*payments.Decision)) payments.OperationRecord {
	tb.Helper()
	op := opOf(kind, ids.New().String())
	rec, began, err := s.Payments().Begin(tb.Context(), payments.BeginInput{
		Fence: s.lease(tb, "identity:"+identity), Identity: identity, PlanKey: s.plan.Key, CreditKey: "tokens", Op: op, Now: moment,
		Decide: func(payments.CustomerState) (payments.Decision, error) {
			intent := payments.Decision{Operation: op}
			decide(&intent)
			return intent, nil
		},
	})
	noError(tb, err)
	if !began {
		tb.Fatal("it had begun before")
	}
	return rec
}

func opOf(kind billing.OperationKind, key string) billing.Operation {
	parameters := billing.NewParameters(kind)
	switch {
	case parameters.Change != nil:
		parameters.Change.ExpiresAt = 1
	case parameters.Checkout != nil:
		parameters.Checkout.ExpiresAt = 1
	}
	return billing.Operation{
		ID: ids.New(), Kind: kind, IdempotencyKey: key, Fingerprint: billing.Fingerprint{1}, Parameters: parameters,
		Step: billing.StepSession, Attempt: 1, State: billing.OperationRunning, CreatedAt: moment,
	}
}

// paid is what the provider says of a subscription once an invoice for a month of
// the plan is paid.
func paid(providerID string, plan billing.Plan, invoices ...string) billing.ProviderSubscription {
	remote := billing.ProviderSubscription{ID: providerID, Status: billing.ProviderActive, PriceID: priceOf(plan.Key), Period: aMonth}
	for i, id := range invoices {
		period := aMonth
		reason := billing.ReasonCreate
		for range i {
			period = billing.Month.Containing(moment, period.End)
			reason = billing.ReasonCycle
		}
		remote.Period = period
		remote.Invoices = append(remote.Invoices, billing.ProviderInvoice{
			ID: id, Status: billing.InvoicePaid, Reason: reason, CreatedAt: period.Start, AmountPaid: plan.AmountCents, Currency: plan.Currency,
			IntentID: "pi_" + id, ChargeID: "ch_" + id,
			Lines: []billing.ProviderLine{{Subscription: true, PriceID: priceOf(plan.Key), AmountCents: plan.AmountCents, Period: period}},
		})
	}
	return remote
}

// subscribe has the identity buy the plan and pay for a month.
func (s storefront) subscribe(tb testing.TB, identity, providerID string) billing.Projection {
	tb.Helper()
	_, change := s.checkout(tb, identity, s.plan)
	return s.apply(tb, identity, change.ID, paid(providerID, s.plan, "in_"+providerID))
}

func (s storefront) apply(tb testing.TB, identity string, bought ids.ID, remote billing.ProviderSubscription) billing.Projection {
	tb.Helper()
	p, err := s.Payments().ApplySubscription(tb.Context(), payments.ProviderReport{
		Fence: s.lease(tb, "identity:"+identity), Connection: s.connection.ID, Remote: remote, CheckoutID: bought, Now: moment,
	})
	noError(tb, err)
	return p
}

// topUp is a request for a page on which to buy a hundred tokens for 30.00.
func (s storefront) topUp(tb testing.TB, identity string) billing.TopUp {
	tb.Helper()
	t := billing.TopUp{
		ID: ids.New(), Identity: identity, Credit: billing.Grant{CreditID: s.credit.ID, CreditKey: "tokens", Amount: 100},
		AmountCents: 3000, Currency: "usd", ConnectionID: s.connection.ID, CustomerID: "cus_" + identity, Live: true, ExpiresAt: moment + 1000,
		Status: billing.TopUpOpen, CreatedAt: moment,
	}
	s.begin(tb, identity, billing.OperationTopUp, func(i *payments.Decision) { i.TopUp = &t })
	return t
}

// sessionOf is what the provider says of a top-up's page once it is paid.
func sessionOf(t billing.TopUp) billing.ProviderSession {
	id := "cs_" + t.ID.String()
	return billing.ProviderSession{
		ID: id, Status: billing.SessionComplete, Paid: true, Live: true, AmountTotal: t.AmountCents, Currency: t.Currency,
		CustomerID: t.CustomerID, IntentID: "pi_" + id, ChargeID: "ch_" + id, URL: "https://pay.example/" + id, ExpiresAt: t.ExpiresAt,
	}
}

// buy has the identity pay for a top-up.
func (s storefront) buy(tb testing.TB, identity string) (billing.TopUp, billing.ProviderSession) {
	tb.Helper()
	t := s.topUp(tb, identity)
	remote := sessionOf(t)
	_, err := s.Payments().ApplyTopUp(tb.Context(), s.lease(tb, "identity:"+identity), t.ID, remote, moment, nil)
	noError(tb, err)
	return t, remote
}

// balance is what the identity holds of tokens, and what it owes.
func (a tenant) balance(tb testing.TB, identity string, credit metering.Credit) (held, owed metering.Amount) {
	tb.Helper()
	w, err := a.Wallet(tb.Context(), identity)
	noError(tb, err)
	b := w.Balance(credit.ID)
	return b.Amount, b.Debt
}

// billed gives a fixture something in each of billing's tables.
func (h *fixture) billed(tb testing.TB) {
	tb.Helper()
	h.connection = h.connect(tb)
	s := storefront{tenant: h.tenant, connection: h.connection, credit: h.credit, feature: h.feature}
	s.plan = s.newPlan(tb, "max", 9900, 1_000)
	_, err := h.Accounts().KeepCustomer(tb.Context(), h.connection.ID, payments.CustomerOwner{Identity: "ann@example.com", Fence: h.lease(tb, "identity:ann@example.com")}, "cus_ann", moment)
	noError(tb, err)
	projected := s.subscribe(tb, "bob@example.com", "sub_bob")
	h.paidSubscription = projected.Subscription
	second, extra := s.checkout(tb, "bob@example.com", s.plan)
	s.apply(tb, "bob@example.com", extra.ID, paid("sub_extra", s.plan, "in_extra")) // and an alert, and an action
	h.op, h.change = second, extra
	h.topUp, _ = s.buy(tb, "bob@example.com")
	noError(tb, h.Accounts().ReceiveEvent(tb.Context(), h.connection.ID, payments.WebhookEvent{ID: "evt_1", Type: "invoice.paid", Object: "in_1", ReceivedAt: moment, Outcome: "queued"},
		[]queue.Job{{Kind: queue.JobInvoice, Object: "in_1", DueAt: moment}}))
	due, err := h.DueJobs(tb.Context(), moment, 100)
	noError(tb, err)
	h.work = due[0]
	alerts, _, err := h.Payments().Alerts(tb.Context(), store.Page{Limit: 1}, false)
	noError(tb, err)
	h.alertID = alerts[0].ID
	noError(tb, h.db.SandboxAccounts().Update(tb.Context(), h.application.ID, persist.Want{}, func(session persist.Session) (persist.Change, error) {
		return persist.Change{Head: []byte("an account"), WakeAt: moment, Rows: []persist.Row{{Key: "price/1", Kind: "price", Nth: 1, Document: []byte("{}")}}}, nil
	}))
}

// startFree has the identity begin a free plan, which runs here.
func (s storefront) startFree(tb testing.TB, identity string) billing.Subscription {
	tb.Helper()
	terms := s.plan.Terms()
	terms.AmountCents, terms.PriceID = 0, ""
	free, settled := billing.StartFreeSubscription(ids.New(), identity, terms, nil, moment)
	s.begin(tb, identity, billing.OperationChange, func(i *payments.Decision) {
		i.Operation.State, i.Subscription, i.Settled, i.Answer = billing.OperationDone, &free, settled, &free
	})
	return free
}

// dumpOf is every row of an application in the shared database, each with the
// transaction that wrote it.
func dumpOf(t *testing.T, app ids.ID) string {
	t.Helper()
	owner := connect(t, storetest.URL(t))
	var rows []string
	for _, table := range append(tablesOfTenants(t, owner), controlTables...) {
		rows = append(rows, texts(t, owner, `SELECT '`+table+` ' || r.xmin || ' ' || r::text FROM `+table+` r WHERE app_id = $1 ORDER BY 1`, app)...)
	}
	return strings.Join(rows, "\n")
}
