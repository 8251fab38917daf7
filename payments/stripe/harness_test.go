package stripe_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"purser/billing"
	"purser/ids"
	"purser/payments/sandbox"
	"purser/payments/sandbox/sandboxtest"
	"purser/payments/stripe"
)

// harness is a client with a sandbox to call.
type harness struct {
	*testing.T
	*stripe.Client
	app     ids.ID
	sandbox *sandbox.Server
	http    *httptest.Server
	hangs   atomic.Bool // requests get no response

	mu   sync.Mutex
	keys []string // idempotency keys, as they came
}

func start(t *testing.T) *harness {
	t.Helper()
	t.Parallel()
	r := &harness{T: t, app: ids.New()}
	var handler http.Handler
	r.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if key := req.Header.Get("Idempotency-Key"); key != "" {
			r.mu.Lock()
			r.keys = append(r.keys, key)
			r.mu.Unlock()
		}
		if r.hangs.Load() {
			_, _ = io.Copy(io.Discard, req.Body) // a server notices a client's end after that only
			<-req.Context().Done()
			return
		}
		handler.ServeHTTP(w, req)
	}))
	t.Cleanup(r.http.Close)
	r.sandbox = sandbox.New(sandbox.Options{
		Accounts: &sandboxtest.Memory{}, BaseURL: r.http.URL, Secret: []byte("thirty-two bytes of test secret!"),
		Admits:    func(context.Context, ids.ID) (bool, error) { return true, nil },
		Authorize: func(*http.Request) (ids.ID, error) { return r.app, nil },
		Deliver:   func(context.Context, string, http.Header, []byte) error { return nil },
		Drain:     func(context.Context, ids.ID) error { return nil },
		Now:       time.Now,
		Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	handler = r.sandbox.Handler()
	r.Client = stripe.New(stripe.Access{Key: r.sandbox.Key(r.app), SandboxURL: r.sandbox.StripeURL()})
	return r
}

func (r *harness) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *harness) inject(f sandbox.Fault) {
	r.Helper()
	r.sandbox.Inject(r.app, f)
}

func (r *harness) wantProblem(err error, kind stripe.Kind) {
	r.Helper()
	if !stripe.Is(err, kind) {
		r.Errorf("got %v, want a problem of the kind %s", err, kind)
	}
}

// price makes a monthly price.
func (r *harness) price(name string, cents int64) stripe.Price {
	r.Helper()
	r.check(r.CreateProduct(r.Context(), "product "+name, stripe.Product{ID: name, Name: name, Active: true}, nil))
	made, err := r.CreatePrice(r.Context(), "price "+name, stripe.Price{
		ProductID: name, Reference: "ref:" + name, Price: billing.Price{AmountCents: cents, Currency: "usd", Interval: billing.Month},
	}, nil)
	r.check(err)
	return made
}

// subscribe buys the price on a page.
func (r *harness) subscribe(price stripe.Price, card string) stripe.Subscription {
	r.Helper()
	customer, err := r.CreateCustomer(r.Context(), "customer", map[string]string{"identity_hash": "h"})
	r.check(err)
	page, err := r.CreateSubscriptionSession(r.Context(), "session", stripe.SessionOrder{
		CustomerID: customer, Reference: "chk_1", SuccessURL: "http://shop.test/yes", CancelURL: "http://shop.test/no",
		ExpiresAt: time.Now().Add(time.Hour).UnixMilli(), PriceID: price.ID, Metadata: map[string]string{"checkout": "chk_1"},
	})
	r.check(err)
	r.pay(page.URL, card)
	said, err := r.Session(r.Context(), page.ID)
	r.check(err)
	s, err := r.Subscription(r.Context(), said.SubscriptionID)
	r.check(err)
	return s
}

const cardPays = "4242424242424242"

func (r *harness) pay(page, card string) {
	r.Helper()
	r.submit(page, url.Values{"card": {card}})
}

// start begins what costs nothing.
func (r *harness) start(page string) {
	r.Helper()
	r.submit(page, url.Values{"action": {"start"}})
}

func (r *harness) submit(page string, fields url.Values) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, page, strings.NewReader(fields.Encode()))
	r.check(err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", r.http.URL)
	stays := *r.http.Client()
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := stays.Do(request)
	r.check(err)
	r.check(response.Body.Close())
	if response.StatusCode != http.StatusSeeOther {
		r.Fatalf("the page answers %d", response.StatusCode)
	}
}
