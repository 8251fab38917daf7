package cashier_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/cashier"
	"purser/payments/sandbox"
)

func (r *harness) upgradeWith(key string) (billing.Subscription, error) {
	return r.cashier.Change(r.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: "pro"}, key)
}

func TestScenario63_ALostAnswerChargesOnce(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.inject(sandbox.Fault{Kind: sandbox.DropAfter, Only: "POST /v1/subscriptions/" + s.ProviderID})
	got, err := r.upgradeWith(newKey())
	r.check(err)
	if got.Terms.PlanKey != "pro" {
		t.Errorf("the answer is on %s", got.Terms.PlanKey)
	}
	r.settle()
	r.wantTokens(110*million, 0)
	r.wantOneKey("upgrade")
}

// wantOneKey: however often it was sent, it was the same request.
func (r *harness) wantOneKey(step string) {
	r.Helper()
	if keys := r.keysOf(step); len(keys) != 1 {
		r.Errorf("the step %s was sent under %d keys: %v", step, len(keys), keys)
	}
}

func (r *harness) keysOf(step string) (found []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.keys {
		if parts := strings.Split(key, ":"); len(parts) == 4 && parts[2] == step {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	return found
}

func TestScenario64_ASavedFailureGetsANewKeyAfterALook(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.inject(sandbox.Fault{Kind: sandbox.Fail, Only: "POST /v1/subscriptions/" + s.ProviderID})
	got, err := r.upgradeWith(newKey())
	r.check(err)
	if got.Terms.PlanKey != "pro" {
		t.Errorf("the answer is on %s", got.Terms.PlanKey)
	}
	r.settle()
	r.wantTokens(110*million, 0)
	if keys := r.keysOf("upgrade"); len(keys) != 2 {
		t.Errorf("keys %v", keys)
	}
}

func TestScenario65_ACallerWhoGaveUpIsNotCharged(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	key := newKey()
	r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "POST /v1/subscriptions/" + s.ProviderID})
	_, err := r.upgradeWith(key)
	wantFault(t, err, fault.ProviderUnavailable)
	r.advance(11 * time.Minute)
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(10*million, 0)

	t.Run("unless they ask again", func(t *testing.T) {
		got, err := r.upgradeWith(key)
		r.check(err)
		if got.Terms.PlanKey != "pro" {
			t.Errorf("the answer is on %s", got.Terms.PlanKey)
		}
		r.settle()
		r.wantTokens(110*million, 0)
	})
}

func TestAnUpgradeThatWasCutOffIsFinishedSoon(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "POST /v1/subscriptions/" + s.ProviderID})
	_, err := r.upgradeWith(newKey())
	wantFault(t, err, fault.ProviderUnavailable)
	r.advance(2 * time.Minute)
	r.wantOn("pro", metering.StatusActive)
	r.wantTokens(110*million, 0)
	r.wantOneKey("upgrade")
}

func TestScenario66_ARepeatSaysTheSame(t *testing.T) {
	r := shop(t)
	r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "POST /v1/checkout/sessions"})
	key := newKey()
	_, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("basic"), key)
	wantFault(t, err, fault.ProviderUnavailable)
	r.advance(30 * time.Second)
	page, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("basic"), key)
	r.check(err)
	if page.URL == "" {
		t.Error("there is no page")
	}
	bodies := r.callsTo("POST /v1/checkout/sessions")
	if len(bodies) != 2 || !slices.Equal(sorted(bodies[0]), sorted(bodies[1])) {
		t.Errorf("the bodies are\n%v\n%v", bodies[0], bodies[1])
	}
}

func sorted(fields url.Values) []string {
	var list []string
	for name, values := range fields {
		list = append(list, name+"="+values[0])
	}
	slices.Sort(list)
	return list
}

func TestScenario67_FiftyAtOnceAreOne(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	nodes := []*cashier.Cashier{r.cashier, r.newCashier()}
	key := newKey()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			got, err := nodes[i%2].Change(t.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: "pro"}, key)
			if err != nil || got.Terms.PlanKey != "pro" {
				t.Errorf("%v, on %q", err, got.Terms.PlanKey)
			}
		})
	}
	all.Wait()
	if sent := len(r.callsTo("POST /v1/subscriptions/" + s.ProviderID)); sent != 1 {
		t.Errorf("%d updates were sent", sent)
	}
	_, err := r.cashier.Change(t.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: "basic"}, key)
	wantFault(t, err, fault.IdempotencyConflict)
	r.settle()
	r.wantTokens(110*million, 0)
}

