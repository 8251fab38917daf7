package delivery_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"purser/ids"
	"purser/jobs"
	"purser/keys"
	"purser/metering"
	"purser/notify"
	"purser/notify/delivery"
	"purser/store"
	"purser/store/notifications"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/vault"
)

func noError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// harness is an application with a dispatcher whose clock the test moves.
type harness struct {
	*testing.T
	db         *store.Store
	queue      *jobs.Queue
	dispatcher *delivery.Dispatcher
	scope      tenancy.Scope
	runs       atomic.Int64 // of jobs

	mu  sync.Mutex
	now time.Time
}

func (r *harness) time() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *harness) advance(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// pass has time pass in which deliveries of an endpoint are sent when they are due.
func (r *harness) pass(endpoint ids.ID, d time.Duration) {
	r.Helper()
	for until := r.time().Add(d); ; {
		r.drain()
		next, err := r.db.Notifications(r.scope).NextDelivery(r.Context(), endpoint)
		noError(r, err)
		if due := time.UnixMilli(next); next != 0 && due.After(r.time()) && due.Before(until) {
			r.advance(due.Sub(r.time()))
			continue
		}
		r.advance(until.Sub(r.time()))
		return
	}
}

// limit is longer than a busy machine takes to answer a webhook.
const limit = 5 * time.Minute

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func newHarness(t *testing.T, change func(*delivery.Options)) *harness {
	t.Helper()
	return newHarnessOn(t, storetest.Open(t), change)
}

func newHarnessOn(t *testing.T, db *store.Store, change func(*delivery.Options)) *harness {
	t.Helper()
	r := &harness{T: t, db: db, now: time.Now()}
	r.queue = jobs.New(jobs.Options{Store: r.db, Now: r.time, Observe: func(jobs.Run) { r.runs.Add(1) }})
	secrets, err := vault.New(rand.Reader, []byte("a secret for the webhooks of the tests of this package"))
	noError(t, err)
	options := delivery.Options{Store: r.db, Vault: secrets, Jobs: r.queue, Now: r.time, Opened: loopback, Timeout: limit}
	if change != nil {
		change(&options)
	}
	r.dispatcher = delivery.New(options)
	r.application()
	return r
}

// application creates the application of the harness.
func (r *harness) application() {
	r.Helper()
	now := r.time().UnixMilli()
	org, err := tenancy.NewOrganization(ids.New(), "Org "+ids.New().String(), now)
	noError(r, err)
	app, err := tenancy.NewApplication(ids.New(), org, "App", false, now)
	noError(r, err)
	app, err = r.db.Directory().ProvisionIn(r.Context(), people.OrgRef{Name: org.Name}, org, app)
	noError(r, err)
	r.scope = app.Scope()
	noError(r, r.db.App(r.scope).CreateCredit(r.Context(), metering.Credit{ID: ids.New(), Key: "tokens", Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: now}))
}

func (r *harness) endpoint(url string, types ...notify.Type) (notify.Endpoint, notify.Secret) {
	r.Helper()
	e, secret, err := r.dispatcher.Create(r.Context(), r.scope, audit.Actor{}, delivery.Draft{URL: url, Types: types, Now: r.time().UnixMilli()})
	noError(r, err)
	return e, secret
}

// deposit makes a notification, as any change does.
func (r *harness) deposit() {
	r.Helper()
	key := ids.New().String()
	_, _, err := r.db.App(r.scope).Deposit(r.Context(), store.Deposit{
		ID: ids.New(), Identity: "user-42", CreditKey: "tokens", Amount: 5, IdempotencyKey: &key, CreatedAt: r.time().UnixMilli(),
	})
	noError(r, err)
}

// drain numbers and sends what is due.
func (r *harness) drain() {
	r.Helper()
	noError(r, r.queue.DrainLane(r.Context(), r.scope.AppID, delivery.Lane))
}

func (r *harness) stored(id ids.ID) notify.Endpoint {
	r.Helper()
	e, err := r.db.Notifications(r.scope).Endpoint(r.Context(), id)
	noError(r, err)
	return e
}

// attempts are those of the newest notification.
func (r *harness) attempts() []notifications.Attempt {
	r.Helper()
	page, err := r.db.Notifications(r.scope).Feed(r.Context(), notifications.Query{After: -1, Limit: 200})
	noError(r, err)
	list, err := r.db.Notifications(r.scope).Attempts(r.Context(), page.Notifications[len(page.Notifications)-1].ID, 100)
	noError(r, err)
	return list
}

// received is one webhook that a receiver got.
type received struct {
	header http.Header
	body   []byte
	notify.Body
}

// receiver answers webhooks and keeps them.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	answer func(n int, w http.ResponseWriter, r *http.Request)
}

