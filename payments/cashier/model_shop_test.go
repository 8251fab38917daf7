package cashier_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/cashier"
	"purser/payments/sandbox"
	"purser/payments/sandbox/persist"
	"purser/payments/sandbox/sandboxtest"
	"purser/store"
	"purser/store/people"
	"purser/store/queue"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/vault"
)

// modelBase is the address that the model's sandbox believes to have. Nothing
// listens there: every request is a function call.
const modelBase = "http://model.test"

// modelStart is where the clock of every history starts: late on the last day of
// January of a leap year, so that a month's wait reaches a shorter month.
var modelStart = time.Date(2028, time.January, 31, 22, 15, 30, 0, time.UTC).UnixMilli()

// modelShop is an application with its cashier and its sandbox, without a network
// and with a clock that only the history moves. The sandbox keeps its state in
// memory; the store is a real one.
type modelShop struct {
	rapid.TB
	ctx     context.Context
	store   *store.Store
	spare   *spareStores
	url     string
	admin   string // the address that storetest keeps sessions for
	app     tenancy.Application
	scope   tenancy.Scope
	docs    *modelDocuments
	sandbox *sandbox.Server
	handler http.Handler
	cashier *cashier.Cashier
	real    atomic.Int64 // the real clock, in milliseconds
	lose    atomic.Bool  // webhooks are acknowledged and forgotten
	// delivered counts webhooks, so that settle knows when none is left.
	delivered atomic.Int64

	merged     bool   // webhooks are not received one by one
	connection ids.ID // of the account; zero until it is known
	connected  map[string]cashier.Sandbox
	mu         sync.Mutex
	unseen     map[queue.Job]bool // what merged webhooks were about
	log        *modelLog
}

// modelLog keeps what the nodes logged, for a history that fails.
type modelLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *modelLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *modelLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// modelDocuments keeps the sandbox's accounts in memory, and tells the store only
// when the application's clock has moved.
type modelDocuments struct {
	*sandboxtest.Memory
	store *store.Store
}

func (d *modelDocuments) Update(ctx context.Context, app ids.ID, want persist.Want, change func(persist.Session) (persist.Change, error)) error {
	var was, sub int64
	err := d.Memory.Update(ctx, app, want, func(session persist.Session) (persist.Change, error) {
		was = d.offset(app)
		next, err := change(session)
		sub = next.ClockOffset
		return next, err
	})
	if err != nil || was == sub {
		return err
	}
	clockOffsets.Store(app, sub)
	return d.store.SandboxAccounts().Update(ctx, app, persist.Want{}, func(persist.Session) (persist.Change, error) {
		return persist.Change{Head: []byte("{}"), ClockOffset: sub}, nil
	})
}

// clockOffsets has the clock of each application as the store knows it.
var clockOffsets sync.Map

func (d *modelDocuments) offset(app ids.ID) int64 {
	known, _ := clockOffsets.Load(app)
	offset, _ := known.(int64)
	return offset
}

// modelTemplate is an application that is set up once and copied for each history.
type modelTemplate struct {
	store      *store.Store
	spare      *spareStores
	url        string
	admin      string
	org        tenancy.Organization
	app        tenancy.Application
	connection ids.ID
	state      persist.Change // of the sandbox
	copyTo     func(ctx context.Context, app string, replace ...string) error
}

// spareStores are for nodes that may die. A node that lived leaves its store to the next:
// new connections plan every statement again, which costs as much as a history.
type spareStores struct {
	url  string
	mu   sync.Mutex
	idle []*store.Store
}

// spareConns is how many connections the store of a node that may die has: each plans
// every statement that it runs.
const spareConns = 2

func newSpareStores(tb testing.TB, url string) *spareStores {
	spare := &spareStores{url: url}
	tb.Cleanup(func() {
		for _, s := range spare.idle {
			s.Close()
		}
	})
	return spare
}

