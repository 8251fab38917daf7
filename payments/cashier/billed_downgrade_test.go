package cashier_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/payments/sandbox"
)

// billed is ada on pro, ten minutes after her period ended: a downgrade to basic was
// queued, and the draft of its renewal is charged in fifty minutes.
func billed(t *testing.T, card string) (*harness, billing.Subscription) {
	t.Helper()
	r := shop(t)
	s := r.subscribe("pro", card)
	r.changed("basic")
	r.advanceTo(s.Period.End + (10 * time.Minute).Milliseconds())
	return r, s
}

// wantTurning holds an answer to what happens: the plan of before is in force until
// the other is charged.
func (r *harness) wantTurning(s billing.Subscription, was, to string) {
	r.Helper()
	if s.Terms.PlanKey != was || s.Scheduled == nil || s.Scheduled.Target.PlanKey != to {
		r.Fatalf("the answer is on %s, with %+v scheduled", s.Terms.PlanKey, s.Scheduled)
	}
	if at := s.Scheduled.EffectiveAt; at != s.Period.End+time.Hour.Milliseconds() {
		r.Errorf("%s takes effect at %d, want the charge of the renewal, an hour after %d", to, at, s.Period.End)
	}
}

func TestStayingWhileADowngradeIsBilledPaysForThePlanAgain(t *testing.T) {
	r, s := billed(t, cardPays)
	got := r.changed("pro")
	if got.Terms.PlanKey != "pro" || got.Scheduled != nil || got.Pending != nil || got.Period.Start <= s.Period.End {
		t.Errorf("the answer is on %s from %d, with %+v scheduled", got.Terms.PlanKey, got.Period.Start, got.Scheduled)
	}
	r.advance(2 * time.Hour)
	r.wantOn("pro", metering.StatusActive)
	r.wantCollected(2900 + 2900)
	r.wantTokens(200*million, 0)
	r.advanceTo(got.Period.End + (2 * time.Hour).Milliseconds())
	r.wantOn("pro", metering.StatusActive)
	r.wantCollected(2900 + 2900 + 2900)
	r.wantAlerts()
}

func TestStayingAtAnEditedPriceWhileADowngradeIsBilledPaysThatPrice(t *testing.T) {
	r := shop(t)
	s := r.subscribe("pro", cardPays)
	r.changed("basic")
	raised := int64(3900)
	r.patchPlan("pro", billing.PlanPatch{AmountCents: &raised})
	r.advanceTo(s.Period.End + (10 * time.Minute).Milliseconds())
	if got := r.changed("pro"); got.Terms.AmountCents != 2900 || got.Scheduled != nil {
		t.Errorf("the answer costs %d, with %+v scheduled", got.Terms.AmountCents, got.Scheduled)
	}
	r.advance(2 * time.Hour)
	r.wantCollected(2900 + 2900)
}

func TestStayingWithoutAPaymentLeavesTheBilledDowngrade(t *testing.T) {
	r, _ := billed(t, cardAsksAlways)
	got := r.changed("pro")
	r.wantTurning(got, "pro", "basic")
	if got.Pending == nil || got.Pending.Target.PlanKey != "pro" || got.Pending.PaymentURL == "" {
		t.Fatalf("the answer waits for %+v", got.Pending)
	}
	r.pay(got.Pending.PaymentURL, cardPays)
	r.advance(2 * time.Hour)
	r.wantOn("pro", metering.StatusActive)
	r.wantCollected(2900 + 2900)
}

func TestUndoingWhileADowngradeIsBilledAnswersWhenItIsCharged(t *testing.T) {
	r, _ := billed(t, cardPays)
	r.wantTurning(must[billing.Subscription](r)(r.cancel(false)), "pro", "basic")
	r.wantTurning(r.subscription(), "pro", "basic")
	r.advance(time.Hour)
	if got := r.wantOn("basic", metering.StatusActive); got.Scheduled != nil {
		t.Errorf("after the charge %+v is scheduled", got.Scheduled)
	}
	r.wantCollected(2900 + 1000)
}