func TestScenario68_AChangeAndACancellationAtOnceFollowOneAnother(t *testing.T) {
	r := shop(t)
	r.subscribe("pro", cardPays)
	var both sync.WaitGroup
	var changeErr, cancelErr error
	both.Go(func() { _, changeErr = r.change("basic") })
	both.Go(func() { _, cancelErr = r.cancel(true) })
	both.Wait()
	r.check(cancelErr)
	if changeErr != nil {
		wantFault(t, changeErr, fault.CancellationScheduled)
	}
	r.settle()
	if s := r.subscription(); !s.CancelAtPeriodEnd || s.Scheduled != nil {
		t.Errorf("it ends: %v, scheduled %+v", s.CancelAtPeriodEnd, s.Scheduled)
	}
}

func TestScenario69_WithoutAnyWebhookTheRoundsFindEverything(t *testing.T) {
	ordered := shop(t)
	history(ordered, ordered.settle)
	want := ordered.ledger()

	r := openShop(t)
	r.dropWebhooks.Store(true)
	history(r, func() { r.advance(6 * time.Minute) })
	r.advance(25 * time.Hour)
	if got := r.ledger(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// hangingTransport is a way to the provider on which POSTs to one path get no answer.
type hangingTransport struct {
	path    string
	reached chan struct{} // closed at the first of them
}

func (u hangingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPost || !strings.HasSuffix(request.URL.Path, u.path) {
		return http.DefaultTransport.RoundTrip(request)
	}
	select {
	case <-u.reached:
	default:
		close(u.reached)
	}
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func TestScenario70_AProviderThatIsNotThereIsSaidSoInTime(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	key := newKey()
	way := hangingTransport{"/v1/subscriptions/" + s.ProviderID, make(chan struct{})}
	node := r.newCashier(func(o *cashier.Options) { o.SandboxTransport = way })
	// The time that a request may take is cut short. Where the machine is so slow that
	// it is over before the call, the request is repeated with more.
	var err error
	for timeout, reached := time.Second, false; !reached; timeout *= 2 {
		node.SetLimits(timeout, 100)
		_, err = node.Change(t.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: "pro"}, key)
		select {
		case <-way.reached:
			reached = true
		default:
		}
	}
	wantFault(t, err, fault.ProviderUnavailable)
	// Usage is tracked without the provider.
	r.feature("messages")
	r.check(r.use("messages", 1))
	got, err := r.upgradeWith(key)
	r.check(err)
	if got.Terms.PlanKey != "pro" {
		t.Errorf("the repeat is on %s", got.Terms.PlanKey)
	}
	r.settle()
	r.wantTokens(110*million-1, 0)
}

// sessionOf is the provider's name of a page.
func (r *harness) sessionOf(checkout string) string {
	r.Helper()
	id, err := ids.Parse(ids.Checkout, checkout)
	r.check(err)
	c, err := r.store.Payments(r.scope).CheckoutByID(r.Context(), id)
	r.check(err)
	return c.SessionID
}

func TestAnOpGoesOnAfterAPageThatClosedByItself(t *testing.T) {
	r := shop(t)
	r.plan("free", 0)
	r.plan("max", 9900, grants("tokens", 1000*million))
	r.subscribe("free", noCard)
	// There is no card, so "pro" is sold on a page. Then there is one.
	r.changed("pro")
	sessions := r.callsTo("POST /v1/checkout/sessions")
	page := r.sessionOf(sessions[len(sessions)-1].Get("client_reference_id"))
	r.swapCard(cardPays)
	r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "/expire"})
	key := newKey()
	upgrade := func() (billing.Subscription, error) {
		return r.cashier.Change(t.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: "max"}, key)
	}
	_, err := upgrade()
	wantFault(t, err, fault.ProviderUnavailable)
	r.provider("/v1/checkout/sessions/"+page+"/expire", nil)
	got, err := upgrade()
	r.check(err)
	if got.Terms.PlanKey != "max" {
		t.Errorf("the answer is on %s, pending %+v", got.Terms.PlanKey, got.Pending)
	}
	r.settle()
	r.wantTokens(1000*million, 0)
}

