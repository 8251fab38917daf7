package cashier_test

import (
	"net/url"
	"strconv"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/payments/sandbox"
)

const month = 32 * 24 * time.Hour // reaches past the end of any month, and its charge

func TestScenario27_ADowngradeWaitsForTheRenewal(t *testing.T) {
	r := shop(t)
	before := r.subscribe("pro", cardPays)
	got := r.changed("basic")
	if got.Terms.PlanKey != "pro" || got.Scheduled == nil || got.Scheduled.Target.PlanKey != "basic" || got.Scheduled.EffectiveAt != before.Period.End {
		t.Fatalf("the answer is on %s, scheduled %+v", got.Terms.PlanKey, got.Scheduled)
	}
	r.settle()
	r.wantTokens(100*million, 0)
	r.advance(month)
	if s := r.wantOn("basic", metering.StatusActive); s.Scheduled != nil || s.Period.Start != before.Period.End {
		t.Errorf("scheduled %+v, period %v after %v", s.Scheduled, s.Period, before.Period)
	}
	r.wantTokens(110*million, 0)
	r.advance(month)
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(120*million, 0)
}

func TestScenario28_ADowngradeCanLeadToAFreePlan(t *testing.T) {
	r := shop(t)
	r.plan("free", 0, grants("tokens", 1*million))
	r.subscribe("basic", cardPays)
	r.changed("free")
	r.advance(month)
	r.wantOn("free", metering.StatusActive)
	r.wantTokens(11*million, 0)
}

func TestScenario29_ADowngradeWhoseRenewalFailsHolds(t *testing.T) {
	r := shop(t)
	r.subscribe("pro", cardPays)
	r.changed("basic")
	r.settle()
	r.swapCard(cardFailsLater)
	r.advance(month)
	r.wantOn("pro", metering.StatusPastDue)
	r.wantTokens(100*million, 0)
	r.swapCard(cardPays)
	r.advance(4 * 24 * time.Hour)
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(110*million, 0)
}

func TestScenario30_CancellingReleasesADowngrade(t *testing.T) {
	r := shop(t)
	r.subscribe("pro", cardPays)
	r.changed("basic")
	got, err := r.cancel(true)
	r.check(err)
	if !got.CancelAtPeriodEnd || got.Scheduled != nil {
		t.Errorf("cancelled %v, scheduled %+v", got.CancelAtPeriodEnd, got.Scheduled)
	}
	got, err = r.cancel(false)
	r.check(err)
	if got.CancelAtPeriodEnd {
		t.Error("it still ends")
	}
	t.Run("and undoing it when nothing is scheduled changes nothing", func(t *testing.T) {
		got, err := r.cancel(false)
		r.check(err)
		if got.CancelAtPeriodEnd || got.Terms.PlanKey != "pro" {
			t.Errorf("got %+v", got)
		}
	})
	r.settle()
	r.advance(month)
	r.wantOn("pro", metering.StatusActive)
	r.wantTokens(200*million, 0)
}

func TestScenario31_AScheduleIsNeverLeftHalfMade(t *testing.T) {
	r := shop(t)
	r.subscribe("pro", cardPays)
	key := newKey()
	// The schedule is made, and then the provider has no time for its phases.
	r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "POST /v1/subscription_schedules/sub_sched_"})
	_, err := r.cashier.Change(t.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: "basic"}, key)
	wantFault(t, err, fault.ProviderUnavailable)
	r.advance(2 * time.Minute)
	if s := r.subscription(); s.Scheduled == nil || s.Scheduled.Target.PlanKey != "basic" {
		t.Fatalf("the operation was not resumed: scheduled %+v", s.Scheduled)
	}
	if made := len(r.callsTo("POST /v1/subscription_schedules")); made < 2 {
		t.Errorf("%d calls about schedules", made)
	}
	again, err := r.cashier.Change(t.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: "basic"}, key)
	r.check(err)
	if again.Scheduled == nil {
		t.Error("the repeat has another answer")
	}
	r.advance(month)
	r.wantOn("basic", metering.StatusActive)
}

func TestScenario33_TheEndLeavesTheBalance(t *testing.T) {
	r := shop(t)
	r.subscribe("basic", cardPays)
	_, err := r.cancel(true)
	r.check(err)
	r.advance(month)
	r.wantNone()
	r.wantTokens(10*million, 0)
	_, err = r.cancel(true)
	wantFault(t, err, fault.SubscriptionNotFound)
	r.subscribe("pro", cardPays)
	r.wantTokens(110*million, 0)
}

func TestCancelOfAFreePlanThatRunsHere(t *testing.T) {
	r := shop(t)
	r.plan("free", 0, grants("tokens", 1*million))
	r.changed("free")
	got, err := r.cancel(true)
	r.check(err)
	if !got.CancelAtPeriodEnd {
		t.Error("it does not end")
	}
	r.advance(month)
	r.wantNone()

	t.Run("and starting again in the same month mints nothing", func(t *testing.T) {
		r.changed("free")
		r.wantTokens(2*million, 0)
		_, err := r.cancel(true)
		r.check(err)
		r.advance(month)
		r.wantNone()
		r.wantTokens(2*million, 0)
	})
}

func TestScenario34_ADateInThePortalIsACancellation(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.provider("/v1/subscriptions/"+s.ProviderID, url.Values{"cancel_at": {strconv.FormatInt(s.Period.End/1000, 10)}})
	r.settle()
	if !r.subscription().CancelAtPeriodEnd {
		t.Error("it does not end")
	}
	got, err := r.cancel(false)
	r.check(err)
	if got.CancelAtPeriodEnd {
		t.Error("it still ends")
	}
	r.advance(month)
	r.wantOn("basic", metering.StatusActive)
}

func TestCancellingComesBeforeALaterDateOfCancellation(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	later := s.Period.End + 3*month.Milliseconds()
	r.provider("/v1/subscriptions/"+s.ProviderID, url.Values{"cancel_at": {strconv.FormatInt(later/1000, 10)}})
	r.settle()
	if got := must[billing.Subscription](r)(r.cancel(true)); !got.CancelAtPeriodEnd {
		t.Error("the answer does not end with its period")
	}
	r.advance(2 * month)
	r.wantNone()
	r.wantCollected(1000)
}
