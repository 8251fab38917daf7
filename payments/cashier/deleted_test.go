package cashier_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/cashier"
	"purser/payments/stripe"
	"purser/store"
	"purser/store/payments"
	"purser/store/queue"
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
	return d.answer(req), nil
}

func (d deletedObjects) answer(req *http.Request) *http.Response {
	return &http.Response{StatusCode: d.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(d.body)), Request: req}
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
	t.Run("by the portal, whose configuration was deleted too", func(t *testing.T) {
		r := withDeletedCustomer(t)
		accounts := r.store.PaymentAccounts(r.scope)
		connection := must[payments.Connection](r)(accounts.Connection(t.Context()))
		if err := accounts.SetPortalConfiguration(t.Context(), connection.ID, "bpc_deleted"); err != nil {
			t.Fatal(err)
		}
		r.swapCard(cardPays)
		if kept := must[payments.Connection](r)(accounts.Connection(t.Context())).PortalConfiguration; kept == "bpc_deleted" {
			t.Errorf("the connection keeps the configuration %s", kept)
		}
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

// deletedSessions answers reads of checkout sessions as if they had been deleted.
type deletedSessions struct{}

func (deletedSessions) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet || !strings.Contains(req.URL.Path, "/v1/checkout/sessions/") {
		return http.DefaultTransport.RoundTrip(req)
	}
	return deletedObjects{http.StatusNotFound, strings.Replace(missingSubscription, "subscription", "checkout.session", 1)}.answer(req), nil
}

func (r *harness) deleteSessions() {
	r.cashier = r.newCashier(func(o *cashier.Options) { o.SandboxTransport = deletedSessions{} })
}

func TestAPageThatTheProviderDeletedHasExpired(t *testing.T) {
	t.Parallel()
	wantState := func(r *harness, page cashier.Page, state string) {
		r.Helper()
		if c := must[payments.Checkout](r)(r.store.Payments(r.scope).CheckoutByID(r.Context(), page.ID)); c.State != state {
			r.Errorf("the checkout is %s, want %s", c.State, state)
		}
	}
	// opened is ada with a page of each kind. They expire at the provider without a report.
	opened := func(t *testing.T) (r *harness, topUp, checkout cashier.Page) {
		r = shop(t)
		topUp, checkout = r.topUp(3000), r.checkout("basic")
		r.dropWebhooks.Store(true)
		return r, topUp, checkout
	}
	t.Run("when it is refreshed", func(t *testing.T) {
		r, topUp, checkout := opened(t)
		r.deleteSessions()
		r.advance(24 * time.Hour)
		wantState(r, topUp, string(billing.TopUpExpired))
		wantState(r, checkout, string(billing.ChangeDropped))
		r.wantNothingFailing()
		_, _, err := r.store.App(r.scope).Erase(t.Context(), store.Erasure{ID: ids.New(), Identity: "ada", Reason: "asked", IdempotencyKey: newKey(), CreatedAt: r.now()})
		r.check(err)
	})
	t.Run("when it is refreshed in its first hour, after that", func(t *testing.T) {
		r, topUp, checkout := opened(t)
		r.deleteSessions()
		for _, page := range []cashier.Page{topUp, checkout} {
			session := must[payments.Checkout](r)(r.store.Payments(r.scope).CheckoutByID(t.Context(), page.ID)).SessionID
			r.check(r.store.Queue(r.scope).Enqueue(t.Context(), queue.Job{Kind: queue.JobSession, Object: session}))
		}
		r.settle()
		wantState(r, topUp, string(billing.TopUpOpen))
		wantState(r, checkout, string(billing.ChangePending))
		r.advance(2 * time.Hour)
		wantState(r, topUp, string(billing.TopUpExpired))
		wantState(r, checkout, string(billing.ChangeDropped))
		r.wantNothingFailing()
	})
	t.Run("when there is another checkout", func(t *testing.T) {
		r, _, checkout := opened(t)
		r.advance(2 * time.Hour)
		r.deleteSessions()
		r.checkout("pro")
		wantState(r, checkout, string(billing.ChangeDropped))
	})
	t.Run("but not in its first hour", func(t *testing.T) {
		r, _, checkout := opened(t)
		r.deleteSessions()
		if _, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("pro"), newKey()); err == nil {
			t.Error("another page is open")
		}
		wantState(r, checkout, string(billing.ChangePending))
	})
	t.Run("but not in live mode", func(t *testing.T) {
		r, topUp, _ := opened(t)
		r.advance(2 * time.Hour)
		r.deleteSessions()
		session := must[payments.Checkout](r)(r.store.Payments(r.scope).CheckoutByID(t.Context(), topUp.ID)).SessionID
		r.check(r.cashier.RefreshSessionAsLive(t.Context(), r.scope, session))
		wantState(r, topUp, string(billing.TopUpOpen))
	})
}