// unanswered is a way to the provider on which POSTs to a path get no answer under the
// first idempotency key. The provider does the first of them before one under another
// key, or when it is told to.
type unanswered struct {
	path string
	mu   sync.Mutex
	key  string
	held *http.Request
}

func (u *unanswered) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, u.path) {
		return http.DefaultTransport.RoundTrip(req)
	}
	u.mu.Lock()
	key := req.Header.Get("Idempotency-Key")
	if u.key == "" {
		body, err := req.GetBody()
		if err != nil {
			u.mu.Unlock()
			return nil, err
		}
		u.key, u.held = key, req.Clone(context.WithoutCancel(req.Context()))
		u.held.Body = body
	}
	first := key == u.key
	u.mu.Unlock()
	if first {
		return nil, context.DeadlineExceeded
	}
	if err := u.release(); err != nil {
		return nil, err
	}
	return http.DefaultTransport.RoundTrip(req)
}

func (u *unanswered) release() error {
	u.mu.Lock()
	held := u.held
	u.held = nil
	u.mu.Unlock()
	if held == nil {
		return nil
	}
	answer, err := http.DefaultTransport.RoundTrip(held)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// The provider still works on an upgrade whose caller has no answer and asks under a new
// key, for the same or for something else.
func TestNothingIsRequestedBesideAnUpgradeWhoseOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(*harness) (billing.Subscription, error){
		"the same upgrade": func(r *harness) (billing.Subscription, error) { return r.change("pro") },
		"another upgrade":  func(r *harness) (billing.Subscription, error) { return r.change("max") },
		"a downgrade":      func(r *harness) (billing.Subscription, error) { return r.change("mini") },
		"a cancellation":   func(r *harness) (billing.Subscription, error) { return r.cancel(true) },
	} {
		begin := func(t *testing.T) (*harness, *unanswered) {
			r := shop(t)
			r.plan("mini", 500)
			r.plan("max", 9900, grants("tokens", 1000*million))
			s := r.subscribe("basic", cardPays)
			way := &unanswered{path: "/v1/subscriptions/" + s.ProviderID}
			r.cashier = r.newCashier(func(o *cashier.Options) { o.SandboxTransport = way })
			_, err := r.upgradeWith(newKey())
			wantFault(t, err, fault.ProviderUnavailable)
			return r, way
		}
		t.Run(name, func(t *testing.T) {
			r, way := begin(t)
			_, err := request(r)
			wantFault(t, err, fault.OperationInProgress)
			r.check(way.release())
			r.advance(2 * time.Minute)
			r.wantOn("pro", metering.StatusActive)
			r.wantCollected(1000 + 2900)
			r.wantTokens(110*million, 0)
			if _, err = request(r); name == "the same upgrade" {
				wantFault(t, err, fault.AlreadyOnPlan)
			} else {
				r.check(err)
			}
		})
		t.Run(name+", once it was never done", func(t *testing.T) {
			r, way := begin(t)
			way.held = nil
			r.idle.Store(true)
			r.advance(4 * time.Minute)
			must[billing.Subscription](r)(request(r))
		})
	}
}

// An upgrade that failed is sent again by its caller, again without an answer. The job
// that resumes it sends nothing more.
func TestARetriedUpgradeWhoseOutcomeIsUnknownIsNotChargedTwice(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (*harness, *unanswered, string) {
		r := shop(t)
		s := r.subscribe("basic", cardPays)
		key := newKey()
		r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "POST /v1/subscriptions/" + s.ProviderID})
		_, err := r.upgradeWith(key)
		wantFault(t, err, fault.ProviderUnavailable)
		r.advance(20 * time.Minute)
		r.freeze()
		way := &unanswered{path: "/v1/subscriptions/" + s.ProviderID}
		r.cashier = r.newCashier(func(o *cashier.Options) { o.SandboxTransport = way })
		_, err = r.upgradeWith(key)
		wantFault(t, err, fault.ProviderUnavailable)
		r.advance(31 * time.Second) // the job is due after 30
		r.wantOn("basic", metering.StatusActive)
		_, err = r.change("pro")
		wantFault(t, err, fault.OperationInProgress)
		return r, way, key
	}
	t.Run("when it takes effect late", func(t *testing.T) {
		r, way, key := begin(t)
		r.check(way.release())
		r.advance(time.Minute)
		r.wantOn("pro", metering.StatusActive)
		r.wantCollected(1000 + 2900)
		r.wantTokens(110*million, 0)
		// The job has finished it, so nothing holds back another change.
		r.changed("basic")
		must[billing.Subscription](r)(r.upgradeWith(key))
	})
	t.Run("when it was never done", func(t *testing.T) {
		r, way, _ := begin(t)
		way.held = nil
		r.advance(2 * time.Minute)
		_, err := r.change("pro")
		wantFault(t, err, fault.OperationInProgress)
		r.advance(time.Minute)
		r.changed("pro")
		r.settle()
		r.wantCollected(1000 + 2900)
		r.wantNothingFailing()
	})
}

