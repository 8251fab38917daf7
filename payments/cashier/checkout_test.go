package cashier_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/store"
	"purser/store/payments"
)

// shop is an application with a few plans that grant tokens.
func shop(t *testing.T) *harness {
	t.Helper()
	t.Parallel()
	return openShop(t)
}

func openShop(t *testing.T) *harness {
	t.Helper()
	r := start(t)
	r.credit("tokens")
	r.plan("basic", 1000, grants("tokens", 10*million))
	r.plan("pro", 2900, grants("tokens", 100*million))
	return r
}

func TestScenario07_APaidCheckoutStartsTheSubscription(t *testing.T) {
	r := shop(t)
	page := r.checkout("basic")
	r.wantNone()
	r.wantTokens(0, 0)

	r.pay(page.URL, cardPays)
	r.settle()

	s := r.wantOn("basic", metering.StatusActive)
	r.wantTokens(10*million, 0)
	if length := s.Period.End - s.Period.Start; length < 28*24*time.Hour.Milliseconds() || s.Period.Start > r.now() {
		t.Errorf("the period is %v", s.Period)
	}
	r.settle()
	if got := r.deposits(); len(got) != 1 || got[0].IdempotencyKey != nil {
		t.Errorf("ada was given %d grants: %+v", len(got), got)
	}
	_, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("pro"), newKey())
	wantFault(t, err, fault.SubscriptionExists)
}

func TestScenario08_ADeclinedCardCanBeFollowedByAnother(t *testing.T) {
	r := shop(t)
	page := r.checkout("basic")
	if status, _ := r.tryToPay(page.URL, cardDeclined, ""); status != http.StatusPaymentRequired {
		t.Errorf("the page answers %d to a declined card", status)
	}
	r.settle()
	r.wantTokens(0, 0)
	r.pay(page.URL, cardPays)
	r.settle()
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(10*million, 0)
}

func TestScenario09_AuthenticationDecides(t *testing.T) {
	r := shop(t)
	page := r.checkout("basic")
	r.tryToPay(page.URL, cardAsksOnce, "fail")
	r.settle()
	r.wantTokens(0, 0)
	r.wantNotActive()
	if status, body := r.tryToPay(page.URL, cardAsksOnce, "complete"); status != http.StatusSeeOther {
		t.Fatalf("the page answers %d: %s", status, body)
	}
	r.settle()
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(10*million, 0)
}

func TestScenario10_AnAbandonedCheckoutExpires(t *testing.T) {
	r := shop(t)
	page := r.checkout("basic")
	r.advance(24 * time.Hour)
	r.wantNone()
	if status, _ := r.tryToPay(page.URL, cardPays, ""); status == http.StatusSeeOther {
		t.Error("an expired page could be paid")
	}
	change, err := r.store.Payments(r.scope).Change(t.Context(), page.ID)
	r.check(err)
	if change.State != billing.ChangeDropped {
		t.Errorf("the change is %s", change.State)
	}
}

func TestScenario11_TheSameKeyGivesTheSamePage(t *testing.T) {
	r := shop(t)
	key := newKey()
	first, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("basic"), key)
	r.check(err)
	made := len(r.callsTo("POST /v1/checkout/sessions"))
	again, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("basic"), key)
	r.check(err)
	if first != again {
		t.Errorf("%v became %v", first, again)
	}
	if now := len(r.callsTo("POST /v1/checkout/sessions")); now != made {
		t.Errorf("the repeat made %d more sessions", now-made)
	}
	_, err = r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("pro"), key)
	wantFault(t, err, fault.IdempotencyConflict)

	t.Run("also after it was paid", func(t *testing.T) {
		r.pay(first.URL, cardPays)
		r.settle()
		late, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("basic"), key)
		r.check(err)
		if late != first {
			t.Errorf("%v became %v", first, late)
		}
	})
}

func TestScenario12_OfTwoThatWereBoughtOneIsGivenBack(t *testing.T) {
	r := shop(t)
	page := r.checkout("basic")
	// A second page for the same order, which only the provider can make.
	sent := r.callsTo("POST /v1/checkout/sessions")[0]
	second := r.provider("/v1/checkout/sessions", sent)
	r.pay(page.URL, cardPays)
	r.pay(second["url"].(string), cardPays)
	r.settle()
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(10*million, 0)
	if refunds := r.callsTo("POST /v1/refunds"); len(refunds) != 1 {
		t.Errorf("%d refunds", len(refunds))
	}
	if ended := r.callsTo("DELETE /v1/subscriptions/"); len(ended) != 1 {
		t.Errorf("%d subscriptions were ended", len(ended))
	}
	alerts, _, err := r.store.Payments(r.scope).Alerts(t.Context(), store.Page{Limit: 10}, true)
	r.check(err)
	if len(alerts) != 1 || alerts[0].Kind != billing.DuplicateSubscription {
		t.Errorf("alerts: %+v", alerts)
	}
	r.advance(month)
	r.wantTokens(20*million, 0)
}