func (p *spareStores) take(ctx context.Context) (*store.Store, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		s := p.idle[last]
		p.idle = p.idle[:last]
		return s, nil
	}
	return store.Open(context.WithoutCancel(ctx), p.url, store.Options{MaxConns: spareConns})
}

func (p *spareStores) put(s *store.Store) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
}

// modelURL is the database, with commits that do not wait for the disk and with each
// statement planned once: the plans of all histories are the same.
func modelURL(tb testing.TB) string {
	tb.Helper()
	return withSettings(tb, "synchronous_commit", "off", "plan_cache_mode", "force_generic_plan", "enable_seqscan", "off", "jit", "off")
}

// withSettings is the database's address with pairs of a setting and its value.
func withSettings(tb testing.TB, settings ...string) string {
	tb.Helper()
	address, err := url.Parse(storetest.URL(tb))
	if err != nil {
		tb.Fatal(err)
	}
	query := address.Query()
	for i := 0; i < len(settings); i += 2 {
		query.Set(settings[i], settings[i+1])
	}
	if storetest.Distributed(tb) {
		query.Del("plan_cache_mode") // Citus plans with the application's id
	}
	address.RawQuery = query.Encode()
	return address.String()
}

// newModelTemplate sets an application up: credits, features, plans that the
// provider knows, and what else prepare does.
func newModelTemplate(t *testing.T, s *store.Store, address string, prepare func(*modelShop)) *modelTemplate {
	t.Helper()
	org, err := tenancy.NewOrganization(ids.New(), "Model "+ids.New().String(), modelStart)
	if err != nil {
		t.Fatal(err)
	}
	template := &modelTemplate{store: s, spare: newSpareStores(t, address), url: address, admin: storetest.URL(t), org: org}
	shop := template.open(t, &sandboxtest.Memory{}, t.Context())
	template.app = shop.app
	prepare(shop)
	shop.settle()
	connection, err := s.PaymentAccounts(shop.scope).Connection(shop.ctx)
	shop.check(err)
	template.connection = connection.ID
	template.state, err = sandboxtest.Read(shop.ctx, shop.docs, shop.app.ID)
	shop.check(err)
	// No history asks how the plans were created, and each would store the events again.
	template.state.Rows = slices.DeleteFunc(template.state.Rows, func(row persist.Row) bool { return row.Kind == "event" || row.Kind == "answer" })
	template.copyTo = cloneRows(t, address, shop.app.ID.String())
	return template
}

// open makes an application without anything in it.
func (template *modelTemplate) open(tb rapid.TB, memory *sandboxtest.Memory, ctx context.Context) *modelShop {
	tb.Helper()
	m := &modelShop{TB: tb, ctx: ctx, store: template.store, spare: template.spare, url: template.url, admin: template.admin, docs: &modelDocuments{memory, template.store}, log: &modelLog{},
		connected: map[string]cashier.Sandbox{}, unseen: map[queue.Job]bool{}}
	m.real.Store(modelStart)
	app, err := tenancy.NewApplication(ids.New(), template.org, "App "+ids.New().String(), false, modelStart)
	m.check(err)
	m.app, err = m.store.Directory().ProvisionIn(ctx, people.OrgRef{Name: template.org.Name}, template.org, app)
	m.check(err)
	m.scope = m.app.Scope()
	m.sandbox = sandbox.New(sandbox.Options{
		Accounts: m.docs, BaseURL: modelBase, Secret: []byte("thirty-two bytes of test secret!"),
		Admits:    func(_ context.Context, app ids.ID) (bool, error) { return app == m.app.ID, nil },
		Authorize: func(*http.Request) (ids.ID, error) { return m.app.ID, nil },
		Deliver:   m.deliver,
		Drain:     m.work,
		Log:       m.logger(), Now: m.clock,
	})
	m.handler = m.sandbox.Handler()
	m.cashier = m.node(m.store, modelWay{m}, m.clock)
	return m
}

