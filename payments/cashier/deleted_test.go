package cashier_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/payments/cashier"
	"purser/payments/stripe"
)

// deletedObjects answers reads of subscriptions as Stripe does after the test data was
// deleted, or with another answer.
type deletedObjects struct {
	status int
	body   string
}

const missingSubscription = `{"error": {"type": "invalid_request_error", "code": "resource_missing", "param": "id", "message": "No such subscription: 'sub_1'"}}`

func (d deletedObjects) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.Contains(req.URL.Path, "/v1/subscriptions/") {
		return http.DefaultTransport.RoundTrip(req)
	}
	return &http.Response{StatusCode: d.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(d.body)), Request: req}, nil
}

func (r *harness) deleteSubscriptions(status int, body string) {
	r.cashier = r.newCashier(func(o *cashier.Options) { o.SandboxTransport = deletedObjects{status, body} })
}

func TestASubscriptionThatTheProviderDeletedHasEnded(t *testing.T) {
	t.Parallel()
	t.Run("when it is refreshed", func(t *testing.T) {
		r := shop(t)
		s := r.subscribe("basic", cardPays)
		r.deleteSubscriptions(http.StatusNotFound, missingSubscription)
		r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
		r.wantNone()
		r.wantTokens(10*million, 0)
		r.wantNothingFailing()
	})
	t.Run("when it is changed or cancelled", func(t *testing.T) {
		r := shop(t)
		r.subscribe("basic", cardPays)
		r.advance(2 * time.Hour)
		r.deleteSubscriptions(http.StatusNotFound, missingSubscription)
		_, err := r.change("pro")
		wantFault(t, err, fault.SubscriptionNotFound)
		_, err = r.cancel(true)
		wantFault(t, err, fault.SubscriptionNotFound)
		r.checkout("pro")
	})
	for name, c := range map[string]deletedObjects{
		"a path that isn't there": {http.StatusNotFound, `{"error": {"type": "invalid_request_error", "message": "Unrecognized request URL."}}`},
		"a proxy":                 {http.StatusNotFound, `{"message": "no route"}`},
		"a wrong key":             {http.StatusUnauthorized, missingSubscription},
		"a key without the right": {http.StatusForbidden, missingSubscription},
		"an outage":               {http.StatusServiceUnavailable, missingSubscription},
	} {
		t.Run("but not by the answer of "+name, func(t *testing.T) {
			r := shop(t)
			r.subscribe("basic", cardPays)
			r.advance(2 * time.Hour)
			r.deleteSubscriptions(c.status, c.body)
			if _, err := r.cancel(true); err == nil || fault.Is(err, fault.SubscriptionNotFound) {
				t.Errorf("the caller gets %v", err)
			}
			r.wantOn("basic", metering.StatusActive)
		})
	}
	t.Run("but not in live mode", func(t *testing.T) {
		r := shop(t)
		s := r.subscribe("basic", cardPays)
		r.advance(2 * time.Hour)
		r.deleteSubscriptions(http.StatusNotFound, missingSubscription)
		if err := r.cashier.SyncAsLive(t.Context(), r.scope, "ada", s.ProviderID); !stripe.Is(err, stripe.NotFound) {
			t.Errorf("the sync says %v", err)
		}
		r.wantOn("basic", metering.StatusActive)
	})
	t.Run("but not in its first hour", func(t *testing.T) {
		r := shop(t)
		r.subscribe("basic", cardPays)
		r.deleteSubscriptions(http.StatusNotFound, missingSubscription)
		if _, err := r.cancel(true); err == nil {
			t.Error("it is cancelled")
		}
		r.wantOn("basic", metering.StatusActive)
	})
}

func TestACustomerThatTheProviderDeletedIsForgotten(t *testing.T) {
	t.Parallel()
	for name, withKey := range map[string]bool{"with another key": false, "with the same key": true} {
		t.Run("by a checkout, which succeeds "+name, func(t *testing.T) {
			r := withDeletedCustomer(t)
			key := newKey()
			_, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("basic"), key)
			wantFault(t, err, fault.OperationInProgress)
			if !withKey {
				key = newKey()
			}
			page := must[cashier.Page](r)(r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("basic"), key))
			r.pay(page.URL, cardPays)
			r.settle()
			r.wantOn("basic", metering.StatusActive)
		})
	}
	t.Run("by a top-up", func(t *testing.T) {
		r := withDeletedCustomer(t)
		key := newKey()
		for range 2 {
			_, err := r.cashier.TopUpCheckout(t.Context(), r.scope, r.topUpRequest(3000), key)
			wantFault(t, err, fault.OperationInProgress)
		}
		page := r.topUp(3000)
		r.pay(page.URL, cardPays)
		r.settle()
		r.wantTopUp(page.ID, billing.TopUpPaid)
	})
	t.Run("by the portal", func(t *testing.T) {
		r := withDeletedCustomer(t)
		r.swapCard(cardPays)
	})
}

// withDeletedCustomer is ada whose customer was deleted, of which no webhook came.
func withDeletedCustomer(t *testing.T) *harness {
	t.Helper()
	r := shop(t)
	r.topUp(1000)
	r.dropWebhooks.Store(true)
	r.askProvider(http.MethodDelete, "/v1/customers/"+r.callsTo("POST /v1/checkout/sessions")[0].Get("customer"), nil)
	r.settle()
	r.dropWebhooks.Store(false)
	return r
}
