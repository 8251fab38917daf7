package cashier_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/cashier"
	"purser/payments/sandbox"
	"purser/store"
)

func TestScenario15_AnUpgradeStartsAFullPeriodOncePaid(t *testing.T) {
	r := shop(t)
	before := r.subscribe("basic", cardPays)
	r.advance(10 * 24 * time.Hour)
	got := r.changed("pro")
	if got.Terms.PlanKey != "pro" || got.Pending != nil {
		t.Errorf("the answer is on %s, pending %v", got.Terms.PlanKey, got.Pending)
	}
	s := r.wantOn("pro", metering.StatusActive)
	if s.ID != before.ID || s.Period.Start <= before.Period.Start || s.Period.End <= before.Period.End {
		t.Errorf("the period went from %v to %v", before.Period, s.Period)
	}
	r.wantTokens(110*million, 0)
	r.settle()
	r.wantTokens(110*million, 0)
}

func TestScenario16_AnUpgradeThatAsksForAuthenticationWaits(t *testing.T) {
	r := shop(t)
	r.subscribe("basic", cardAsksAlways)
	r.advance(24 * time.Hour)
	got := r.changed("pro")
	if got.Terms.PlanKey != "basic" || got.Pending == nil || got.Pending.Target.PlanKey != "pro" || got.Pending.PaymentURL == "" {
		t.Fatalf("the answer is on %s, pending %+v", got.Terms.PlanKey, got.Pending)
	}
	r.settle()
	if s := r.wantOn("basic", metering.StatusActive); s.Pending == nil || s.Pending.ExpiresAt <= r.now() {
		t.Errorf("pending is %+v", s.Pending)
	}
	r.wantTokens(10*million, 0)

	r.pay(got.Pending.PaymentURL, cardAsksAlways)
	r.settle()
	if s := r.wantOn("pro", metering.StatusActive); s.Pending != nil {
		t.Errorf("it still waits: %+v", s.Pending)
	}
	r.wantTokens(110*million, 0)
}

func TestScenario17_ADeclinedUpgradeCanBePaidWithAnotherCard(t *testing.T) {
	r := shop(t)
	r.subscribe("basic", cardPays)
	r.swapCard(cardFailsLater)
	got := r.changed("pro")
	if got.Terms.PlanKey != "basic" || got.Pending == nil {
		t.Fatalf("the answer is on %s, pending %+v", got.Terms.PlanKey, got.Pending)
	}
	r.wantTokens(10*million, 0)
	r.pay(got.Pending.PaymentURL, cardPays)
	r.settle()
	r.wantOn("pro", metering.StatusActive)
	r.wantTokens(110*million, 0)
}

func TestScenario18_AnUnpaidUpgradeExpires(t *testing.T) {
	r := shop(t)
	r.subscribe("basic", cardPays)
	r.swapCard(cardFailsLater)
	page := r.changed("pro").Pending.PaymentURL
	r.advance(23*time.Hour + time.Minute)
	if s := r.wantOn("basic", metering.StatusActive); s.Pending != nil {
		t.Errorf("it still waits: %+v", s.Pending)
	}
	if status, _ := r.tryToPay(page, cardPays, ""); status == http.StatusSeeOther {
		r.settle()
		r.wantOn("basic", metering.StatusActive)
	}
	r.wantTokens(10*million, 0)
}

func TestScenario19_ASecondUpgradeReplacesTheFirst(t *testing.T) {
	r := shop(t)
	r.plan("max", 9900, grants("tokens", 1000*million))
	r.subscribe("basic", cardPays)
	r.swapCard(cardFailsLater)
	first := r.changed("pro").Pending.PaymentURL
	got := r.changed("max")
	if got.Pending == nil || got.Pending.Target.PlanKey != "max" || got.Pending.PaymentURL == first {
		t.Fatalf("pending is %+v", got.Pending)
	}
	r.settle()
	if status, _ := r.tryToPay(first, cardPays, ""); status == http.StatusSeeOther {
		t.Error("the first upgrade could still be paid")
	}
	r.pay(got.Pending.PaymentURL, cardPays)
	r.settle()
	r.wantOn("max", metering.StatusActive)
	r.wantTokens(1010*million, 0)
}

