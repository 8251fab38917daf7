package api_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"purser/api"
	"purser/httpd"
	"purser/jobs"
	"purser/notify/delivery"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy/vault"
)

// cursorKey is the same for all nodes, as it is in an installation.
var cursorKey = []byte("a key for the cursors of all the nodes of the suite")

// node is one server, as one process of an installation would be.
type node struct {
	server  *api.Server
	store   *store.Store
	usage   *store.Engine
	cashier *testCashier
	queue   *jobs.Queue // of notifications
	handler http.Handler
	host    string
	http    *http.Client
	clock   *clock
}

// clock is a node's time: the real one, or one that stands, moved by as much as a
// test wants.
type clock struct {
	standing int64
	ahead    atomic.Int64
}

func (c *clock) now() int64 {
	if c.standing != 0 {
		return c.standing + c.ahead.Load()
	}
	return time.Now().UnixMilli() + c.ahead.Load()
}

func (c *clock) advance(d time.Duration) { c.ahead.Add(d.Milliseconds()) }

// sharedNode serves most tests. It has no rate limit.
func sharedNode(t testing.TB) *node {
	t.Helper()
	n, err := theNode(storetest.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var theNode = func() func(*store.Store) (*node, error) {
	var once sync.Once
	var n *node
	var err error
	return func(s *store.Store) (*node, error) {
		once.Do(func() {
			atEnd.do(s.Close)
			n, err = openNode(s, api.Options{}, &clock{}, atEnd.do)
		})
		return n, err
	}
}()

// newNode is a node of its own, with a store and memories that no other shares.
func newNode(t testing.TB, o api.Options, c *clock) *node {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.URL(t), store.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	n, err := openNode(s, o, c, t.Cleanup)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// limitedNode differs from the shared node only in its options.
func limitedNode(t testing.TB, o api.Options) *node {
	t.Helper()
	shared := sharedNode(t)
	o.Usage = shared.usage
	n, err := openNode(shared.store, o, &clock{}, t.Cleanup)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func openNode(s *store.Store, o api.Options, c *clock, cleanup func(func())) (*node, error) {
	n := &node{store: s, usage: o.Usage, clock: c}
	o.MaxExports = cmp.Or(o.MaxExports, 1000) // tests that run side by side share a node
	if n.usage == nil {
		usage, err := s.OpenEngine(context.Background(), store.EngineOptions{Log: newLog(), Now: c.now})
		if err != nil {
			return nil, err
		}
		cleanup(usage.Close)
		n.usage = usage
	}
	var err error
	if n.cashier, err = newTestCashier(s, c); err != nil {
		return nil, err
	}
	n.queue = jobs.New(jobs.Options{Store: s, Log: newLog()})
	secrets, err := vault.New(rand.Reader, cashierSecret)
	if err != nil {
		return nil, err
	}
	o.Deliveries = delivery.New(delivery.Options{
		Store: s, Vault: secrets, Jobs: n.queue, Log: newLog(), Opened: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	o.Store, o.Usage, o.Cashier, o.Now, o.CursorKey = s, n.usage, n.cashier.Cashier, c.now, cursorKey
	server, err := api.New(o)
	if err != nil {
		return nil, err
	}
	n.server = server
	n.serve(shellOf(server, httpd.Options{Log: newLog(), Ready: n.ready}), cleanup)
	return n, nil
}

// shellOf is the API behind the shell, as the composition root puts it together.
func shellOf(server *api.Server, o httpd.Options) *echo.Echo {
	app := httpd.New(o).Echo()
	server.Register(app)
	return app
}

func (n *node) ready(ctx context.Context) error {
	if err := n.usage.Ready(ctx); err != nil {
		return errors.New(store.Reason(err))
	}
	return nil
}

func (n *node) serve(handler http.Handler, cleanup func(func())) {
	listening := httptest.NewServer(handler)
	transport := &http.Transport{
		MaxIdleConnsPerHost:   64,
		DisableCompression:    true,
		ExpectContinueTimeout: 5 * time.Minute, // a test waits for the server's word
	}
	cleanup(func() {
		transport.CloseIdleConnections()
		listening.Close()
	})
	n.http = &http.Client{Transport: transport, Timeout: 5 * time.Minute}
	n.handler = handler
	n.host = strings.TrimPrefix(listening.URL, "http://")
}
