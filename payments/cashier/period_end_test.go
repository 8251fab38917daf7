package cashier_test

import (
	"net/http"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/payments/cashier"
)

// collected is what the provider has taken from its customers and kept, in cents.
func (r *harness) collected() (cents int64) {
	r.Helper()
	for _, listed := range r.askProvider(http.MethodGet, "/v1/invoices?status=paid&limit=100", nil)["data"].([]any) {
		cents += int64(listed.(map[string]any)["amount_paid"].(float64))
	}
	for _, listed := range r.askProvider(http.MethodGet, "/v1/refunds?limit=100", nil)["data"].([]any) {
		cents -= int64(listed.(map[string]any)["amount"].(float64))
	}
	return cents
}

func (r *harness) wantCollected(cents int64) {
	r.Helper()
	if got := r.collected(); got != cents {
		r.Errorf("%d cents were collected, want %d", got, cents)
	}
}

// renewing is ada on the plan, ten minutes after her period ended: the renewal is
// a draft, which the provider charges in fifty minutes.
func renewing(t *testing.T, plan, card string) (*harness, billing.Subscription) {
	t.Helper()
	r := shop(t)
	r.plan("max", 9900, grants("tokens", 1000*million))
	s := r.subscribe(plan, card)
	r.advanceTo(s.Period.End + (10 * time.Minute).Milliseconds())
	return r, s
}

func TestAnUpgradeBeforeTheRenewalIsChargedReplacesIt(t *testing.T) {
	r, s := renewing(t, "basic", cardPays)
	got := r.changed("pro")
	if got.Terms.PlanKey != "pro" || got.Period.Start <= s.Period.End {
		t.Errorf("the answer is on %s, with the period %v", got.Terms.PlanKey, got.Period)
	}
	r.advance(2 * time.Hour)
	r.wantOn("pro", metering.StatusActive)
	r.wantCollected(1000 + 2900)
	r.wantTokens(110*million, 0)
	r.advanceTo(got.Period.End + (2 * time.Hour).Milliseconds())
	r.wantCollected(1000 + 2900 + 2900)
	r.wantTokens(210*million, 0)
	r.wantAlerts()
}

func TestADowngradeBeforeTheRenewalIsChargedTakesEffectAsPreviewed(t *testing.T) {
	preview := func(r *harness, plan string) billing.Preview {
		r.Helper()
		return must[billing.Preview](r)(r.cashier.PreviewChange(r.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: plan}))
	}
	t.Run("after the renewal", func(t *testing.T) {
		r, _ := renewing(t, "pro", cardPays)
		p, got := preview(r, "basic"), r.changed("basic")
		if got.Scheduled == nil || got.Scheduled.EffectiveAt != p.EffectiveAt || p.EffectiveAt <= r.now() {
			t.Errorf("%+v is scheduled, and the preview says %d", got.Scheduled, p.EffectiveAt)
		}
	})
	t.Run("after a downgrade that is billed", func(t *testing.T) {
		r, _ := billed(t, cardPays)
		r.plan("lite", 500)
		p := preview(r, "lite")
		r.changed("lite")
		r.advance(time.Hour)
		if got := r.wantOn("basic", metering.StatusActive); got.Scheduled == nil || got.Scheduled.EffectiveAt != p.EffectiveAt {
			t.Errorf("%+v is scheduled, and the preview says %d", got.Scheduled, p.EffectiveAt)
		}
	})
}

func TestAnUpgradeOfADowngradeThatHasBegunReplacesIt(t *testing.T) {
	r := shop(t)
	r.plan("max", 9900, grants("tokens", 1000*million))
	s := r.subscribe("pro", cardPays)
	r.changed("basic")
	r.advanceTo(s.Period.End + (10 * time.Minute).Milliseconds())
	r.changed("max")
	r.advance(2 * time.Hour)
	if got := r.wantOn("max", metering.StatusActive); got.Scheduled != nil {
		t.Errorf("a downgrade is queued: %+v", got.Scheduled)
	}
	r.wantCollected(2900 + 9900)
	r.wantTokens(1100*million, 0)
}

// The renewal is charged while the upgrade waits, so its period was had.
func TestAnUpgradePaidAfterTheRenewalLeavesItPaid(t *testing.T) {
	r, _ := renewing(t, "basic", cardPays)
	r.swapCard(cardFailsLater)
	page := r.changed("pro").Pending.PaymentURL
	r.swapCard(cardPays)
	r.advance(2 * time.Hour)
	r.wantOn("basic", metering.StatusActive)
	r.pay(page, cardPays)
	r.settle()
	r.wantOn("pro", metering.StatusActive)
	r.wantCollected(1000 + 1000 + 2900)
	r.wantTokens(120*million, 0)
}