func TestABilledDowngradeThatIsAskedForAgainAnswersWhenItIsCharged(t *testing.T) {
	r, _ := billed(t, cardPays)
	r.wantTurning(r.changed("basic"), "pro", "basic")
	r.advance(time.Hour)
	if got := r.wantOn("basic", metering.StatusActive); got.Scheduled != nil {
		t.Errorf("after the charge %+v is scheduled", got.Scheduled)
	}
	r.wantCollected(2900 + 1000)
	r.advance(month)
	r.wantOn("basic", metering.StatusActive)
}

// The request was cut off before it reached the provider, and no node went on with it
// before the renewal was charged.
func TestStayingAfterTheBilledDowngradeWasChargedChargesNothing(t *testing.T) {
	for claim, late := range map[string]func(*harness, string){
		"when the caller repeats the request": func(r *harness, key string) {
			_, err := r.upgradeWith(key)
			wantFault(r, err, fault.OperationInProgress)
			r.idle.Store(false)
		},
		"when a node finds the request": func(r *harness, _ string) { r.idle.Store(false) },
	} {
		t.Run(claim, func(t *testing.T) {
			r, _ := billed(t, cardPays)
			key := newKey()
			r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "GET /v1/prices"})
			_, err := r.upgradeWith(key)
			wantFault(t, err, fault.ProviderUnavailable)
			r.idle.Store(true)
			r.advance(time.Hour)
			late(r, key)
			r.settle()
			r.wantOn("basic", metering.StatusActive)
			r.wantCollected(2900 + 1000)
			r.wantTokens(110*million, 0)
		})
	}
}

// The price was changed in the provider's dashboard, in the middle of the period.
func TestStayingAtAPriceThatWasChangedAtTheProviderChargesNothing(t *testing.T) {
	r := shop(t)
	s := r.subscribe("pro", cardPays)
	r.advance(5 * days)
	at := "/v1/subscriptions/" + s.ProviderID
	item := r.askProvider(http.MethodGet, at, nil)["items"].(map[string]any)["data"].([]any)[0].(map[string]any)["id"].(string)
	r.provider(at, url.Values{
		"items[0][id]": {item}, "items[0][price]": {r.readPlan("basic").Sync.PriceID}, "proration_behavior": {"none"},
	})
	r.settle()
	if got := r.subscription().Scheduled; got == nil || got.Target.PlanKey != "basic" || got.EffectiveAt != s.Period.End || got.Billed {
		t.Errorf("scheduled is %+v", got)
	}
	if got := r.changed("pro"); got.Terms.PlanKey != "pro" || got.Period != s.Period || got.Pending != nil {
		t.Errorf("the answer is on %s for %v, after %v", got.Terms.PlanKey, got.Period, s.Period)
	}
	r.wantCollected(2900)
	r.wantTokens(100*million, 0)
}

func TestADowngradeBesideABilledOneAnswersWhatIsCharged(t *testing.T) {
	lower := func(t *testing.T) *harness {
		t.Helper()
		r, _ := billed(t, cardPays)
		r.plan("lite", 500, grants("tokens", 1*million))
		r.wantTurning(r.changed("lite"), "pro", "basic")
		r.wantTurning(r.subscription(), "pro", "basic")
		return r
	}
	t.Run("each is charged in its turn", func(t *testing.T) {
		r := lower(t)
		r.advance(time.Hour)
		got := r.wantOn("basic", metering.StatusActive)
		if got.Scheduled == nil || got.Scheduled.Target.PlanKey != "lite" || got.Scheduled.EffectiveAt != got.Period.End || got.Scheduled.Billed {
			t.Errorf("after the charge %+v is scheduled", got.Scheduled)
		}
		r.wantCollected(2900 + 1000)
		r.advanceTo(got.Period.End + (2 * time.Hour).Milliseconds())
		r.wantOn("lite", metering.StatusActive)
		r.wantCollected(2900 + 1000 + 500)
		r.wantAlerts()
	})
	t.Run("asking for the billed one again drops the other", func(t *testing.T) {
		r := lower(t)
		r.wantTurning(r.changed("basic"), "pro", "basic")
		r.advance(month)
		if got := r.wantOn("basic", metering.StatusActive); got.Scheduled != nil {
			t.Errorf("%+v is scheduled", got.Scheduled)
		}
	})
	t.Run("staying pays for the plan again and drops both", func(t *testing.T) {
		r := lower(t)
		if got := r.changed("pro"); got.Terms.PlanKey != "pro" || got.Scheduled != nil || got.Period.End <= r.now() {
			t.Errorf("the answer is on %s, with %+v scheduled", got.Terms.PlanKey, got.Scheduled)
		}
		r.advance(2 * time.Hour)
		r.wantOn("pro", metering.StatusActive)
		r.wantCollected(2900 + 2900)
		_, err := r.change("pro")
		wantFault(t, err, fault.AlreadyOnPlan)
	})
}