func newReceiver(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// readWebhook reads a webhook. An error means that the sender died.
func readWebhook(request *http.Request) (got received, err error) {
	got.header = request.Header
	if got.body, err = io.ReadAll(request.Body); err != nil {
		return got, err
	}
	return got, json.Unmarshal(got.body, &got.Body)
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	got, err := readWebhook(request)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.got = append(r.got, got)
	n := len(r.got)
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(n, w, request)
	}
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func always(status int) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// chain checks that a receiver's notifications are linked without a gap, whatever the
// order of their arrival.
func chain(t *testing.T, got []received, from int64) {
	t.Helper()
	slices.SortFunc(got, func(a, b received) int { return int(a.Seq - b.Seq) })
	previous := from
	for _, n := range got {
		if *n.PreviousSeq != previous {
			t.Errorf("%d follows %d, and not %d", n.Seq, *n.PreviousSeq, previous)
		}
		previous = n.Seq
	}
}

func TestDeliveriesAreSignedAndLinked(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil)
	hooks := newReceiver(t, nil)
	e, secret := r.endpoint(hooks.URL+"/hooks", notify.DepositCreated)
	other := newReceiver(t, nil)
	r.endpoint(other.URL, notify.KeyRevoked)
	for range 20 {
		r.deposit()
	}
	r.drain()
	got := hooks.all()
	if len(got) != 20 || len(other.all()) != 0 {
		t.Fatalf("%d webhooks came, and %d of a type that was not wanted", len(got), len(other.all()))
	}
	for _, n := range got {
		verify(t, secret, n)
		if n.header.Get(notify.HeaderID) != n.ID || n.Type != notify.DepositCreated || n.Identity != "user-42" || n.Live {
			t.Errorf("got %s", n.body)
		}
	}
	chain(t, got, 0)
	t.Run("with both secrets while they overlap", func(t *testing.T) {
		_, second, err := r.dispatcher.Rotate(t.Context(), r.scope, audit.Actor{}, e.ID, 0, time.Hour)
		noError(t, err)
		r.deposit()
		r.drain()
		last := hooks.all()[20]
		verify(t, secret, last)
		verify(t, second, last)
		r.advance(time.Hour)
		r.deposit()
		r.drain()
		last = hooks.all()[21]
		verifyLate(t, second, last)
		if strings.Contains(last.header.Get(notify.HeaderSignature), " ") {
			t.Errorf("the previous secret signs after its overlap: %s", last.header.Get(notify.HeaderSignature))
		}
	})
}

func TestFailedDeliveriesAreRetried(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil)
	hooks := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n < 4 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	e, _ := r.endpoint(hooks.URL)
	r.deposit()
	for n, wait := range []time.Duration{0, 6 * time.Second, 6 * time.Minute, 36 * time.Minute} {
		r.advance(wait)
		r.drain()
		if got := len(hooks.all()); got != n+1 {
			t.Fatalf("after %d delays %d attempts came", n, got)
		}
		r.drain() // nothing is due
	}
	got := hooks.all()
	for _, n := range got {
		if n.ID != got[0].ID || string(n.body) != string(got[0].body) {
			t.Errorf("an attempt sent %s, the first %s", n.body, got[0].body)
		}
	}
	if stored := r.stored(e.ID); stored.FailingSince != 0 || stored.SucceededAt == 0 {
		t.Errorf("the endpoint is %+v", stored)
	}
	if list := r.attempts(); len(list) != 4 || list[0].Status != 200 || list[3].Status != 500 {
		t.Errorf("the attempts are %+v", list)
	}
}

