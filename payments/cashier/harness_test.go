package cashier_test

import (
	"context"
	"crypto/rand"
	"hash/fnv"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/payments/cashier"
	"purser/payments/sandbox"
	"purser/payments/sandbox/persist"
	"purser/payments/sandbox/sandboxtest"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/vault"
)

// harness is one application with everything that takes part in a payment: the
// cashier, the Stripe client, the sandbox behind HTTP, its webhooks to the cashier,
// and Postgres. Nothing runs in the background: a test delivers webhooks and runs due
// jobs with settle, or by advancing the clock.
type harness struct {
	*testing.T
	app      tenancy.Application
	scope    tenancy.Scope
	store    *store.Store
	cashier  *cashier.Cashier
	sandbox  *sandbox.Server
	accounts sandbox.Accounts
	memory   *modelDocuments // where the sandbox stores its account; nil for Postgres
	http     *httptest.Server
	key      ids.ID // of the key that uses are tracked with; zero until there is one
	// secondAccount is the sandbox account of a second connection; zero for none.
	secondAccount ids.ID

	clockOffset  atomic.Int64 // nanoseconds by which all clocks are ahead
	frozenAt     atomic.Int64 // time at which the clocks are frozen, in nanoseconds; zero when they run
	idle         atomic.Bool  // due jobs are not run
	dropWebhooks atomic.Bool  // webhooks are acknowledged and dropped
	alter        func(body []byte) (signature string, altered []byte)
	payers       []string     // identities that paid one top-up each
	calls        atomic.Int64 // calls that changed something at the provider
	mu           sync.Mutex
	log          []string       // "POST /v1/…" of those calls, with their bodies
	bodies       []url.Values   // of those calls
	refuse       error          // error of the webhook route; nil when it works
	arrived      []arrived      // webhooks, as they came
	keys         map[string]int // how often each idempotency key was sent
}

type arrived struct {
	connection, signature string
	body                  []byte
}

func start(t *testing.T) *harness {
	t.Helper()
	openShared.Do(func() {
		sharedStore, sharedError = store.Open(context.Background(), withSettings(t, "plan_cache_mode", "force_generic_plan"), store.Options{MaxConns: harnessConns})
	})
	if sharedError != nil {
		t.Fatal(sharedError)
	}
	return startOn(t, sharedStore)
}

// harnessConns is how many database connections the harnesses share. Each connection
// plans each statement by itself, so few connections save planning.
const harnessConns = 8

var (
	openShared  sync.Once
	sharedStore *store.Store // stays open
	sharedError error
)

// startAlone starts an application in a database of its own.
func startAlone(t *testing.T) (r *harness, url string) {
	t.Helper()
	url = storetest.FreshURL(t)
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return startOn(t, db), url
}

func startOn(t *testing.T, db *store.Store) *harness {
	t.Helper()
	r := &harness{T: t, store: db, keys: map[string]int{}}
	now := time.Now().UnixMilli()
	org := must[tenancy.Organization](r)(tenancy.NewOrganization(ids.New(), "Org "+ids.New().String(), now))
	app := must[tenancy.Application](r)(tenancy.NewApplication(ids.New(), org, "App", false, now))
	r.app = must[tenancy.Application](r)(r.store.Directory().ProvisionIn(t.Context(), people.OrgRef{Name: org.Name}, org, app))
	r.scope = r.app.Scope()

	var handler http.Handler
	r.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.recordCall(req)
		handler.ServeHTTP(w, req)
	}))
	t.Cleanup(r.http.Close)
	log := r.logger()
	r.accounts = r.sandboxAccounts()
	r.sandbox = sandbox.New(sandbox.Options{
		Accounts: r.accounts, BaseURL: r.http.URL, Secret: []byte("thirty-two bytes of test secret!"),
		Admits: func(_ context.Context, app ids.ID) (bool, error) {
			return app == r.app.ID || app == r.secondAccount, nil
		},
		Authorize: func(*http.Request) (ids.ID, error) { return r.app.ID, nil },
		Deliver:   r.deliver,
		Drain: func(ctx context.Context, app ids.ID) error {
			if r.idle.Load() {
				return nil
			}
			return r.cashier.DrainAll(ctx, app)
		},
		Log: log, Now: r.clock, OwnEndpoints: true,
	})
	handler = r.sandbox.Handler()
	r.cashier = r.newCashier()
	return r
}

// The tests allocate a lot on a small heap: with fewer garbage collections they take
// a tenth less time.
func init() { debug.SetGCPercent(400) }

// postgresShare is the share of tests whose sandbox keeps its account in Postgres, as
// it does in the product: one of this many. There the sandbox is most of the cost.
const postgresShare = 4

// sandboxAccounts is where the sandbox stores its account, chosen by the test's name.
func (r *harness) sandboxAccounts() sandbox.Accounts {
	name := fnv.New32a()
	_, _ = name.Write([]byte(r.Name()))
	if name.Sum32()%postgresShare == 0 {
		return r.store.SandboxAccounts()
	}
	r.memory = &modelDocuments{&sandboxtest.Memory{}, r.store}
	return r.memory
}