func TestScenario13_AFreePlanGrantsOnceAnInterval(t *testing.T) {
	r := shop(t)
	r.plan("free", 0, grants("tokens", 1*million))
	r.subscribe("free", noCard)
	r.wantOn("free", metering.StatusActive)
	r.wantTokens(1*million, 0)
	s := r.subscription()
	// It ends early, in the provider's own dashboard.
	r.cancelAtProvider(s.ProviderID)
	r.wantNone()
	r.subscribe("free", noCard)
	r.wantOn("free", metering.StatusActive)
	r.wantTokens(1*million, 0)
}

func TestScenario14_ABankDebitStartsItWhenItArrives(t *testing.T) {
	t.Run("when it succeeds", func(t *testing.T) {
		r := shop(t)
		r.pay(r.checkout("basic").URL, bankSucceeds)
		r.settle()
		r.wantNotActive()
		r.wantTokens(0, 0)
		r.advance(4 * 24 * time.Hour)
		r.wantOn("basic", metering.StatusActive)
		r.wantTokens(10*million, 0)
	})
	t.Run("and never when it fails", func(t *testing.T) {
		r := shop(t)
		r.pay(r.checkout("basic").URL, bankFails)
		r.advance(5 * 24 * time.Hour)
		r.wantNotActive()
		r.wantTokens(0, 0)
	})
}

func TestANewPageClosesTheOneBefore(t *testing.T) {
	r := shop(t)
	first := r.checkout("basic")
	second := r.checkout("pro")
	if status, _ := r.tryToPay(first.URL, cardPays, ""); status == http.StatusSeeOther {
		t.Error("the first page could still be paid")
	}
	r.pay(second.URL, cardPays)
	r.settle()
	r.wantOn("pro", metering.StatusActive)
	r.wantTokens(100*million, 0)

	t.Run("unless that was paid a moment ago", func(t *testing.T) {
		r := shop(t)
		r.controlSandbox("webhooks", `{"hold": true}`)
		r.pay(r.checkout("basic").URL, cardPays)
		_, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("pro"), newKey())
		wantFault(t, err, fault.OperationInProgress)
		r.wantOn("basic", metering.StatusActive)
		r.wantTokens(10*million, 0)
	})
}

func TestAFreeCheckoutThatWasJustCompletedIsNotCalledADebit(t *testing.T) {
	r := shop(t)
	r.plan("free", 0)
	r.controlSandbox("webhooks", `{"hold": true}`)
	r.pay(r.checkout("free").URL, noCard)
	_, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("pro"), newKey())
	wantFault(t, err, fault.OperationInProgress)
	if err != nil && !strings.Contains(err.Error(), "just completed") {
		t.Errorf("the caller is told %q", err)
	}
	r.wantOn("free", metering.StatusActive)
}

// cancelAtProvider ends a subscription at once, behind our back.
func (r *harness) cancelAtProvider(id string) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodDelete, r.sandbox.StripeURL()+"/v1/subscriptions/"+id, nil)
	r.check(err)
	request.Header.Set("Authorization", "Bearer "+r.sandbox.Key(r.app.ID))
	response, err := r.http.Client().Do(request)
	r.check(err)
	r.check(response.Body.Close())
	r.settle()
}

func TestASubscriptionCheckoutIsOpenUntilItIsPaidOrADebitIsProcessing(t *testing.T) {
	r := shop(t)
	page := r.checkout("basic")
	listed := func() payments.Checkout {
		t.Helper()
		list, _, err := r.store.Payments(r.scope).Checkouts(t.Context(), payments.CheckoutPage{Page: store.Page{Limit: 1}})
		r.check(err)
		return list[0]
	}
	if got := listed(); !got.IsOpen() || got.URL != page.URL || got.ExpiresAt == 0 {
		t.Errorf("unpaid: %+v", got)
	}
	r.pay(page.URL, bankSucceeds)
	r.settle()
	if got := listed(); got.IsOpen() || got.State != string(billing.ChangePending) {
		t.Errorf("while the debit is processing: %+v", got)
	}
	r.advance(4 * 24 * time.Hour)
	if got := listed(); got.IsOpen() || got.State != string(billing.ChangeApplied) {
		t.Errorf("paid: %+v", got)
	}
}