// copy makes an application for one history.
func (template *modelTemplate) copy(tb rapid.TB, ctx context.Context) *modelShop {
	tb.Helper()
	m := template.open(tb, &sandboxtest.Memory{}, ctx)
	connection := ids.New()
	m.connection = connection
	text := func(id ids.ID) string { _, body, _ := strings.Cut(id.Format("id"), "_"); return body }
	renamed := []string{template.connection.String(), connection.String(), text(template.connection), text(connection)}
	m.check(template.copyTo(ctx, m.app.ID.String(), renamed...))
	rename := strings.NewReplacer(append(renamed, text(template.app.ID), text(m.app.ID))...).Replace
	state := template.state
	state.Head, state.Rows = []byte(rename(string(state.Head))), slices.Clone(state.Rows)
	for i, row := range state.Rows {
		state.Rows[i].Alias, state.Rows[i].Document = rename(row.Alias), []byte(rename(string(row.Document)))
	}
	m.check(sandboxtest.Write(ctx, m.docs, m.app.ID, state))
	return m
}

// modelWay is the way to the sandbox: a call of its handler.
type modelWay struct{ m *modelShop }

func (w modelWay) RoundTrip(request *http.Request) (response *http.Response, err error) {
	defer func() {
		if recover() != nil { // the handler has dropped the connection
			response, err = nil, errors.New("connection reset")
		}
	}()
	recorder := httptest.NewRecorder()
	w.m.handler.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

// modelCrash is the way to the sandbox of a node that dies at one of its calls.
type modelCrash struct {
	*crashingTransport
	way http.RoundTripper
}

func (d modelCrash) RoundTrip(request *http.Request) (*http.Response, error) {
	d.mu.Lock()
	n := len(d.calls)
	d.calls = append(d.calls, request.Method+" "+request.URL.Path)
	d.mu.Unlock()
	if n < d.at {
		return d.way.RoundTrip(request)
	}
	if n == d.at {
		if d.after {
			_, _ = d.way.RoundTrip(request)
		}
		close(d.died)
	}
	d.rest()
	return nil, nil
}

func (m *modelShop) node(s *store.Store, way http.RoundTripper, clock func() time.Time) *cashier.Cashier {
	sealed, err := vault.New(rand.Reader, []byte("another thirty-two bytes, secret"))
	m.check(err)
	node, err := cashier.New(cashier.Options{
		Store: s, Vault: sealed, BaseURL: modelBase, Log: m.logger(), Now: clock, SandboxTransport: way,
		Sandbox: func(ctx context.Context, app ids.ID, webhookURL string, types []string) (cashier.Sandbox, error) {
			m.mu.Lock()
			known, found := m.connected[webhookURL]
			m.mu.Unlock()
			if found {
				return known, nil
			}
			c, err := m.sandbox.Connect(ctx, app, webhookURL, types)
			if err == nil {
				m.mu.Lock()
				m.connected[webhookURL] = cashier.Sandbox(c)
				m.mu.Unlock()
			}
			return cashier.Sandbox(c), err
		},
	})
	m.check(err)
	node.RaiseLimits()
	node.WithoutPeriodicJobs()
	return node
}

func (m *modelShop) clock() time.Time { return time.UnixMilli(m.real.Load()) }

func (m *modelShop) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(m.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (m *modelShop) check(err error) {
	m.Helper()
	if err != nil {
		m.Fatalf("%v\n%s", err, m.log)
	}
}

func (m *modelShop) deliver(ctx context.Context, to string, header http.Header, body []byte) error {
	m.delivered.Add(1)
	switch {
	case m.lose.Load():
		return nil
	case m.merged:
		return m.merge(body)
	}
	return m.cashier.ReceiveWebhook(ctx, to[strings.LastIndex(to, "/")+1:], header.Get("Stripe-Signature"), body)
}

// now is the application's clock. Reading it from the sandbox would read its whole
// state.
func (m *modelShop) now() int64 { return m.real.Load() + m.docs.offset(m.app.ID) }

// settle delivers webhooks and works off the queue, until no webhook is left. The
// queue is empty then: nothing was delivered since it was worked off.
func (m *modelShop) settle() {
	m.Helper()
	for worked := int64(-1); ; {
		m.check(m.sandbox.Flush(m.ctx, m.app.ID))
		delivered := m.delivered.Load()
		if delivered == worked {
			return
		}
		m.check(m.work(m.ctx, m.app.ID))
		worked = delivered
	}
}

// merge keeps what a webhook is about, so that several about one object are one job.
// The route that webhooks take is half of the cost of a history.
func (m *modelShop) merge(body []byte) error {
	var event struct {
		Data struct {
			Object struct{ ID, Object, Subscription string }
		}
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return err
	}
	object := event.Data.Object
	kinds := map[string]queue.JobKind{
		"checkout.session": queue.JobSession, "subscription": queue.JobSubscription, "charge": queue.JobCharge,
		"refund": queue.JobRefund, "dispute": queue.JobDispute, "subscription_schedule": queue.JobSchedule,
	}
	kind, known := kinds[object.Object]
	if object.Object == "invoice" {
		kind, known, object.ID = queue.JobSubscription, true, object.Subscription
	}
	if !known {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unseen[queue.Job{Kind: kind, Object: object.ID}] = true
	return nil
}

// work does what is due, after what merged webhooks are about was put on the queue.
func (m *modelShop) work(ctx context.Context, app ids.ID) error {
	m.mu.Lock()
	unseen := slices.SortedFunc(maps.Keys(m.unseen), func(a, b queue.Job) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object))
	})
	clear(m.unseen)
	m.mu.Unlock()
	if len(unseen) > 0 {
		for i := range unseen {
			unseen[i].Connection, unseen[i].DueAt = m.connection, m.now()
		}
		if err := m.store.Queue(m.scope).Enqueue(ctx, unseen...); err != nil {
			return err
		}
	}
	// Most calls find nothing to do, and to ask costs less than a drain.
	if due, err := m.store.Queue(m.scope).HasJobsDue(ctx, m.real.Load()); err != nil || !due {
		return err
	}
	return m.cashier.DrainAll(ctx, app)
}