func TestAnswersOfReceivers(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a webhook went to a receiver with a bad certificate")
	}))
	t.Cleanup(secure.Close)
	secure.Config.ErrorLog = nil
	var redirected sync.Map
	target := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) { redirected.Store(r.URL.Path, true) })
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for name, c := range map[string]struct {
		answer func(int, http.ResponseWriter, *http.Request)
		url    string
		status int
		error  string
		due    time.Duration // after which it is sent again at the latest
	}{
		"an error":          {always(503), "", 503, "", 6 * time.Second},
		"a bad certificate": {nil, secure.URL, 0, "The TLS certificate isn't valid", 6 * time.Second},
		"no answer": {func(_ int, _ http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}, "", 0, "No complete answer within", 6 * time.Second},
		"a redirect": {func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL+"/secret", http.StatusTemporaryRedirect)
		}, "", 307, "", 6 * time.Second},
		"an endless answer": {func(_ int, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for piece, left := make([]byte, 1<<20), 1<<10; left > 0 && r.Context().Err() == nil; left-- {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		}, "", 500, "", 6 * time.Second},
		"another protocol": {func(_ int, w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			_ = conn.SetReadDeadline(time.Now().Add(limit))
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the attempt held the connection")
			}
		}, "", 101, "", 6 * time.Second},
		"a request to wait": {func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}, "", 429, "", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, func(o *delivery.Options) {
				if name == "no answer" {
					o.Timeout = 50 * time.Millisecond
				}
			})
			url := c.url
			if url == "" {
				url = newReceiver(t, c.answer).URL
			}
			e, _ := r.endpoint(url)
			r.deposit()
			r.drain()
			list := r.attempts()
			if len(list) != 1 || list[0].Status != c.status || !strings.HasPrefix(list[0].Error, c.error) || (c.error == "") != (list[0].Error == "") || len(list[0].Answer) > 2<<10 {
				t.Fatalf("the attempts are %+v", list)
			}
			if stored := r.stored(e.ID); stored.Status != notify.Enabled || stored.FailingSince == 0 {
				t.Errorf("the endpoint is %+v", stored)
			}
			r.advance(c.due - time.Minute)
			r.drain()
			if c.due > time.Minute && len(r.attempts()) != 1 {
				t.Error("it was sent before the receiver wanted it")
			}
			r.advance(time.Minute)
			r.drain()
			if got := len(r.attempts()); got != 2 {
				t.Errorf("%d attempts were made", got)
			}
		})
	}
	t.Cleanup(func() {
		if _, followed := redirected.Load("/secret"); followed {
			t.Error("a redirect was followed")
		}
	})
}

// An endpoint that accepts nothing is paused, and gets everything when it is enabled.
func TestAPausedEndpointLosesNothing(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil)
	var mu sync.Mutex
	works := false
	hooks := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !works {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	e, _ := r.endpoint(hooks.URL)
	for range 3 {
		r.deposit()
	}
	r.drain()
	for day := 0; r.stored(e.ID).Status == notify.Enabled; day++ {
		if day > 20 {
			t.Fatal("it is never paused")
		}
		r.pass(e.ID, 12*time.Hour)
		r.deposit()
		r.drain()
	}
	paused := r.stored(e.ID)
	if lasted := r.time().UnixMilli() - paused.FailingSince; paused.PauseReason != notify.PauseFailing || lasted < notify.PauseAfter.Milliseconds() {
		t.Errorf("paused after %v: %+v", time.Duration(lasted)*time.Millisecond, paused)
	}
	tried := len(hooks.all())
	r.advance(6 * 24 * time.Hour)
	for range 5 {
		r.deposit()
	}
	r.drain()
	if got := len(hooks.all()); got != tried {
		t.Errorf("%d attempts were made while it was paused", got-tried)
	}
	mu.Lock()
	works = true
	mu.Unlock()
	_, err := r.db.Notifications(r.scope).UpdateEndpoint(t.Context(), e.ID, notify.EndpointPatch{Status: new(notify.Enabled)}, false)
	noError(t, err)
	r.drain()
	page, err := r.db.Notifications(r.scope).Feed(t.Context(), notifications.Query{After: -1, Limit: 200})
	noError(t, err)
	got := hooks.all()[tried:]
	if len(got) != len(page.Notifications) {
		t.Fatalf("%d of %d notifications came after it was enabled", len(got), len(page.Notifications))
	}
	if got[0].Seq > notify.MaxConcurrent { // the oldest are sent first, several at once
		t.Errorf("the first to come is %d", got[0].Seq)
	}
	chain(t, got, 0)
	types := map[notify.Type]int{}
	for _, n := range got {
		types[n.Type]++
	}
	if types[notify.WebhookPaused] != 1 {
		t.Errorf("it got %v", types)
	}
}

