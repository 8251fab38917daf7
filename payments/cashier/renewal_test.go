package cashier_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"purser/billing"
	"purser/metering"
	"purser/payments/cashier"
	"purser/store"
)

func TestScenario35_TheHourBeforeTheChargeChangesNothing(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.advanceTo(s.Period.End + (30 * time.Minute).Milliseconds())
	if got := r.wantOn("basic", metering.StatusActive); got.Period != s.Period {
		t.Errorf("the period went from %v to %v before it was paid", s.Period, got.Period)
	}
	r.wantTokens(10*million, 0)
	r.advance(2 * time.Hour)
	if got := r.wantOn("basic", metering.StatusActive); got.Period.Start != s.Period.End {
		t.Errorf("the period is %v after %v", got.Period, s.Period)
	}
	r.wantTokens(20*million, 0)
}

func TestScenario36_ARenewalGrantsOnce(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.advance(month)
	if got := r.wantOn("basic", metering.StatusActive); got.Period.Start != s.Period.End {
		t.Errorf("the period is %v after %v", got.Period, s.Period)
	}
	r.wantTokens(20*million, 0)
	r.settle()
	r.wantTokens(20*million, 0)
}

func TestScenario37_AFailedRenewalHoldsAndRecovers(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.swapCard(cardFailsLater)
	r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
	if got := r.wantOn("basic", metering.StatusPastDue); !got.PaymentHold() {
		t.Error("there is no hold")
	}
	r.wantTokens(10*million, 0)
	r.swapCard(cardPays)
	r.advance(6 * 24 * time.Hour)
	if got := r.wantOn("basic", metering.StatusActive); got.PaymentHold() || got.Period.Start != s.Period.End {
		t.Errorf("hold %v, period %v", got.PaymentHold(), got.Period)
	}
	r.wantTokens(20*million, 0)
}

func TestScenario38_WhatIsNeverPaidEnds(t *testing.T) {
	r := shop(t)
	r.subscribe("basic", cardPays)
	r.swapCard(cardFailsLater)
	r.advance(50 * 24 * time.Hour)
	r.wantNone()
	r.wantTokens(10*million, 0)
}

func TestScenario39_AnAnchorOnThe31stKeepsItsDay(t *testing.T) {
	r := shop(t)
	leap := time.UnixMilli(r.now()).UTC().Year() + 1
	for time.Date(leap, time.February, 29, 0, 0, 0, 0, time.UTC).Month() != time.February {
		leap++
	}
	r.advanceTo(time.Date(leap, time.January, 31, 10, 0, 0, 0, time.UTC).UnixMilli())
	r.subscribe("basic", cardPays)
	for _, end := range []string{"Feb 29", "Mar 31", "Apr 30"} {
		s := r.subscription()
		if got := time.UnixMilli(s.Period.End).UTC().Format("Jan 02"); got != end {
			t.Errorf("the period ends on %s, not on %s", got, end)
		}
		r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
	}
	r.wantTokens(40*million, 0)
}

func TestScenario40_ManyRenewalsInOneAdvance(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.advance(367 * 24 * time.Hour) // a year may have a leap day, and a renewal is charged an hour after the period
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(130*million, 0)
	given := r.deposits()
	if len(given) != 13 {
		t.Fatalf("%d grants, not 13", len(given))
	}
	for i, newer := range given[:len(given)-1] {
		if newer.CreatedAt <= given[i+1].CreatedAt {
			t.Errorf("grant %d came at %d, the one before at %d", i, newer.CreatedAt, given[i+1].CreatedAt)
		}
	}
	if first := given[len(given)-1]; first.CreatedAt > s.Period.End {
		t.Errorf("the first grant came at %d", first.CreatedAt)
	}
}