// keep returns a function that puts the application and its sandbox account back to what
// they are now.
func (r *harness) keep() (restore func()) {
	r.Helper()
	rows := keepRows(r, storetest.URL(r), r.app.ID.String())
	if r.memory == nil {
		return rows
	}
	account, clock := must[persist.Change](r)(sandboxtest.Read(r.Context(), r.memory, r.app.ID)), r.memory.offset(r.app.ID)
	return func() {
		r.Helper()
		rows()
		r.check(sandboxtest.Write(r.Context(), r.memory.Memory, r.app.ID, account))
		clockOffsets.Store(r.app.ID, clock)
	}
}

func (r *harness) clock() time.Time {
	if at := r.frozenAt.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Now().Add(time.Duration(r.clockOffset.Load()))
}

// freeze stops the clocks, for steps between which no real time may pass.
func (r *harness) freeze() (now time.Time) {
	now = r.clock()
	r.frozenAt.Store(now.UnixNano())
	return now
}

func (r *harness) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r.Output(), nil)) }

// newCashier is another node for the same application, with raised timeouts: a test
// about a timeout sets it.
func (r *harness) newCashier(change ...func(*cashier.Options)) *cashier.Cashier {
	r.Helper()
	sealed := must[*vault.Vault](r)(vault.New(rand.Reader, []byte("another thirty-two bytes, secret")))
	options := cashier.Options{
		Store: r.store, Vault: sealed, BaseURL: r.http.URL, Log: r.logger(), Now: r.clock,
		Sandbox: func(ctx context.Context, app ids.ID, webhookURL string, types []string) (cashier.Sandbox, error) {
			c, err := r.sandbox.Connect(ctx, app, webhookURL, types)
			return cashier.Sandbox(c), err
		},
	}
	for _, c := range change {
		c(&options)
	}
	node := must[*cashier.Cashier](r)(cashier.New(options))
	node.RaiseLimits()
	return node
}

// recordCall records calls that change something at the provider.
func (r *harness) recordCall(req *http.Request) {
	if req.Method == http.MethodGet || !strings.HasPrefix(req.URL.Path, "/sandbox/stripe/") {
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	req.Body = io.NopCloser(strings.NewReader(string(body)))
	fields, _ := url.ParseQuery(string(body))
	r.calls.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, req.Method+" "+strings.TrimPrefix(req.URL.Path, "/sandbox/stripe"))
	r.bodies = append(r.bodies, fields)
	r.keys[req.Header.Get("Idempotency-Key")]++
}

// callsTo returns the bodies of the recorded calls with this prefix.
func (r *harness) callsTo(call string) []url.Values {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []url.Values
	for i, line := range r.log {
		if strings.HasPrefix(line, call) {
			found = append(found, r.bodies[i])
		}
	}
	return found
}

// deliver passes a webhook of the sandbox to the cashier.
func (r *harness) deliver(ctx context.Context, to string, header http.Header, body []byte) error {
	connection := to[strings.LastIndex(to, "/")+1:]
	signature := header.Get("Stripe-Signature")
	r.mu.Lock()
	if r.alter != nil {
		signature, body = r.alter(body)
	}
	r.arrived = append(r.arrived, arrived{connection, signature, body})
	refuse := r.refuse
	r.mu.Unlock()
	if refuse != nil || r.dropWebhooks.Load() {
		return refuse
	}
	return r.cashier.ReceiveWebhook(ctx, connection, signature, body)
}

// settle delivers webhooks and runs due jobs until there are none.
func (r *harness) settle() {
	r.Helper()
	r.advanceTo(r.now())
}

func (r *harness) now() int64 {
	r.Helper()
	return must[int64](r)(r.sandbox.Clock(r.Context(), r.app.ID))
}

func (r *harness) advance(d time.Duration) {
	r.Helper()
	r.advanceTo(r.now() + d.Milliseconds())
}

func (r *harness) advanceTo(at int64) {
	r.Helper()
	if _, err := r.sandbox.Advance(r.Context(), r.app.ID, at); err != nil {
		r.Fatal(err)
	}
}

// inject adds a fault to the provider's next answers.
func (r *harness) inject(f sandbox.Fault) {
	r.Helper()
	r.sandbox.Inject(r.app.ID, f)
}

func (r *harness) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// eventually waits for another goroutine. Only a condition that never holds reaches
// the deadline.
func (r *harness) eventually(what string, holds func() bool) {
	r.Helper()
	deadline := time.After(5 * time.Minute)
	for !holds() {
		select {
		case <-deadline:
			r.Fatalf("it never came to be that %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func must[T any](r *harness) func(T, error) T {
	return func(got T, err error) T {
		r.Helper()
		if err != nil {
			r.Fatal(err)
		}
		return got
	}
}

func wantFault(t testing.TB, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("got %v, want the fault %s", err, code)
	}
}