// erring is unanswered with server errors in place of no answer.
type erring struct{ unanswered }

func (e *erring) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := e.unanswered.RoundTrip(req)
	if errors.Is(err, context.DeadlineExceeded) {
		return deletedObjects{http.StatusGatewayTimeout, `{"error": {"type": "api_error", "message": "Timed out."}}`}.answer(req), nil
	}
	return answer, err
}

// A server error does not say that an upgrade was not executed: the provider still works
// on it when the retry is sent.
func TestAnUpgradeThatEndsInAServerErrorIsNotChargedTwice(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (*harness, *erring, string) {
		r := shop(t)
		s := r.subscribe("basic", cardPays)
		way := &erring{unanswered{path: "/v1/subscriptions/" + s.ProviderID}}
		r.cashier = r.newCashier(func(o *cashier.Options) { o.SandboxTransport = way })
		key := newKey()
		_, err := r.upgradeWith(key)
		wantFault(t, err, fault.ProviderUnavailable)
		return r, way, key
	}
	wantOneCharge := func(r *harness) {
		r.Helper()
		r.settle()
		r.wantOn("pro", metering.StatusActive)
		r.wantCollected(1000 + 2900)
		r.wantTokens(110*million, 0)
		r.wantOneKey("upgrade")
	}
	t.Run("when the caller retries after it was executed", func(t *testing.T) {
		r, way, key := begin(t)
		r.check(way.release())
		must[billing.Subscription](r)(r.upgradeWith(key))
		wantOneCharge(r)
	})
	t.Run("when the caller retries before it was executed", func(t *testing.T) {
		r, way, key := begin(t)
		_, err := r.upgradeWith(key)
		wantFault(t, err, fault.ProviderUnavailable)
		r.check(way.release())
		r.advance(2 * time.Minute)
		wantOneCharge(r)
	})
}

// failingOnce is a way to the provider on which POSTs to a path fail under the first
// idempotency key, which saves that, and are limited under others.
type failingOnce struct {
	path string
	mu   sync.Mutex
	key  string
}

func (f *failingOnce) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, f.path) {
		return http.DefaultTransport.RoundTrip(req)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := req.Header.Get("Idempotency-Key")
	replayed := key == f.key
	f.key = cmp.Or(f.key, key)
	if key == f.key {
		answer := deletedObjects{http.StatusInternalServerError, `{"error": {"type": "api_error", "message": "Failed."}}`}.answer(req)
		if replayed {
			answer.Header.Set("Idempotent-Replayed", "true")
		}
		return answer, nil
	}
	return deletedObjects{http.StatusTooManyRequests, `{"error": {"message": "Too many requests."}}`}.answer(req), nil
}

func TestALimitSaysNothingOfTheUpgradeThatFailedBeforeIt(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.idle.Store(true)
	way := &failingOnce{path: "/v1/subscriptions/" + s.ProviderID}
	r.cashier = r.newCashier(func(o *cashier.Options) { o.SandboxTransport = way })
	_, err := r.upgradeWith(newKey())
	wantFault(t, err, fault.ProviderUnavailable)
	_, err = r.cancel(true)
	wantFault(t, err, fault.OperationInProgress)
	r.advance(4 * time.Minute)
	r.cashier = r.newCashier()
	must[billing.Subscription](r)(r.cancel(true))
}