func TestAFreePlanRenewsByTheCalendar(t *testing.T) {
	r := shop(t)
	r.plan("free", 0, grants("tokens", 1*million))
	first := r.changed("free")
	r.advance(3 * month)
	s := r.wantOn("free", metering.StatusActive)
	if s.Period.Start <= first.Period.Start || s.Period.End <= r.now() {
		t.Errorf("the period is %v at %d", s.Period, r.now())
	}
	r.wantTokens(4*million, 0)
}

// addPendingItems puts twelve pending items on ada's next invoice, in front of her plan.
func (r *harness) addPendingItems(id string) {
	r.Helper()
	item := r.itemOf(id)
	for _, quantity := range []string{"2", "1", "2", "1", "2", "1"} {
		r.provider("/v1/subscriptions/"+id, url.Values{
			"items[0][id]": {item}, "items[0][quantity]": {quantity}, "proration_behavior": {"create_prorations"},
		})
	}
}

// itemOf is the one item of a subscription.
func (r *harness) itemOf(id string) string {
	r.Helper()
	return r.askProvider(http.MethodGet, "/v1/subscriptions/"+id, nil)["items"].(map[string]any)["data"].([]any)[0].(map[string]any)["id"].(string)
}

func TestAnUnknownPriceIsListedForEachCustomer(t *testing.T) {
	r := shop(t)
	price := r.provider("/v1/prices", url.Values{
		"product": {r.readPlan("basic").ProductReference()}, "unit_amount": {"1500"}, "currency": {"usd"}, "recurring[interval]": {"month"},
	})["id"].(string)
	var end int64
	for _, identity := range []string{"ada", "bob"} {
		request := r.checkoutRequest("basic")
		request.Identity = identity
		r.pay(must[cashier.Page](r)(r.cashier.SubscriptionCheckout(t.Context(), r.scope, request, newKey())).URL, cardPays)
		r.settle()
		s := must[billing.Subscription](r)(r.cashier.Subscription(t.Context(), r.scope, identity))
		r.provider("/v1/subscriptions/"+s.ProviderID, url.Values{
			"items[0][id]": {r.itemOf(s.ProviderID)}, "items[0][price]": {price}, "proration_behavior": {"none"},
		})
		end = s.Period.End
	}
	want := func(each int) {
		t.Helper()
		r.settle()
		alerts, _, err := r.store.Payments(r.scope).Alerts(t.Context(), store.Page{Limit: 10}, false)
		r.check(err)
		found := map[string]int{}
		for _, a := range alerts {
			if a.Kind == billing.UnknownPrice {
				found[a.Identity]++
			}
		}
		if len(alerts) != 2*each || found["ada"] != each || found["bob"] != each {
			t.Errorf("want %d for each customer: %+v", each, alerts)
		}
	}
	want(1) // the subscription
	r.advanceTo(end + (2 * time.Hour).Milliseconds())
	want(2) // and the renewal that was paid
}

func TestARenewalBehindManyPendingItemsIsKnown(t *testing.T) {
	t.Run("when it is paid", func(t *testing.T) {
		r := shop(t)
		s := r.subscribe("basic", cardPays)
		r.addPendingItems(s.ProviderID)
		r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
		r.wantTokens(20*million, 0)
		if got := r.wantOn("basic", metering.StatusActive); got.Period.Start != s.Period.End {
			t.Errorf("the period begins at %d, want %d", got.Period.Start, s.Period.End)
		}
		r.wantAlerts()
	})
	t.Run("when it is cancelled before it is charged", func(t *testing.T) {
		r := shop(t)
		s := r.subscribe("basic", cardPays)
		r.addPendingItems(s.ProviderID)
		r.advanceTo(s.Period.End + (10 * time.Minute).Milliseconds())
		if got := must[billing.Subscription](r)(r.cancel(true)); got.Status != metering.StatusCanceled {
			t.Errorf("the answer is %s", got.Status)
		}
		r.advance(2 * time.Hour)
		r.wantNone()
		r.wantCollected(1000)
	})
}
