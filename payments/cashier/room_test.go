package cashier_test

import (
	"fmt"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/cashier"
	"purser/payments/sandbox"
	"purser/store"
	"purser/store/queue"
	"purser/store/storetest"
)

// hold gives ada balances in other credits until she holds the number.
func (r *harness) hold(number int) {
	r.Helper()
	app := r.store.App(r.scope)
	w, err := app.Wallet(r.Context(), "ada")
	if !fault.Is(err, fault.WalletNotFound) {
		r.check(err)
	}
	for i := len(w.Balances); i < number; i++ {
		key := fmt.Sprintf("other-%d", i)
		r.credit(key)
		_, _, err := app.Deposit(r.Context(), store.Deposit{
			ID: ids.New(), Identity: "ada", CreditKey: key, Amount: 1, IdempotencyKey: &key, CreatedAt: r.now(),
		})
		r.check(err)
	}
}

func (r *harness) wantAlerts(kinds ...billing.AlertKind) {
	r.Helper()
	alerts, _, err := r.store.Payments(r.scope).Alerts(r.Context(), store.Page{Limit: 10}, true)
	r.check(err)
	if len(alerts) != len(kinds) {
		r.Fatalf("there are %d alerts, want %v: %+v", len(alerts), kinds, alerts)
	}
	for i, kind := range kinds {
		if alerts[i].Kind != kind {
			r.Errorf("alert %d is %s, want %s", i, alerts[i].Kind, kind)
		}
	}
}

// resolveAlerts resolves the open alerts, of which there should be this many.
func (r *harness) resolveAlerts(want int) {
	r.Helper()
	alerts, _, err := r.store.Payments(r.scope).Alerts(r.Context(), store.Page{Limit: 10}, false)
	r.check(err)
	if len(alerts) != want {
		r.Errorf("%d alerts are open, want %d: %+v", len(alerts), want, alerts)
	}
	for _, a := range alerts {
		r.check(r.store.Payments(r.scope).ResolveAlert(r.Context(), a.ID, r.now()))
	}
}

func (r *harness) wantNothingFailing() {
	r.Helper()
	if failing := must[[]queue.Job](r)(r.store.Queue(r.scope).FailingJobs(r.Context(), 10)); len(failing) != 0 {
		r.Errorf("jobs fail: %+v", failing)
	}
}

func TestWhatAFullWalletCannotHoldIsRefusedBeforeItIsPaid(t *testing.T) {
	r := shop(t)
	r.credit("stars")
	r.plan("both", 5000, grants("tokens", million), grants("stars", million))
	r.plan("gift", 0, grants("stars", million))
	r.hold(metering.MaxBalances - 1)
	wantRefused := func(code fault.Code, errs ...error) {
		t.Helper()
		for i, err := range errs {
			if !fault.Is(err, code) {
				t.Errorf("request %d: got %v, want %s", i, err, code)
			}
		}
	}
	checkout := func(plan string) error {
		_, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest(plan), newKey())
		return err
	}
	wantRefused(fault.TooManyBalances, checkout("both"))
	r.subscribe("basic", cardPays) // the hundredth balance
	r.wantTokens(10*million, 0)

	topUp := r.topUpRequest(3000)
	topUp.CreditKey = "stars"
	_, topUpErr := r.cashier.TopUpCheckout(t.Context(), r.scope, topUp, newKey())
	_, upgrade := r.change("both")
	_, downgrade := r.change("gift")
	wantRefused(fault.TooManyBalances, topUpErr, upgrade, downgrade)
	for _, body := range r.callsTo("POST /v1/checkout/sessions") {
		if body.Get("line_items[0][price]") == "" {
			t.Error("a page was made for what cannot be held")
		}
	}
	r.wantOn("basic", metering.StatusActive)
}

func TestAFreePlanAFullWalletCannotHoldIsNotStarted(t *testing.T) {
	r := shop(t)
	r.plan("gift", 0, grants("tokens", million))
	r.hold(metering.MaxBalances)
	_, err := r.change("gift")
	wantFault(t, err, fault.TooManyBalances)
	r.wantNone()
}

func TestATopUpPastNineteenDigitsIsRefusedBeforeItIsPaid(t *testing.T) {
	r := shop(t)
	r.deposit(metering.MaxAmount - 20*million)
	_, err := r.cashier.TopUpCheckout(t.Context(), r.scope, r.topUpRequest(3000), newKey())
	wantFault(t, err, fault.BalanceOverflow)
	_, err = r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("pro"), newKey())
	wantFault(t, err, fault.BalanceOverflow)
	if pages := r.callsTo("POST /v1/checkout/sessions"); len(pages) != 0 {
		t.Errorf("%d pages were made", len(pages))
	}
}

