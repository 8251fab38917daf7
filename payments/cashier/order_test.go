package cashier_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"purser/metering"
	"purser/payments/cashier"
	"purser/payments/sandbox"
	"purser/store/queue"
	"purser/store/storetest"
)

// publicError is a webhook that has not been brought yet.
type publicError struct {
	Type    string
	Created int64
	body    []byte
}

// unheard makes a change at the provider whose webhooks are dropped, and returns
// the webhooks that would have told of it.
func (r *harness) unheard(happens func()) (all []publicError) {
	r.Helper()
	r.idle.Store(true)
	r.dropWebhooks.Store(true)
	before := len(r.arrived)
	happens()
	r.settle()
	for _, webhook := range r.arrived[before:] {
		next := publicError{body: webhook.body}
		r.check(json.Unmarshal(webhook.body, &next))
		all = append(all, next)
	}
	r.idle.Store(false)
	r.dropWebhooks.Store(false)
	return all
}

// bring brings webhooks one by one, each applied before the next.
func (r *harness) bring(all []publicError) {
	r.Helper()
	connection, secret := r.webhookSecret()
	for _, t := range all {
		r.check(r.cashier.ReceiveWebhook(r.Context(), connection, signed(t.body, r.clock(), secret), t.body))
		r.check(r.cashier.DrainAll(r.Context(), r.app.ID))
	}
}

func position(all []publicError, kind string) int {
	return slices.IndexFunc(all, func(t publicError) bool { return t.Type == kind })
}

func TestScenario55_TwoEventsOfOneSecondMayBeSwapped(t *testing.T) {
	r := shop(t)
	page := r.checkout("basic")
	all := r.unheard(func() { r.pay(page.URL, cardPays) })
	created, updated := position(all, "customer.subscription.created"), position(all, "customer.subscription.updated")
	if created < 0 || updated < created || all[created].Created != all[updated].Created {
		t.Fatalf("there is no such pair in %+v", all)
	}
	r.bring([]publicError{all[updated], all[created]})
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(10*million, 0)
	slices.Reverse(all)
	r.bring(all)
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(10*million, 0)
}

func TestAnExpiredCheckoutReportedLateLeavesAPendingUpgrade(t *testing.T) {
	r, _ := byBank(t)
	r.changed("pro")
	page := r.wantPending("pro", true).PaymentURL
	r.swapCard(cardAsksAlways)
	all := r.unheard(func() { r.changed("pro") })
	invoice := r.wantPending("pro", true)
	if invoice.PaymentURL == page {
		t.Fatal("the upgrade is still a checkout")
	}
	expired := position(all, "checkout.session.expired")
	if expired < 0 {
		t.Fatalf("no checkout expired in %+v", all)
	}
	r.bring(all[expired : expired+1])
	if after := r.wantPending("pro", true); after.PaymentURL != invoice.PaymentURL {
		t.Errorf("the upgrade is paid at %s, want %s", after.PaymentURL, invoice.PaymentURL)
	}
}

func TestScenario60_TheEndMayBeToldBeforeTheBeginning(t *testing.T) {
	r := shop(t)
	page := r.checkout("basic")
	all := r.unheard(func() {
		r.pay(page.URL, cardPays)
		for _, id := range r.providerSubscriptions() {
			r.askProvider(http.MethodDelete, "/v1/subscriptions/"+id, nil)
		}
	})
	slices.Reverse(all)
	if all[0].Type != "customer.subscription.deleted" {
		t.Fatalf("the last event is %s", all[0].Type)
	}
	for _, next := range all {
		r.bring([]publicError{next})
		r.wantNone()
		// It was paid for before it ended.
		r.wantTokens(10*million, 0)
	}
}

func TestScenario61_AStaleReadDoesNoHarm(t *testing.T) {
	r := shop(t)
	way := &staleReads{seen: map[string][]byte{}}
	r.cashier = r.newCashier(func(o *cashier.Options) { o.SandboxTransport = way })
	r.pay(r.checkout("basic").URL, cardPays)
	r.settle()
	way.left.Store(2)
	r.changed("pro")
	r.settle()
	r.advance(time.Hour)
	r.wantOn("pro", metering.StatusActive)
	r.wantTokens(110*million, 0)
	if left := way.left.Load(); left > 0 {
		t.Errorf("%d reads fewer than expected were stale", left)
	}
}

// staleReads is a way to the provider on which the next reads of a subscription are answered
// as the latest one before.
type staleReads struct {
	left atomic.Int32
	mu   sync.Mutex
	seen map[string][]byte // by address
}

func (s *staleReads) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || request.Method != http.MethodGet || !strings.Contains(request.URL.Path, "/v1/subscriptions/sub_") {
		return answer, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.seen[request.URL.String()]; old != nil && s.left.Load() > 0 {
		s.left.Add(-1)
		body = old
	} else {
		s.seen[request.URL.String()] = body
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return answer, nil
}

// slow is a way to the provider on which one answer takes as long as a test wants.
type slow struct {
	path          string // of the call
	arrived, goOn chan struct{}
}

func (s slow) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(request)
	if strings.HasSuffix(request.URL.Path, s.path) {
		select {
		case <-s.arrived:
		default:
			close(s.arrived)
			<-s.goOn
		}
	}
	return answer, err
}

func TestScenario61_AHolderThatLostTheLeaseStoresNothing(t *testing.T) {
	r := shop(t)
	id := r.subscribe("basic", cardPays).ProviderID
	way := slow{"/subscriptions/" + id, make(chan struct{}), make(chan struct{})}
	var log bytes.Buffer
	node := r.newCashier(func(o *cashier.Options) {
		o.SandboxTransport, o.Log = way, slog.New(slog.NewTextHandler(&log, nil))
	})
	node.SetLease(5 * time.Minute) // a renewal would hold it again before the other node asks for it
	r.check(r.store.Queue(r.scope).Enqueue(t.Context(), queue.Job{Kind: queue.JobSubscription, Object: id}))
	ended := make(chan error)
	go func() { ended <- node.DrainAll(t.Context(), r.app.ID) }()
	<-way.arrived

	// The answer that says "basic" has left. Until it arrives, the lease runs out and
	// another node upgrades.
	storetest.Lapse(t, storetest.URL(t), r.app.ID.String())
	r.changed("pro")
	r.wantOn("pro", metering.StatusActive)
	close(way.goOn)
	r.check(<-ended)

	r.wantOn("pro", metering.StatusActive)
	r.wantTokens(110*million, 0)
	if !strings.Contains(log.String(), queue.ErrFenced.Error()) {
		t.Errorf("no write was refused: %s", log.String())
	}
	r.advance(time.Minute)
	r.wantOn("pro", metering.StatusActive)
	r.wantTokens(110*million, 0)
}

func TestRoundsGoOnWhereAPortionEnded(t *testing.T) {
	r := shop(t)
	r.cashier.SetLimits(4*time.Minute, 2)
	const number = 5
	t.Run("in the list of events", func(t *testing.T) {
		r.payWithoutWebhooks(number)
		r.idle.Store(false)
		r.advance(6 * time.Minute)
		r.wantPayments(number)
	})
	t.Run("in the lists of objects", func(t *testing.T) {
		var pages []cashier.Page
		for range number {
			page := r.topUp(3000)
			r.pay(page.URL, cardPays)
			pages = append(pages, page)
		}
		r.advance(6 * time.Minute)
		r.wantTokens(number*30*million, 0)
		for _, page := range pages {
			r.refund(page, 1000)
		}
		r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "GET /v1/events", Times: 1 << 30})
		r.advance(25 * time.Hour)
		r.wantTokens(number*20*million, 0)
	})
}
