package sandbox_test

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
	"github.com/stripe/stripe-go/v79/webhook"

	"purser/ids"
	"purser/payments/sandbox"
)

// forever accepts a signature of any age: the harness has its own time.
const forever = 100 * 365 * day

// deliveries gives what has arrived since the last time, as bytes.
func (r *harness) deliveries() []received {
	r.Helper()
	if err := r.server.Flush(r.Context(), r.app); err != nil {
		r.Log(err)
	}
	r.server.WaitForSenders()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.raw
	r.raw = nil
	return all
}

func TestWebhooks(t *testing.T) {
	t.Parallel()

	t.Run("are signed as Stripe signs, at the real time", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.advance(40 * day)
		r.customer()
		got := r.deliveries()
		delivery := got[len(got)-1]
		event, err := r.verify(delivery, r.secret, forever)
		must(t, err)
		if event.Type != "customer.created" || event.APIVersion != stripe.APIVersion || event.Livemode || event.Created != r.clock().Unix() {
			t.Errorf("event %+v", event)
		}
		at, signature, _ := strings.Cut(strings.TrimPrefix(delivery.signature, "t="), ",v1=")
		seconds, err := strconv.ParseInt(at, 10, 64)
		must(t, err)
		if seconds != r.realTime().Unix() {
			t.Errorf("signed at %d, it is %d", seconds, r.realTime().Unix())
		}
		if want := webhook.ComputeSignature(time.Unix(seconds, 0), delivery.body, r.secret); signature != hex.EncodeToString(want) {
			t.Errorf("signed %s", signature)
		}
		delivery.body[len(delivery.body)-2] ^= 1
		if _, err := r.verify(delivery, r.secret, forever); !errors.Is(err, webhook.ErrNoValidSignature) {
			t.Errorf("a changed byte: %v", err)
		}
	})

	t.Run("are signed with secrets that are not stored, unless another program has them", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		stored := r.storedText()
		if strings.Contains(stored, r.secret) {
			t.Errorf("the account is stored with the secret %s", r.secret)
		}
		r.customer()
		delivery := r.deliveries()[0]
		for _, text := range regexp.MustCompile(`whsec_\w+`).FindAllString(stored, -1) {
			if _, err := r.verify(delivery, text, forever); !errors.Is(err, webhook.ErrNoValidSignature) {
				t.Errorf("the stored %s verifies a webhook: %v", text, err)
			}
		}
	})

	t.Run("are sent again, later and later, until they are taken", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.deliveries()
		r.mu.Lock()
		r.refuses = 3
		r.mu.Unlock()
		r.customer()
		for _, wait := range []time.Duration{0, time.Second, 5 * time.Second, 30 * time.Second} {
			if wait > 0 {
				r.passRealTime(wait - time.Millisecond)
				if got := r.deliveries(); len(got) != 0 {
					t.Errorf("sent before %s have passed", wait)
				}
				r.passRealTime(time.Millisecond)
			}
			if got := r.deliveries(); len(got) != 1 {
				t.Errorf("sent %d times after %s", len(got), wait)
			}
		}
		r.passRealTime(time.Hour)
		if got := r.deliveries(); len(got) != 0 {
			t.Error("sent again though it was taken")
		}
	})

	t.Run("tell the store when the account is due next", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		if at := r.documents.Kept(r.app).WakeAt; at != 0 {
			t.Errorf("an idle account wakes at %d", at)
		}
		session := r.topup(500)
		r.deliveries()
		if at, want := r.documents.Kept(r.app).WakeAt, session.ExpiresAt*1000; at != want {
			t.Errorf("wakes at %d, want the session's end %d", at, want)
		}
		r.advance(time.Hour)
		r.deliveries()
		if at, want := r.documents.Kept(r.app).WakeAt, (session.ExpiresAt-3600)*1000; at != want {
			t.Errorf("wakes at %d of real time, want %d", at, want)
		}
	})

	t.Run("leave by themselves, and time passes, while the server runs", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		arrived := make(chan string, 100)
		session := r.topup(500)
		r.deliveries()
		r.onReceive = func() { arrived <- "something" }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.server.Run(ctx) }()
		r.customer()
		<-arrived
		// No request follows: the account's own timer has to do it.
		r.passRealTime(25 * time.Hour)
		<-arrived
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("it stopped with %v", err)
		}
		if got := r.session(session.ID).Status; got != "expired" {
			t.Errorf("the session is %s", got)
		}
	})

	t.Run("go to the endpoints that want them", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		ok[sandbox.Connection](t)(r.server.Connect(t.Context(), r.app, webhookURL, []string{"product.created"}))
		program := receiverOf(t)
		made := ok[*stripe.WebhookEndpoint](t)(r.api.WebhookEndpoints.New(&stripe.WebhookEndpointParams{
			URL: stripe.String(program.URL), EnabledEvents: stripe.StringSlice([]string{"customer.created"}), APIVersion: stripe.String("2026-09-30.endive"),
		}))
		if !strings.HasPrefix(made.Secret, "whsec_") || made.APIVersion != "2024-06-20" {
			t.Errorf("made %+v", made)
		}
		list := r.api.WebhookEndpoints.List(&stripe.WebhookEndpointListParams{})
		for list.Next() {
			if list.WebhookEndpoint().Secret != "" {
				t.Error("the secret is shown again")
			}
		}
		r.customer()
		if got := r.deliveries(); len(got) != 0 {
			t.Fatalf("%d deliveries to the application itself", len(got))
		}
		got := program.drain()
		if len(got) != 1 {
			t.Fatalf("%d deliveries", len(got))
		}
		if _, err := r.verify(got[0], made.Secret, forever); err != nil {
			t.Error(err)
		}
		ok[*stripe.WebhookEndpoint](t)(r.api.WebhookEndpoints.Del(made.ID, nil))
		r.customer()
		if r.deliveries(); len(program.drain()) != 0 {
			t.Error("it gets events after it was deleted")
		}
	})

	t.Run("to another program are tried a few times, and nothing waits for them", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		program := receiverOf(t)
		program.refuses.Store(true)
		ok[*stripe.WebhookEndpoint](t)(r.api.WebhookEndpoints.New(&stripe.WebhookEndpointParams{
			URL: stripe.String(program.URL), EnabledEvents: stripe.StringSlice([]string{"customer.created"}),
		}))
		r.customer()
		r.advance(time.Hour) // which delivers all that it waits for
		for range 10 {
			r.passRealTime(2 * time.Hour)
			must(t, r.server.Flush(t.Context(), r.app))
			r.server.WaitForSenders()
		}
		if got := len(program.drain()); got != 5 {
			t.Errorf("tried %d times", got)
		}
	})

	t.Run("go nowhere but to this machine", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		for _, address := range []string{"https://example.com/hook", "http://10.0.0.1/", "http://localhost.example.com/", "http://127.0.0.1.nip.io/", "http://0.0.0.0/", "http://[::ffff:10.0.0.1]/"} {
			_, err := r.api.WebhookEndpoints.New(&stripe.WebhookEndpointParams{URL: stripe.String(address), EnabledEvents: stripe.StringSlice([]string{"*"})})
			wantRefusal(t, err, http.StatusBadRequest, "", "this machine only")
		}
	})

	t.Run("leave a server with a public address for its own application only", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		public := sandbox.New(sandbox.Options{
			Accounts: r.documents, BaseURL: "https://purser.example", Secret: []byte("thirty-two bytes of test secret!"),
			Admits:    func(context.Context, ids.ID) (bool, error) { return true, nil },
			Authorize: func(*http.Request) (ids.ID, error) { return r.app, nil }, Deliver: r.receive,
			Drain: func(context.Context, ids.ID) error { return nil }, Now: r.realTime, Log: slog.New(slog.DiscardHandler),
		})
		body := url.Values{"url": {"http://127.0.0.1:1/"}, "enabled_events[0]": {"*"}}.Encode()
		request := httptest.NewRequest(http.MethodPost, "/sandbox/stripe/v1/webhook_endpoints", strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer "+r.server.Key(r.app))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer := httptest.NewRecorder()
		public.Handler().ServeHTTP(answer, request)
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "public address") {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
	})

	t.Run("show an object as it was, and what it was before", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.subscribe(r.price(2900), cardPays)
		must(t, r.server.Flush(t.Context(), r.app))
		statuses := map[string]any{}
		for _, event := range r.received {
			if strings.HasPrefix(string(event.Type), "customer.subscription.") {
				statuses[string(event.Type)] = event.Data.Object["status"]
				if event.Type == "customer.subscription.updated" && event.Data.PreviousAttributes["status"] != "incomplete" {
					t.Errorf("before it was %v", event.Data.PreviousAttributes)
				}
			}
		}
		if statuses["customer.subscription.created"] != "incomplete" || statuses["customer.subscription.updated"] != "active" {
			t.Errorf("shown as %v", statuses)
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	keyed := func() *stripe.CustomerParams {
		params := &stripe.CustomerParams{Name: stripe.String("Ada")}
		params.SetIdempotencyKey("key-1")
		return params
	}
	count := func(t *testing.T, r *harness) (found int) {
		t.Helper()
		list := r.api.Customers.Search(&stripe.CustomerSearchParams{SearchParams: stripe.SearchParams{Query: "name:'Ada'"}})
		for list.Next() {
			found++
		}
		must(t, list.Err())
		return found
	}

	t.Run("drop the connection after it is done; the same key finds it", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.server.Inject(r.app, sandbox.Fault{Kind: sandbox.DropAfter})
		if _, err := r.api.Customers.New(keyed()); err == nil {
			t.Error("it was answered")
		}
		again := ok[*stripe.Customer](t)(r.api.Customers.New(keyed()))
		if again.LastResponse.Header.Get("Idempotent-Replayed") != "true" || count(t, r) != 1 {
			t.Errorf("%d were made", count(t, r))
		}
	})

	t.Run("are survived by the client's own retries, with one key", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.server.Inject(r.app, sandbox.Fault{Kind: sandbox.Conflict})
		retrying := r.client(r.server.Key(r.app), 2)
		ok[*stripe.Customer](t)(retrying.Customers.New(&stripe.CustomerParams{Name: stripe.String("Ada")}))
		if count(t, r) != 1 {
			t.Errorf("%d were made", count(t, r))
		}
	})

	t.Run("answer with errors, saved for the key where Stripe saves them", func(t *testing.T) {
		t.Parallel()
		for kind, want := range map[sandbox.FaultKind]struct {
			status int
			saved  bool
		}{
			sandbox.Fail:     {http.StatusInternalServerError, true},
			sandbox.Decline:  {http.StatusPaymentRequired, true},
			sandbox.Conflict: {http.StatusConflict, false},
			sandbox.Limit:    {http.StatusTooManyRequests, false},
		} {
			r := start(t)
			r.server.Inject(r.app, sandbox.Fault{Kind: kind, Only: "POST /v1/customers"})
			_, err := r.api.Customers.New(keyed())
			if got := refused(t, err).HTTPStatusCode; got != want.status {
				t.Errorf("%d, want %d", got, want.status)
			}
			if _, err = r.api.Customers.New(keyed()); (err != nil) != want.saved {
				t.Errorf("%d: the same key gets %v", want.status, err)
			}
			other := keyed()
			other.SetIdempotencyKey("key-2")
			ok[*stripe.Customer](t)(r.api.Customers.New(other))
		}
	})

	t.Run("apply to matching requests, the given number of times", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.server.Inject(r.app, sandbox.Fault{Kind: sandbox.Limit, Times: 2, Only: "POST /v1/products"})
		r.customer()
		for i := range 3 {
			_, err := r.api.Products.New(&stripe.ProductParams{Name: stripe.String("Pro")})
			if (err != nil) != (i < 2) {
				t.Errorf("request %d: %v", i, err)
			}
		}
	})
}

// webhookReceiver is another program on this machine that receives webhooks.
type webhookReceiver struct {
	*httptest.Server
	refuses atomic.Bool
	mu      sync.Mutex
	got     []received
}

func receiverOf(t *testing.T) *webhookReceiver {
	t.Helper()
	p := &webhookReceiver{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.got = append(p.got, received{r.Header.Get("Stripe-Signature"), body})
		if p.refuses.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// drain is what has arrived since the last time.
func (p *webhookReceiver) drain() []received {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.got
	p.got = nil
	return got
}