func (m *modelShop) advanceTo(at int64) {
	m.Helper()
	_, err := m.sandbox.Advance(m.ctx, m.app.ID, at)
	m.check(err)
}

// provider reads the sandbox's account as it is stored now.
func (m *modelShop) provider() *modelProvider {
	m.Helper()
	w := newModelProvider()
	m.check(m.docs.View(m.ctx, m.app.ID, persist.Want{}, func(session persist.Session) error {
		rows, err := session.Source.Everything()
		for i := 0; i < len(rows) && err == nil; i++ {
			err = w.add(rows[i])
		}
		return err
	}))
	return w
}

// submit sends a form to a page, as a browser does.
func (m *modelShop) submit(page string, fields url.Values) (status int, location string) {
	m.Helper()
	return m.post(page, "application/x-www-form-urlencoded", fields.Encode())
}

func (m *modelShop) post(page, kind, body string) (status int, location string) {
	m.Helper()
	request, err := http.NewRequestWithContext(m.ctx, http.MethodPost, page, strings.NewReader(body))
	m.check(err)
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Origin", modelBase)
	recorder := httptest.NewRecorder()
	m.handler.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Header().Get("Location")
}

// pay pays at a page and authenticates when asked; it reports whether the page
// took the payment.
func (m *modelShop) pay(page, card string) bool {
	m.Helper()
	field, value := "card", card
	if name, end, other := strings.Cut(card, "="); other {
		field, value = name, end
	}
	status, to := m.submit(page, url.Values{field: {value}})
	if strings.Contains(to, "/authenticate/") {
		status, _ = m.submit(to, url.Values{"result": {"complete"}})
	}
	return status == http.StatusSeeOther
}

