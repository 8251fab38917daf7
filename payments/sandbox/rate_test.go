package sandbox_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"

	"purser/ids"
)

func TestRequestsPastTheRateAreRefusedAsStripeDoes(t *testing.T) {
	t.Parallel()
	r := start(t)
	var limited ids.ID
	var admitted atomic.Int64
	r.onAdmits = func() { admitted.Add(1) }
	r.limit = func(app ids.ID, header http.Header) time.Duration {
		limited = app
		header.Set("RateLimit", `"key";r=0;t=2`)
		return 1500 * time.Millisecond
	}
	_, err := r.api.Customers.New(&stripe.CustomerParams{})
	var refused *stripe.Error
	if !errors.As(err, &refused) || refused.HTTPStatusCode != http.StatusTooManyRequests || refused.Code != stripe.ErrorCodeRateLimit || refused.Type != stripe.ErrorTypeInvalidRequest {
		t.Fatalf("answered %v", err)
	}
	if header := refused.LastResponse.Header; header.Get("Retry-After") != "2" || header.Get("RateLimit") == "" {
		t.Errorf("headers %v", header)
	}
	if limited != r.app || admitted.Load() != 0 {
		t.Errorf("limited %s after %d reads", limited, admitted.Load())
	}

	t.Run("an unknown key takes nothing of the rate", func(t *testing.T) {
		limited = ids.ID{}
		_, err := r.client("sk_test_"+limited.String(), 0).Customers.New(&stripe.CustomerParams{})
		if !errors.As(err, &refused) || refused.HTTPStatusCode != http.StatusUnauthorized || limited != (ids.ID{}) {
			t.Errorf("answered %v, limited %s", err, limited)
		}
	})
	t.Run("callers in this process are not limited", func(t *testing.T) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/sandbox/stripe/v1/customers", nil)
		request.Header.Set("Authorization", "Bearer "+r.server.Key(r.app))
		answer := httptest.NewRecorder()
		r.server.Internal().ServeHTTP(answer, request)
		if answer.Code != http.StatusOK {
			t.Errorf("status %d: %s", answer.Code, answer.Body)
		}
	})
}

func TestHEADOfTheSandboxChangesNothing(t *testing.T) {
	t.Parallel()
	accounts := &watchedAccounts{}
	r := startWith(t, "2026-03-10", accounts)
	accounts.updates.most.Store(0)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, r.server.StripeURL()+"/v1/customers", nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+r.server.Key(r.app))
	answer, err := r.http.Client().Do(request)
	must(t, err)
	must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK || accounts.updates.most.Load() != 0 {
		t.Errorf("status %d after %d changes", answer.StatusCode, accounts.updates.most.Load())
	}
}