// The wallet was filled while the pages were open, so both are paid.
func TestAPaymentWithoutRoomIsSetAsideWithAnAlert(t *testing.T) {
	r := shop(t)
	r.credit("stars")
	r.plan("both", 5000, grants("tokens", 7*million), grants("stars", million))
	topUp := r.topUpRequest(3000)
	topUp.CreditKey = "stars"
	page := must[cashier.Page](r)(r.cashier.TopUpCheckout(t.Context(), r.scope, topUp, newKey()))
	subscription := r.checkout("both")
	r.hold(metering.MaxBalances - 1)

	r.pay(subscription.URL, cardPays)
	r.settle()
	s := r.wantOn("both", metering.StatusActive)
	r.wantTokens(7*million, 0) // which fits; the stars do not
	r.pay(page.URL, cardPays)
	r.settle()
	r.wantTopUp(page.ID, billing.TopUpPaid)
	r.wantAlerts(billing.BalanceFull, billing.BalanceFull)

	r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
	if got := r.wantOn("both", metering.StatusActive); got.Period.Start != s.Period.End {
		t.Errorf("the renewal was not booked: the period is %v", got.Period)
	}
	r.wantTokens(14*million, 0)
	r.wantAlerts(billing.BalanceFull, billing.BalanceFull, billing.BalanceFull)
	r.wantNothingFailing()
	r.refund(page, 3000)
	r.settle()
	if stars, debt := r.balance("stars"); stars != 0 || debt != 0 {
		t.Errorf("credits that never came in were taken back: %s, debt %s", stars, debt)
	}
}

func TestAFreeRenewalWithoutRoomIsBookedWithAnAlert(t *testing.T) {
	r := shop(t)
	r.credit("stars")
	r.plan("gift", 0)
	r.plan("stars", 0, grants("stars", million))
	s := r.changed("gift")
	r.changed("stars") // from the next period on
	r.hold(metering.MaxBalances)
	r.advanceTo(s.Period.End + time.Minute.Milliseconds())
	if got := r.wantOn("stars", metering.StatusActive); got.Period.Start != s.Period.End {
		t.Errorf("the period is %v after %v", got.Period, s.Period)
	}
	r.wantAlerts(billing.BalanceFull)
	r.wantNothingFailing()
}

func TestADebtIsBookedUpToNineteenDigits(t *testing.T) {
	r := shop(t)
	const much = metering.Amount(6_000_000_000_000_000_000)
	r.feature("spending")
	var pages []cashier.Page
	for range 2 {
		request := r.topUpRequest(3000)
		request.Amount = much
		page := must[cashier.Page](r)(r.cashier.TopUpCheckout(t.Context(), r.scope, request, newKey()))
		r.pay(page.URL, cardPays)
		r.settle()
		r.check(r.use("spending", int64(much)))
		pages = append(pages, page)
	}
	r.refund(pages[0], 3000)
	r.wantTokens(0, much)
	r.refund(pages[1], 2900)
	r.settle()
	r.wantTokens(0, metering.MaxAmount)
	r.wantAlerts(billing.DebtFull)
	r.wantNothingFailing()

	// What was resolved stays so until more is refunded.
	r.resolveAlerts(1)
	for _, p := range paymentsOf(t, storetest.URL(t), r.scope, "ada") {
		r.check(r.store.Queue(r.scope).Enqueue(t.Context(), queue.Job{Kind: queue.JobCharge, Object: p.ChargeID}))
	}
	r.settle()
	r.resolveAlerts(0)
	r.refund(pages[1], 100)
	r.settle()
	r.resolveAlerts(1)
	r.wantAlerts(billing.DebtFull)

	// Once there is room, the next report books the rest.
	r.deposit(metering.MaxAmount)
	r.wantTokens(0, 0)
	r.dispute(pages[1], "open")
	r.settle()
	r.wantTokens(0, much-(metering.MaxAmount-much))
}

// The answer to the call that made the page was lost, and it was paid and refunded
// before recovery found it.
func TestARecoveredTopUpGetsItsRefund(t *testing.T) {
	r := shop(t)
	r.dropWebhooks.Store(true)
	r.inject(sandbox.Fault{Kind: sandbox.DropAfter, Times: 20, Only: "POST /v1/checkout/sessions"})
	_, err := r.cashier.TopUpCheckout(t.Context(), r.scope, r.topUpRequest(3000), newKey())
	if err == nil {
		t.Fatal("the caller was told of a page whose answer was lost")
	}
	sessions := r.askProvider("GET", "/v1/checkout/sessions", nil)["data"].([]any)
	session := sessions[0].(map[string]any)
	r.pay(session["url"].(string), cardPays)
	paid := r.askProvider("GET", "/v1/checkout/sessions/"+session["id"].(string), nil)
	r.provider("/v1/refunds", map[string][]string{"payment_intent": {paid["payment_intent"].(string)}, "amount": {"1000"}})
	r.advance(2 * time.Minute)
	r.wantTokens(20*million, 0)
}
