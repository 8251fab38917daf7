package sandbox_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"

	"purser/ids"
	"purser/payments/sandbox/persist"
	"purser/payments/sandbox/sandboxtest"
)

// polled counts the updates of an account, and reports each poll for due accounts.
type polled struct {
	sandboxtest.Memory
	updates atomic.Int64
	polls   chan struct{}
}

func (p *polled) Update(ctx context.Context, app ids.ID, want persist.Want, change func(persist.Session) (persist.Change, error)) error {
	p.updates.Add(1)
	return p.Memory.Update(ctx, app, want, change)
}

func (p *polled) Due(ctx context.Context, at int64, limit int) ([]ids.ID, error) {
	select {
	case p.polls <- struct{}{}:
	default:
	}
	return p.Memory.Due(ctx, at, limit)
}

func TestRunPausesWhileAWebhookWaitsForItsRetry(t *testing.T) {
	t.Parallel()
	accounts := &polled{polls: make(chan struct{})}
	r := startWith(t, "2026-03-10", accounts)
	r.deliveries()
	r.refuses = 1
	arrived := make(chan struct{}, 100)
	r.onReceive = func() { arrived <- struct{}{} }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.server.Run(ctx) }()
	r.customer()
	<-arrived
	<-accounts.polls // the refused delivery has been recorded, or is being recorded
	<-accounts.polls
	before := accounts.updates.Load()
	<-accounts.polls
	if after := accounts.updates.Load(); after != before {
		t.Errorf("%d updates of an account in which nothing is due", after-before)
	}
	cancel()
	<-done
}

func TestAnEndpointAtThisServerIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	_, err := r.api.WebhookEndpoints.New(&stripe.WebhookEndpointParams{
		URL: stripe.String(r.http.URL + "/webhooks/nothing"), EnabledEvents: stripe.StringSlice([]string{"*"}),
	})
	wantRefusal(t, err, http.StatusBadRequest, "", "of this server")
}

func TestDeliveriesToADeletedEndpointDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	r := start(t)
	program := receiverOf(t)
	made := ok[*stripe.WebhookEndpoint](t)(r.api.WebhookEndpoints.New(&stripe.WebhookEndpointParams{
		URL: stripe.String(program.URL), EnabledEvents: stripe.StringSlice([]string{"customer.created"}),
	}))
	r.deliveries()
	_, err := r.server.Connect(t.Context(), r.app, webhookURL, []string{"product.created"})
	must(t, err)
	for range 100 { // two batches
		r.customer()
	}
	ok[*stripe.WebhookEndpoint](t)(r.api.WebhookEndpoints.Del(made.ID, nil))
	ok[*stripe.Product](t)(r.api.Products.New(&stripe.ProductParams{Name: stripe.String("Plan")}))
	if got := r.deliveries(); len(got) != 1 {
		t.Errorf("%d deliveries, want the product's", len(got))
	}
	if at := r.documents.Kept(r.app).WakeAt; at != 0 {
		t.Errorf("the account still wakes at %d", at)
	}
}

func TestTheApplicationsOwnWebhooksGoBeforeThoseToOtherPrograms(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.deliveries()
	var own atomic.Int64
	r.onReceive = func() { own.Add(1) }
	ownBefore := make(chan int64, 10)
	program := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ownBefore <- own.Load() }))
	t.Cleanup(program.Close)
	ok[*stripe.WebhookEndpoint](t)(r.api.WebhookEndpoints.New(&stripe.WebhookEndpointParams{
		URL: stripe.String(program.URL), EnabledEvents: stripe.StringSlice([]string{"customer.created"}),
	}))
	r.customer()
	r.customer()
	must(t, r.server.Flush(t.Context(), r.app))
	for range 2 {
		if got := <-ownBefore; got != 2 {
			t.Errorf("another program is called after %d of the application's two webhooks", got)
		}
	}
}

func TestDeliveriesThatWereNotTriedAreNotCountedAsTries(t *testing.T) {
	t.Parallel()
	r := start(t)
	program := receiverOf(t)
	ok[*stripe.WebhookEndpoint](t)(r.api.WebhookEndpoints.New(&stripe.WebhookEndpointParams{
		URL: stripe.String(program.URL), EnabledEvents: stripe.StringSlice([]string{"customer.created"}),
	}))
	r.deliveries()
	leave := r.server.OccupySenders()
	r.customer()
	for range 10 { // more often than a delivery to another program is tried
		must(t, r.server.Flush(t.Context(), r.app))
		r.passRealTime(2 * time.Second)
	}
	if got := len(program.drain()); got != 0 {
		t.Fatalf("%d deliveries while every sender is busy", got)
	}
	leave()
	must(t, r.server.Flush(t.Context(), r.app))
	r.server.WaitForSenders()
	if got := len(program.drain()); got != 1 {
		t.Errorf("%d deliveries", got)
	}
}