// The pending upgrade is paid between the decision about another one and its void: only
// that payment counts.
func TestAnUpgradeIsNotChargedOnceTheOneItVoidsIsPaid(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{"to a cheaper plan": "pro", "to a more expensive plan": "top", "to the same plan": "max"} {
		for how, lost := range map[string]bool{"after an outage": true, "before the void": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				r := shop(t)
				r.plan("max", 9900, grants("tokens", 1000*million))
				r.plan("top", 19900, grants("tokens", 5000*million))
				r.subscribe("basic", cardPays)
				r.swapCard(cardFailsLater)
				page := r.changed("max").Pending.PaymentURL
				request, key := billing.ChangeRequest{Identity: "ada", PlanKey: target}, newKey()
				if lost {
					r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "/void"})
					if _, err := r.cashier.Change(t.Context(), r.scope, request, key); err == nil {
						t.Fatal("the outage was not noticed")
					}
					r.pay(page, cardPays)
					r.settle()
					r.advance(2 * time.Minute)
				} else {
					r.payBefore("/void", page)
				}
				if _, err := r.cashier.Change(t.Context(), r.scope, request, key); target == "max" {
					r.check(err)
				} else {
					wantFault(t, err, fault.OperationInProgress)
				}
				r.settle()
				r.wantOn("max", metering.StatusActive)
				r.wantCollected(1000 + 9900)
				r.wantTokens(1010*million, 0)

				// Neither change is left open.
				must[billing.Subscription](r)(r.cancel(true))
				r.advance(32 * 24 * time.Hour)
				r.wantNone()
				_, _, err := r.store.App(r.scope).Erase(t.Context(), store.Erasure{ID: ids.New(), Identity: "ada", Reason: "asked", IdempotencyKey: newKey(), CreatedAt: r.now()})
				r.check(err)
			})
		}
	}
}

// payBefore has the customer pay a page just before the next call to the path.
func (r *harness) payBefore(path, page string) {
	var once sync.Once
	r.cashier = r.newCashier(func(o *cashier.Options) {
		o.SandboxTransport = beforeCall(func(req *http.Request) {
			if strings.HasSuffix(req.URL.Path, path) {
				once.Do(func() { r.pay(page, cardPays) })
			}
		})
	})
}

// beforeCall is a transport that runs a function before each call.
type beforeCall func(*http.Request)

func (f beforeCall) RoundTrip(req *http.Request) (*http.Response, error) {
	f(req)
	return http.DefaultTransport.RoundTrip(req)
}

func TestScenario20_WhatComesInBetweenCallsAPendingUpgradeOff(t *testing.T) {
	for name, act := range map[string]func(*harness){
		"a downgrade": func(r *harness) { r.changed("mini") },
		"a cancellation": func(r *harness) {
			_, err := r.cancel(true)
			r.check(err)
		},
		"staying": func(r *harness) { r.changed("basic") },
	} {
		t.Run(name, func(t *testing.T) {
			r := shop(t)
			r.plan("mini", 500)
			r.subscribe("basic", cardPays)
			r.swapCard(cardFailsLater)
			page := r.changed("pro").Pending.PaymentURL
			act(r)
			if s := r.wantOn("basic", metering.StatusActive); s.Pending != nil {
				t.Errorf("it still waits: %+v", s.Pending)
			}
			if status, _ := r.tryToPay(page, cardPays, ""); status == http.StatusSeeOther {
				t.Error("it could still be paid")
			}
			r.settle()
			r.wantOn("basic", metering.StatusActive)
			r.wantTokens(10*million, 0)
		})
	}
}

func TestScenario22_AnUpgradeReleasesAQueuedDowngrade(t *testing.T) {
	r := shop(t)
	r.plan("max", 9900, grants("tokens", 1000*million))
	r.subscribe("pro", cardPays)
	if got := r.changed("basic"); got.Scheduled == nil {
		t.Fatal("nothing is scheduled")
	}
	got := r.changed("max")
	if got.Terms.PlanKey != "max" || got.Scheduled != nil {
		t.Errorf("the answer is on %s, scheduled %+v", got.Terms.PlanKey, got.Scheduled)
	}
	r.settle()
	r.advance(32 * 24 * time.Hour)
	r.wantOn("max", metering.StatusActive)
	r.wantTokens(2100*million, 0)
}

func TestScenario23_WhatForbidsAChange(t *testing.T) {
	r := shop(t)
	r.plan("euro", 5000, in("eur"))
	_, err := r.change("pro")
	wantFault(t, err, fault.SubscriptionNotFound)
	r.subscribe("basic", cardPays)
	r.draft("unknown", 5000)
	_, err = r.change("basic")
	wantFault(t, err, fault.AlreadyOnPlan)
	_, err = r.change("euro")
	wantFault(t, err, fault.CurrencyMismatch)
	_, err = r.change("unknown")
	wantFault(t, err, fault.PlanNotSynced)
	_, err = r.change("nowhere")
	wantFault(t, err, fault.PlanNotFound)

	_, err = r.cancel(true)
	r.check(err)
	_, err = r.change("pro")
	wantFault(t, err, fault.CancellationScheduled)
	_, err = r.cancel(false)
	r.check(err)

	r.swapCard(cardFailsLater)
	r.advance(32 * 24 * time.Hour)
	r.wantOn("basic", metering.StatusPastDue)
	_, err = r.change("pro")
	wantFault(t, err, fault.PaymentHold)
}

func TestScenario24_FromAFreePlanOneBuysOnAPage(t *testing.T) {
	t.Run("when it runs here", func(t *testing.T) {
		r := shop(t)
		r.plan("free", 0, grants("tokens", 1*million))
		if got := r.changed("free"); got.Status != metering.StatusActive || got.ProviderID != "" {
			t.Fatalf("the free subscription is %s at %q", got.Status, got.ProviderID)
		}
		r.wantTokens(1*million, 0)
		swap(t, r)
	})
	t.Run("when the provider knows it", func(t *testing.T) {
		r := shop(t)
		r.plan("free", 0, grants("tokens", 1*million))
		r.subscribe("free", noCard)
		r.wantTokens(1*million, 0)
		swap(t, r)
	})
}