// move has an endpoint send to another URL.
func (r *harness) move(id ids.ID, url string) {
	_, err := r.db.Notifications(r.scope).UpdateEndpoint(r.Context(), id, notify.EndpointPatch{URL: &url}, false)
	if err != nil {
		r.Error(err)
	}
}

// What the receiver at the previous URL answers late says nothing about the new one.
func TestAnEndpointThatMovesIsJudgedByItsNewURL(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"gone": http.StatusGone, "an error": http.StatusInternalServerError, "accepted": http.StatusOK} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, nil)
			current := newReceiver(t, nil)
			var id ids.ID
			previous := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				r.move(id, current.URL)
				w.WriteHeader(status)
			})
			e, _ := r.endpoint(previous.URL)
			id = e.ID
			r.deposit()
			r.drain()
			stored, sent := r.stored(id), len(current.all())
			if stored.Status != notify.Enabled || stored.FailingSince != 0 || len(previous.all()) != 1 {
				t.Errorf("the endpoint is %+v", stored)
			}
			if accepted := status == http.StatusOK; (sent == 0) != accepted || (stored.SucceededAt == 0) != accepted {
				t.Errorf("%d came to the new URL, which is %+v", sent, stored)
			}
		})
	}
}

func TestANewURLGetsWhatWaitedAtOnce(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil)
	previous, current := newReceiver(t, always(http.StatusBadGateway)), newReceiver(t, nil)
	e, _ := r.endpoint(previous.URL)
	for range 3 {
		r.deposit()
	}
	r.drain()
	r.advance(6 * time.Minute)
	r.drain()
	if got := len(current.all()); got != 0 || r.stored(e.ID).FailingSince == 0 {
		t.Fatalf("%d came", got)
	}
	r.move(e.ID, current.URL)
	if stored := r.stored(e.ID); stored.FailingSince != 0 {
		t.Errorf("the endpoint is %+v", stored)
	}
	r.drain()
	got := current.all()
	if len(got) != 3 || r.stored(e.ID).ResetAfter != nil {
		t.Fatalf("%d of 3 came", len(got))
	}
	chain(t, got, 0)
}

func TestGoneDisablesAnEndpoint(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil)
	hooks := newReceiver(t, always(http.StatusGone))
	e, _ := r.endpoint(hooks.URL)
	r.deposit()
	r.drain()
	if stored := r.stored(e.ID); stored.Status != notify.Disabled || stored.PauseReason != notify.PauseGone {
		t.Errorf("the endpoint is %+v", stored)
	}
	r.advance(time.Hour)
	r.deposit()
	r.drain()
	if got := len(hooks.all()); got != 1 {
		t.Errorf("%d attempts were made", got)
	}
}

