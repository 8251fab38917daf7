package sandbox_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
	"golang.org/x/sync/errgroup"

	"purser/billing/sandbox/persist"
	"purser/billing/sandbox/sandboxtest"
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

// readMeter counts the reads that are inside of View together.
type readMeter struct {
	sandboxtest.Memory
	inside, most atomic.Int64
	first        sync.Once
	meet         func() // called by the first read
}

func (d *readMeter) View(ctx context.Context, app ids.ID, want persist.Want, read func(persist.Session) error) error {
	for now := d.inside.Add(1); ; {
		if was := d.most.Load(); now <= was || d.most.CompareAndSwap(was, now) {
			break
		}
	}
	defer d.inside.Add(-1)
	if d.meet != nil {
		d.first.Do(d.meet)
	}
	return d.Memory.View(ctx, app, want, read)
}

// The store has four connections for the sandbox, of all applications.
func TestReadsOfOneAccountUseTwoConnections(t *testing.T) {
	t.Parallel()
	const requests = 10
	accounts := &readMeter{}
	r := startWith(t, "2026-03-10", accounts)
	arrived := make(chan struct{}, requests)
	accounts.meet = func() { // holds its place until every request has come
		for range requests {
			<-arrived
		}
	}
	r.onAdmits = func() { arrived <- struct{}{} }
	var group errgroup.Group
	for range requests {
		group.Go(func() error {
			_, err := r.api.Accounts.Get()
			return err
		})
	}
	must(t, group.Wait())
	if limit := accounts.most.Load(); limit > 2 {
		t.Errorf("%d reads of one account ran at once", limit)
	}
}

func TestHEADOfTheSandboxChangesNothing(t *testing.T) {
	t.Parallel()
	accounts := &oneAtATime{}
	r := startWith(t, "2026-03-10", accounts)
	accounts.most.Store(0)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, r.server.StripeURL()+"/v1/customers", nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+r.server.Key(r.app))
	answer, err := r.http.Client().Do(request)
	must(t, err)
	must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK || accounts.most.Load() != 0 {
		t.Errorf("status %d after %d changes", answer.StatusCode, accounts.most.Load())
	}
}