// swap goes from the free plan to a paid one.
func swap(t *testing.T, r *harness) {
	t.Helper()
	free := r.subscription()
	got := r.changed("pro")
	if got.Terms.PlanKey != "free" || got.Pending == nil || got.Pending.Target.PlanKey != "pro" || got.Pending.PaymentURL == "" {
		t.Fatalf("the answer is on %s, pending %+v", got.Terms.PlanKey, got.Pending)
	}
	r.settle()
	r.pay(got.Pending.PaymentURL, cardPays)
	r.settle()
	s := r.wantOn("pro", metering.StatusActive)
	if s.ID == free.ID || s.Pending != nil {
		t.Errorf("the new subscription is %s, the old one was %s; pending %+v", s.ID, free.ID, s.Pending)
	}
	r.wantTokens(101*million, 0)
	// The old one makes no more trouble.
	r.advance(32 * 24 * time.Hour)
	r.wantOn("pro", metering.StatusActive)
	r.wantTokens(201*million, 0)
}

func TestScenario25_AnUpgradeSaysNothingMoreThanItMay(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.changed("pro")
	bodies := r.callsTo("POST /v1/subscriptions/" + s.ProviderID)
	if len(bodies) != 1 {
		t.Fatalf("%d updates were sent", len(bodies))
	}
	var names []string
	for name := range bodies[0] {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		"billing_cycle_anchor", "expand[0]", "items[0][id]", "items[0][price]", "items[0][quantity]", "payment_behavior", "proration_behavior",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the update says %v", names)
	}
	if got := bodies[0].Get("billing_cycle_anchor") + " " + bodies[0].Get("payment_behavior") + " " + bodies[0].Get("proration_behavior"); got != "now pending_if_incomplete none" {
		t.Errorf("the update says %s", got)
	}
}

func TestScenario26_TheWebhookMayComeBeforeTheAnswer(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.inject(sandbox.Fault{Kind: sandbox.DeliverFirst, Only: "POST /v1/subscriptions/" + s.ProviderID})
	r.changed("pro")
	r.settle()
	r.wantOn("pro", metering.StatusActive)
	r.wantTokens(110*million, 0)
}

func TestAnUpgradeFromAMonthToAYearStartsAtOnce(t *testing.T) {
	r := shop(t)
	r.plan("year", 29000, yearly, grants("tokens", 500*million))
	r.subscribe("basic", cardPays)
	r.changed("year")
	s := r.wantOn("year", metering.StatusActive)
	if s.Terms.Interval != billing.Year || s.Period.End-s.Period.Start < 365*24*time.Hour.Milliseconds() {
		t.Errorf("the period is %v", s.Period)
	}
	r.wantTokens(510*million, 0)
}

func TestScenario21_NothingWaitsPastThePeriod(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.advanceTo(s.Period.End - (5 * time.Hour).Milliseconds())
	r.swapCard(cardFailsLater)
	got := r.changed("pro")
	if got.Pending == nil || got.Pending.ExpiresAt != s.Period.End {
		t.Fatalf("pending is %+v, the period ends at %d", got.Pending, s.Period.End)
	}
	r.swapCard(cardPays)
	r.advance(24 * time.Hour)
	if after := r.wantOn("basic", metering.StatusActive); after.Pending != nil || after.Period.Start != s.Period.End {
		t.Errorf("pending %+v, period %v", after.Pending, after.Period)
	}
	r.wantTokens(20*million, 0)
}

// The price changes between the preview and its confirmation.
func TestAChangeIsRefusedWhenItsPreviewNoLongerHolds(t *testing.T) {
	r := shop(t)
	r.subscribe("basic", cardPays)
	preview := func() *string {
		p := must[billing.Preview](r)(r.cashier.PreviewChange(r.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: "pro"}))
		version := p.Version()
		return &version
	}
	request, key := billing.ChangeRequest{Identity: "ada", PlanKey: "pro", Confirmed: preview()}, newKey()
	cents := int64(9900)
	must[billing.Plan](r)(r.store.App(r.scope).UpdatePlan(r.Context(), "pro", billing.PlanPatch{AmountCents: &cents}))
	r.settle()
	calls := r.calls.Load()
	_, err := r.cashier.Change(r.Context(), r.scope, request, key)
	wantFault(t, err, fault.RevisionConflict)
	if r.calls.Load() != calls {
		t.Error("the provider was called")
	}
	r.settle()
	r.wantOn("basic", metering.StatusActive)
	r.wantCollected(1000)

	r.advance(time.Minute) // the time of the preview is not what was confirmed
	request.Confirmed = preview()
	r.advance(time.Minute)
	for range 2 { // the second answers what the first did
		got, err := r.cashier.Change(r.Context(), r.scope, request, key)
		r.check(err)
		if got.Terms.PlanKey != "pro" {
			t.Errorf("the answer is on %s", got.Terms.PlanKey)
		}
	}
	r.wantCollected(1000 + 9900)
}