// At most eight are sent at once, and one at a time until a failing receiver accepts
// one.
func TestReceiversAreNotOverrun(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil)
	var mu sync.Mutex
	var running, most int
	fails := true
	full := make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) })
	hooks := newReceiver(t, func(_ int, w http.ResponseWriter, request *http.Request) {
		mu.Lock()
		running++
		most = max(most, running)
		if running == notify.MaxConcurrent {
			fill()
		}
		failing := fails
		mu.Unlock()
		if failing {
			w.WriteHeader(http.StatusInternalServerError)
		} else {
			select { // until eight are there
			case <-full:
			case <-request.Context().Done():
			}
		}
		mu.Lock()
		running--
		mu.Unlock()
	})
	r.endpoint(hooks.URL)
	r.deposit()
	r.drain() // fails
	mu.Lock()
	most = 0
	mu.Unlock()
	for range 5 {
		r.deposit()
	}
	r.drain() // fail one after the other
	mu.Lock()
	if most != 1 {
		t.Errorf("%d were sent at once while it failed", most)
	}
	fails, most = false, 0
	mu.Unlock()
	r.recover(hooks)
	for range 2 * notify.MaxConcurrent {
		r.deposit()
	}
	r.drain()
	mu.Lock()
	defer mu.Unlock()
	if most != notify.MaxConcurrent {
		t.Errorf("%d were sent at once", most)
	}
}

// A delivery that starts late would be cut off by the job's deadline, and sent again.
func TestALongRunStartsNoMoreDeliveries(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil)
	hooks := newReceiver(t, func(int, http.ResponseWriter, *http.Request) { r.advance(31 * time.Second) })
	r.endpoint(hooks.URL)
	const number = 5 * notify.MaxConcurrent
	for range number {
		r.deposit()
	}
	r.drain()
	if got := len(hooks.all()); got != number {
		t.Errorf("%d of %d deliveries came", got, number)
	}
	if runs := r.runs.Load(); runs < number/notify.MaxConcurrent {
		t.Errorf("%d runs sent %d deliveries of 31 seconds", runs, number)
	}
}

// recover has a receiver accept one delivery.
func (r *harness) recover(hooks *receiver) {
	r.Helper()
	answer := hooks.answer
	hooks.mu.Lock()
	hooks.answer = nil
	hooks.mu.Unlock()
	r.advance(25 * time.Hour)
	r.drain()
	hooks.mu.Lock()
	hooks.answer = answer
	hooks.mu.Unlock()
}

// A node that commits a notification numbers and sends it at once; the periodic task
// finds what a node left that died.
func TestNodesNumberAtOnce(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	db, err := store.Open(t.Context(), url, store.Options{})
	noError(t, err)
	t.Cleanup(db.Close)
	queue := jobs.New(jobs.Options{Store: db})
	secrets, err := vault.New(rand.Reader, []byte("a secret for the webhooks of the tests of this package"))
	noError(t, err)
	arrived := make(chan struct{}, 10)
	r := newHarness(t, nil)
	r.db, r.queue = db, queue
	r.dispatcher = delivery.New(delivery.Options{Store: db, Vault: secrets, Jobs: queue, Opened: loopback, Timeout: limit})
	r.application()
	hooks := newReceiver(t, func(int, http.ResponseWriter, *http.Request) { arrived <- struct{}{} })
	r.endpoint(hooks.URL)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- queue.Run(ctx) }()
	r.deposit()
	<-arrived
	r.expiringKey()
	for range 2 { // the second finds nothing new
		noError(t, r.dispatcher.AnnounceKeys(t.Context()))
	}
	<-arrived
	// As if the node that committed it had died: nothing wakes the sequencer.
	db.OnNotifications(func(tenancy.Scope) {})
	r.deposit()
	noError(t, r.dispatcher.PrepareAll(t.Context()))
	queue.Wake(r.scope, delivery.Lane)
	<-arrived
	stop()
	<-ended
	got := hooks.all()
	chain(t, got, 0)
	if len(got) != 3 || got[1].Type != notify.KeyExpiring {
		t.Errorf("%d webhooks came, the second is %s", len(got), got[1].Type)
	}
}

// expiringKey stores a key that was created for a month and has six days left.
func (r *harness) expiringKey() {
	r.Helper()
	app, err := r.db.Org(r.scope.OrgID).Application(r.Context(), r.scope.AppID)
	noError(r, err)
	ends := r.time().Add(6 * 24 * time.Hour)
	key, _, err := keys.New(keys.Spec{ID: ids.New(), App: app, Name: "Server", Preset: keys.Ingestion, ExpiresAt: ends.UnixMilli()},
		tenancy.AllPermissions(), ends.Add(-30*24*time.Hour).UnixMilli(), rand.Reader)
	noError(r, err)
	noError(r, r.db.App(r.scope).CreateKey(r.Context(), key))
}