func TestAnUpgradeThatWaitsBesideABilledDowngradeAnswersWhenThatIsCharged(t *testing.T) {
	r := shop(t)
	r.plan("free", 0, grants("tokens", 3))
	r.plan("annual", 29000, yearly)
	s := r.subscribe("basic", cardPays)
	r.changed("free")
	r.swapCard(cardFailsLater)
	r.advanceTo(s.Period.End + (10 * time.Minute).Milliseconds())
	got := r.changed("annual")
	r.wantTurning(got, "basic", "free")
	if got.Pending == nil || got.Pending.Target.PlanKey != "annual" {
		t.Errorf("the answer waits for %+v", got.Pending)
	}
	r.advance(time.Hour)
	r.wantOn("free", metering.StatusActive)
}

// A month after the edit the price that the subscriber pays is archived.
func TestASubscriberAtAnEditedPriceCanDowngrade(t *testing.T) {
	r := shop(t)
	r.plan("free", 0)
	s := r.subscribe("basic", cardPays)
	raised := int64(1500)
	r.patchPlan("basic", billing.PlanPatch{AmountCents: &raised})
	r.advance(27 * time.Hour)
	price := "/v1/prices/" + s.Terms.PriceID
	if active := r.askProvider(http.MethodGet, price, nil)["active"]; active != false {
		t.Fatalf("the price of before is active: %v", active)
	}
	if got := r.changed("free"); got.Scheduled == nil || got.Scheduled.Target.PlanKey != "free" || got.Scheduled.EffectiveAt != s.Period.End {
		t.Errorf("scheduled is %+v", got.Scheduled)
	}
	r.advance(27 * time.Hour)
	if active := r.askProvider(http.MethodGet, price, nil)["active"]; active != false {
		t.Errorf("the price of before is still on sale")
	}
	r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
	r.wantOn("free", metering.StatusActive)
	r.wantCollected(1000)
}

// The archived price was offered for the downgrade, less than a day before staying sells
// it on a page: the page is open for longer than the price was to be on sale.
func TestAPageOutlivesNoPriceThatItSells(t *testing.T) {
	r := shop(t)
	s := r.subscribe("pro", bankSucceeds)
	r.advance(4 * days)
	r.editPrice("pro", 3900)
	active := func() bool {
		return r.askProvider(http.MethodGet, "/v1/prices/"+s.Terms.PriceID, nil)["active"].(bool)
	}
	if active() {
		t.Fatal("the price of before is not archived")
	}
	r.advanceTo(s.Period.End - (20 * time.Hour).Milliseconds())
	r.changed("basic")
	r.advanceTo(s.Period.End + (10 * time.Minute).Milliseconds())
	pending := r.changed("pro").Pending
	if pending == nil || pending.Target.AmountCents != 2900 || pending.PaymentURL == "" {
		t.Fatalf("what waits is %+v", pending)
	}
	r.freeze()
	r.advanceTo(pending.ExpiresAt - time.Minute.Milliseconds())
	if !active() {
		t.Error("the price is archived while a page sells it")
	}
	r.pay(pending.PaymentURL, cardPays)
	r.advance(27 * time.Hour)
	if active() {
		t.Error("the price is still on sale after the page was paid")
	}
	r.advance(4 * days) // the debit of the renewal that the page replaced
	if got := r.wantOn("pro", metering.StatusActive); got.Terms.AmountCents != 2900 {
		t.Errorf("the subscription costs %d", got.Terms.AmountCents)
	}
	r.wantCollected(2900 + 2900)
	r.wantTokens(200*million, 0)
	r.wantAlerts()
}