// steer uses the sandbox's own surface, and reports whether it did as asked.
func (m *modelShop) steer(path, body string, values ...any) bool {
	m.Helper()
	status, _ := m.post(modelBase+"/sandbox/apps/"+m.app.ID.Format(ids.Application)+"/"+path, "application/json", fmt.Sprintf(body, values...))
	if status != http.StatusOK && status != http.StatusBadRequest {
		m.Fatalf("%s answers %d\n%s", path, status, m.log)
	}
	return status == http.StatusOK
}

func (m *modelShop) credit(key string) {
	m.Helper()
	m.check(m.store.App(m.scope).CreateCredit(m.ctx, metering.Credit{ID: ids.New(), Key: key, Name: key, Unit: "unit", Revision: 1, CreatedAt: m.now()}))
}

func (m *modelShop) feature(key, credit string) {
	m.Helper()
	_, err := m.store.App(m.scope).CreateFeature(m.ctx, metering.Feature{
		ID: ids.New(), Key: key, Name: key, Unit: "use", CreditKey: credit, Cost: 1, QuantityPerUnit: 1,
		PricingMode: metering.Fixed, Deduplication: metering.DeduplicateNone, Revision: 1, CreatedAt: m.now(),
	})
	m.check(err)
}

func (m *modelShop) newPlan(key string, cents int64, how ...planOption) {
	m.Helper()
	draft := billing.PlanDraft{
		Key: key, Name: strings.ToUpper(key), TopupsEnabled: true, Active: true,
		Price: billing.Price{AmountCents: cents, Currency: "usd", Interval: billing.Month},
	}
	for _, change := range how {
		change(&draft)
	}
	_, err := m.store.App(m.scope).CreatePlan(m.ctx, draft, func(catalog billing.Catalog) (billing.Plan, error) {
		return billing.NewPlan(ids.New(), draft, catalog, m.now())
	})
	m.check(err)
}

func (m *modelShop) deposit(identity, credit string, amount metering.Amount) error {
	key := newKey()
	_, _, err := m.store.App(m.scope).Deposit(m.ctx, store.Deposit{
		ID: ids.New(), Identity: identity, CreditKey: credit, Amount: amount, IdempotencyKey: &key, CreatedAt: m.now(),
	})
	return err
}

// wallet is the identity's wallet, empty when there is none.
func (m *modelShop) wallet(identity string) metering.Wallet {
	m.Helper()
	w, err := m.store.App(m.scope).Wallet(m.ctx, identity)
	if !fault.Is(err, fault.WalletNotFound) {
		m.check(err)
	}
	return w
}

var errDied = errors.New("the node died")

// dying runs an operation on a node that dies at its call number at, before or
// after the provider has carried it out. The lease of the dead node lapses, and
// another takes over. The error is errDied when it came to that.
func (m *modelShop) dying(at int, after bool, do func(*cashier.Cashier) error) error {
	m.Helper()
	own, err := m.spare.take(m.ctx)
	m.check(err)
	death := newCrashingTransport(at, after)
	node := m.node(own, modelCrash{death, modelWay{m}}, death.clock(m.clock))
	ended := make(chan error, 1)
	go func() {
		outcome := errDied // when the goroutine ends without returning
		defer func() { ended <- outcome }()
		outcome = do(node)
	}()
	select {
	case err = <-ended:
		m.spare.put(own)
		return err
	case <-death.died:
	}
	own.Close()
	close(death.over)
	<-ended
	m.lapse()
	m.cashier = m.node(m.store, modelWay{m}, m.clock)
	return errDied
}

func (m *modelShop) lapse() {
	m.Helper()
	storetest.Lapse(m, m.admin, m.app.ID.String())
}