func TestAnUpgradePaidWhileTheRenewalIsUnpaidVoidsIt(t *testing.T) {
	r, _ := renewing(t, "basic", cardAsksAlways)
	page := r.changed("pro").Pending.PaymentURL
	r.advance(2 * time.Hour) // the renewal asks for authentication too
	r.wantOn("basic", metering.StatusPastDue)
	r.pay(page, cardPays)
	r.settle()
	r.wantOn("pro", metering.StatusActive)
	r.wantCollected(1000 + 2900)
	r.advance(8 * 24 * time.Hour)
	r.wantOn("pro", metering.StatusActive)
	r.wantCollected(1000 + 2900)
	r.wantTokens(110*million, 0)
}

func TestAnUpgradePaidInTheHourVoidsTheRenewal(t *testing.T) {
	r, _ := renewing(t, "basic", cardAsksAlways)
	page := r.changed("pro").Pending.PaymentURL
	r.advance(10 * time.Minute)
	r.pay(page, cardPays)
	r.advance(3 * time.Hour)
	r.wantOn("pro", metering.StatusActive)
	r.wantCollected(1000 + 2900)
	r.wantTokens(110*million, 0)
}

// No node was running when the provider charged the renewal.
func TestARenewalChargedAfterTheUpgradeIsRefunded(t *testing.T) {
	r, _ := renewing(t, "basic", cardPays)
	r.idle.Store(true)
	r.changed("pro")
	r.advance(2 * time.Hour)
	r.idle.Store(false)
	r.settle()
	r.wantOn("pro", metering.StatusActive)
	r.wantCollected(1000 + 2900)
	r.wantTokens(110*million, 0)
}

func TestCancellingBeforeTheRenewalIsChargedEndsWithoutACharge(t *testing.T) {
	r, s := renewing(t, "basic", cardPays)
	got := must[billing.Subscription](r)(r.cancel(true))
	if got.Status != metering.StatusCanceled || !got.CancelAtPeriodEnd || got.Period != s.Period {
		t.Errorf("the answer is %s, with the flag %v and the period %v", got.Status, got.CancelAtPeriodEnd, got.Period)
	}
	r.wantNone()
	r.advance(40 * 24 * time.Hour)
	r.wantNone()
	r.wantCollected(1000)
	r.wantTokens(10*million, 0)
	_, err := r.cancel(true)
	wantFault(t, err, fault.SubscriptionNotFound)
}

func TestCancellingAnUnpaidRenewalEndsWithoutACharge(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.swapCard(cardFailsLater)
	r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
	r.wantOn("basic", metering.StatusPastDue)
	if got := must[billing.Subscription](r)(r.cancel(true)); got.Status != metering.StatusCanceled {
		t.Errorf("the answer is %s", got.Status)
	}
	r.swapCard(cardPays)
	r.advance(40 * 24 * time.Hour)
	r.wantNone()
	r.wantCollected(1000)
}

func TestAPaidPurchaseReplacesAFreeSubscription(t *testing.T) {
	r := shop(t)
	r.plan("free", 0, grants("tokens", million))
	page := r.checkout("basic")
	r.changed("free")
	r.pay(page.URL, cardPays)
	r.settle()
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(11*million, 0)
	r.wantCollected(1000)
	r.wantAlerts()
	r.advance(month)
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(21*million, 0)
}

// The provider counts in seconds: with the clock stopped, the purchase and the
// upgrade start in the same one.
func TestADowngradeWaitsForItsPaymentAfterAnUpgradeInTheSameSecond(t *testing.T) {
	r := shop(t)
	r.freeze()
	first := r.subscribe("basic", cardPays)
	s := r.changed("pro")
	if s.Terms.PlanKey != "pro" || s.Period.Start != first.Period.Start {
		t.Fatalf("the upgrade is on %s, from %d after %d", s.Terms.PlanKey, s.Period.Start, first.Period.Start)
	}
	r.changed("basic")
	r.advanceTo(s.Period.End + (30 * time.Minute).Milliseconds())
	if got := r.wantOn("pro", metering.StatusActive); got.Scheduled == nil || got.Scheduled.Target.PlanKey != "basic" {
		t.Errorf("the queued downgrade is %+v", got.Scheduled)
	}
	r.advance(time.Hour)
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(120*million, 0)
}

func TestARenewalThatTheBalancePaidCountsAsCharged(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct {
		invoice billing.ProviderInvoice
		want    bool
	}{
		"paid by card":                     {billing.ProviderInvoice{Status: billing.InvoicePaid, AmountPaid: 1000}, true},
		"paid from the customer's balance": {billing.ProviderInvoice{Status: billing.InvoicePaid, FromBalance: 1000}, true},
		"paid at nothing":                  {billing.ProviderInvoice{Status: billing.InvoicePaid}, false},
		"open and due":                     {billing.ProviderInvoice{Status: billing.InvoiceOpen, AmountDue: 1000}, true},
		"void":                             {billing.ProviderInvoice{Status: billing.InvoiceVoid, AmountDue: 1000}, false},
	} {
		if got := cashier.Charged(c.invoice); got != c.want {
			t.Errorf("%s: %v, want %v", claim, got, c.want)
		}
	}
}
