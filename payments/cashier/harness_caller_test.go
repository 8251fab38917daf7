package cashier_test

import (
	"strconv"
	"strings"
	"sync/atomic"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/cashier"
	"purser/store"
	"purser/store/storetest"
)

const million = metering.Amount(1_000_000)

// credit makes a kind of credit.
func (r *harness) credit(key string) {
	r.Helper()
	r.check(r.store.App(r.scope).CreateCredit(r.Context(), metering.Credit{ID: ids.New(), Key: key, Name: key, Unit: "unit", Revision: 1, CreatedAt: r.now()}))
}

// planOption changes a plan draft.
type planOption func(*billing.PlanDraft)

func grants(credit string, amount metering.Amount) planOption {
	return func(d *billing.PlanDraft) {
		d.Grants = append(d.Grants, billing.Grant{CreditKey: credit, Amount: amount})
	}
}

func yearly(d *billing.PlanDraft) { d.Interval = billing.Year }

func in(currency string) planOption { return func(d *billing.PlanDraft) { d.Currency = currency } }

func noTopUps(d *billing.PlanDraft) { d.TopupsEnabled = false }

// plan makes a monthly plan in dollars and waits until the provider has it.
func (r *harness) plan(key string, cents int64, how ...planOption) billing.Plan {
	r.Helper()
	r.draft(key, cents, how...)
	r.settle()
	plan := must[billing.Plan](r)(r.store.App(r.scope).Plan(r.Context(), key))
	if plan.Sync.Status != billing.SyncDone {
		r.Fatalf("the plan is %s: %s", plan.Sync.Status, plan.Sync.Error)
	}
	return plan
}

// draft creates a plan without syncing it.
func (r *harness) draft(key string, cents int64, how ...planOption) billing.Plan {
	r.Helper()
	draft := billing.PlanDraft{
		Key: key, Name: strings.ToUpper(key), TopupsEnabled: true, Active: true,
		Price: billing.Price{AmountCents: cents, Currency: "usd", Interval: billing.Month},
	}
	for _, change := range how {
		change(&draft)
	}
	return must[billing.Plan](r)(r.store.App(r.scope).CreatePlan(r.Context(), draft, func(catalog billing.Catalog) (billing.Plan, error) {
		return billing.NewPlan(ids.New(), draft, catalog, r.now())
	}))
}

var keyNumber atomic.Int64

// newKey is an unused idempotency key.
func newKey() string { return "key-" + strconv.FormatInt(keyNumber.Add(1), 10) }

func (r *harness) change(plan string) (billing.Subscription, error) {
	return r.cashier.Change(r.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: plan}, newKey())
}

func (r *harness) changed(plan string) billing.Subscription {
	r.Helper()
	return must[billing.Subscription](r)(r.change(plan))
}

func (r *harness) cancel(atPeriodEnd bool) (billing.Subscription, error) {
	return r.cashier.Cancel(r.Context(), r.scope, billing.CancelRequest{Identity: "ada", CancelAtPeriodEnd: atPeriodEnd}, newKey())
}

func (r *harness) checkoutRequest(plan string) billing.CheckoutRequest {
	return billing.CheckoutRequest{Identity: "ada", PlanKey: plan, SuccessURL: "http://shop.test/thanks", CancelURL: "http://shop.test/back"}
}

func (r *harness) checkout(plan string) cashier.Page {
	r.Helper()
	return must[cashier.Page](r)(r.cashier.SubscriptionCheckout(r.Context(), r.scope, r.checkoutRequest(plan), newKey()))
}

func (r *harness) topUpRequest(cents int64) billing.TopUpRequest {
	return billing.TopUpRequest{
		Identity: "ada", CreditKey: "tokens", Amount: 30 * million, AmountCents: cents, Currency: "usd",
		SuccessURL: "http://shop.test/thanks", CancelURL: "http://shop.test/back",
	}
}

func (r *harness) topUp(cents int64) cashier.Page {
	r.Helper()
	return must[cashier.Page](r)(r.cashier.TopUpCheckout(r.Context(), r.scope, r.topUpRequest(cents), newKey()))
}

// subscribe buys the plan on a page, with the card.
func (r *harness) subscribe(plan, card string) billing.Subscription {
	r.Helper()
	r.pay(r.checkout(plan).URL, card)
	r.settle()
	return r.subscription()
}

// subscription is what ada has; it fails the test when she has none.
func (r *harness) subscription() billing.Subscription {
	r.Helper()
	return must[billing.Subscription](r)(r.cashier.Subscription(r.Context(), r.scope, "ada"))
}

func (r *harness) wantNone() {
	r.Helper()
	_, err := r.cashier.Subscription(r.Context(), r.scope, "ada")
	wantFault(r, err, fault.SubscriptionNotFound)
}

// wantNotActive: a subscription that waits for its first payment may be there.
func (r *harness) wantNotActive() {
	r.Helper()
	s, err := r.cashier.Subscription(r.Context(), r.scope, "ada")
	if err == nil && s.Status != metering.StatusIncomplete {
		r.Errorf("the subscription is %s", s.Status)
	} else if err != nil {
		wantFault(r, err, fault.SubscriptionNotFound)
	}
}

func (r *harness) wantOn(plan string, status metering.SubscriptionStatus) billing.Subscription {
	r.Helper()
	s := r.subscription()
	if s.Terms.PlanKey != plan || s.Status != status {
		r.Errorf("the subscription is %s on %s, want %s on %s", s.Status, s.Terms.PlanKey, status, plan)
	}
	return s
}

// balance is what ada holds of the credit, and owes.
func (r *harness) balance(credit string) (amount, debt metering.Amount) {
	r.Helper()
	w, err := r.store.App(r.scope).Wallet(r.Context(), "ada")
	if fault.Is(err, fault.WalletNotFound) {
		return 0, 0
	}
	r.check(err)
	for _, b := range w.Balances {
		if b.CreditKey == credit {
			return b.Amount, b.Debt
		}
	}
	return 0, 0
}

func (r *harness) wantTokens(amount, debt metering.Amount) {
	r.Helper()
	if got, owed := r.balance("tokens"); got != amount || owed != debt {
		r.Errorf("ada holds %s and owes %s, want %s and %s", got, owed, amount, debt)
	}
}

// deposits is what ada was given, newest first.
func (r *harness) deposits() (list []store.Deposit) {
	r.Helper()
	list, _, err := r.store.App(r.scope).Deposits(r.Context(), store.DepositPage{Identity: "ada", Limit: 100})
	r.check(err)
	return list
}

func (r *harness) wantTopUp(id ids.ID, status billing.TopUpStatus) {
	r.Helper()
	got := storetest.Value[string](r, storetest.URL(r), `SELECT status FROM topups WHERE app_id = $1 AND id = $2`, r.scope.AppID, id)
	if got != string(status) {
		r.Errorf("the top-up is %s, want %s", got, status)
	}
}