// A changed installation secret seals the secrets of endpoints again, and they sign as
// before.
func TestSecretsAreSealedAgain(t *testing.T) {
	t.Parallel()
	old, current := []byte("the secret that sealed the rows of this test before"), []byte("the secret that seals the rows of this test from now on")
	only := func(secrets ...[]byte) func(*delivery.Options) {
		return func(o *delivery.Options) {
			sealed, err := vault.New(rand.Reader, secrets...)
			noError(t, err)
			o.Vault = sealed
		}
	}
	r := newHarness(t, only(old))
	hooks := newReceiver(t, nil)
	_, secret := r.endpoint(hooks.URL)
	both := newHarness(t, only(current, old))
	for _, want := range []int{1, 0} {
		if changed, lost, err := both.dispatcher.Reseal(t.Context(), r.scope); changed != want || lost != 0 || err != nil {
			t.Errorf("resealed %d, lost %d, %v", changed, lost, err)
		}
	}
	if changed, lost, err := r.dispatcher.Reseal(t.Context(), r.scope); changed != 0 || lost != 1 || err != nil {
		t.Errorf("the old key alone resealed %d, lost %d, %v", changed, lost, err)
	}
	after := newHarness(t, only(current))
	after.scope = r.scope
	after.deposit()
	after.drain()
	verify(t, secret, hooks.all()[0])
}

// An endpoint whose secret can't be read is tried again after a pause, not at once.
func TestAJobThatFailsIsNotEnqueuedAgainAtOnce(t *testing.T) {
	t.Parallel()
	// A database of its own: PrepareAll numbers the notifications of all applications, by
	// the clock of before.
	db, err := store.Open(t.Context(), storetest.FreshURL(t), store.Options{})
	noError(t, err)
	t.Cleanup(db.Close)
	before := newHarnessOn(t, db, nil)
	hooks := newReceiver(t, nil)
	before.endpoint(hooks.URL)
	r := newHarnessOn(t, db, func(o *delivery.Options) {
		other, err := vault.New(rand.Reader, []byte("another secret, which can't open what the first one sealed"))
		noError(t, err)
		o.Vault = other
	})
	r.scope = before.scope
	r.deposit()
	for _, want := range []int64{1, 1, 2} {
		if want == 2 {
			r.advance(time.Hour)
		}
		r.drain()
		if runs := r.runs.Load(); runs != want {
			t.Fatalf("the job ran %d times, expected %d", runs, want)
		}
	}
	before.advance(time.Hour)
	for _, want := range []int{0, 1} {
		if want == 1 {
			noError(t, before.dispatcher.PrepareAll(t.Context()))
		}
		before.drain()
		if got := hooks.all(); len(got) != want {
			t.Errorf("with the secret, it got %d notifications, expected %d", len(got), want)
		}
	}
}

// The retention goes by each application's own clock.
func TestOldNotificationsAreDeleted(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	db, err := store.Open(t.Context(), url, store.Options{})
	noError(t, err)
	t.Cleanup(db.Close)
	r := newHarness(t, func(o *delivery.Options) { o.Keep = 24 * time.Hour })
	secrets, err := vault.New(rand.Reader, []byte("a secret for the webhooks of the tests of this package"))
	noError(t, err)
	r.db, r.queue = db, jobs.New(jobs.Options{Store: db, Now: r.time})
	r.dispatcher = delivery.New(delivery.Options{Store: db, Vault: secrets, Jobs: r.queue, Now: r.time, Keep: 24 * time.Hour})
	r.application()
	for _, wait := range []time.Duration{23 * time.Hour, 2 * time.Hour} {
		r.deposit()
		r.drain()
		r.advance(wait)
	}
	noError(t, r.dispatcher.PruneAll(t.Context()))
	page, err := db.Notifications(r.scope).Feed(t.Context(), notifications.Query{After: -1, Limit: 10})
	noError(t, err)
	if len(page.Notifications) != 1 || page.Oldest != 2 {
		t.Errorf("the feed is %+v", page)
	}
}
