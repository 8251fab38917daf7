package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/labstack/echo/v4"

	"purser/billing/cashier"
	"purser/ids"
	"purser/store"
)

const (
	// How long one request may take, waiting for the database included.
	requestTimeout = 15 * time.Second
	// How long an event or a check may take: authentication, queue and transaction
	// together.
	batchedTimeout = 10 * time.Second
	readyTimeout   = 3 * time.Second
	// maxRequest is how long a request may take in all, with a body that arrives
	// slowly. A server that stops waits that long.
	maxRequest = 20 * time.Second
	// slowBody is how long a body may take before the deadline is moved by it.
	slowBody = 100 * time.Millisecond
	// refusalDelay is how long a request over its key's rate waits for its refusal, on
	// average: as long again for every refusalsPerDelay that wait, up to maxRefusalDelay.
	// maxDelayed is how many may wait: others are refused at once.
	refusalDelay       = 400 * time.Millisecond
	maxRefusalDelay    = time.Second
	refusalsPerDelay   = 128
	maxDelayed         = 4096
	defaultMaxInFlight = 4096
)

// Options are what a server needs to know. All but the first three have defaults.
type Options struct {
	Store   *store.Store
	Usage   *store.Engine
	Cashier *cashier.Cashier
	Log     *slog.Logger
	// Now is the clock, in milliseconds since 1970; the database's when nil.
	Now func() int64
	// CursorKey seals cursors. Nodes on one database share it.
	CursorKey []byte
	// RateLimit is how many requests a second one key may make, with a burst of
	// twice as many. Zero is no limit.
	RateLimit float64
	// MaxInFlight is how many requests may be under way at once; 4096 when zero.
	MaxInFlight int
	// MaxBodies is how many requests outside of /v1 may have a body under way at once:
	// fewer than connections, so that bodies that never arrive leave some to others.
	// At most 2048, which it is when zero.
	MaxBodies int
	// BaseURL is the public address, for the served document; "/" when empty.
	BaseURL string
	// HTTPS reports that callers reach the server over TLS, which a proxy may end.
	HTTPS bool
	// NetworkOf is where a request comes from. All come from one network when nil.
	NetworkOf func(*http.Request) netip.Prefix
	// Observe is told of every request, by its route and never by its path.
	Observe func(method, route string, status int, took time.Duration)
	// LogsRequest decides by its status whether a request gets a log line; all do when
	// it is nil.
	LogsRequest func(status int) bool
	// ErrorPage answers errors outside /v1, where people look.
	ErrorPage func(c echo.Context, status int, requestID string) error
}

// Server is the /v1 interface.
type Server struct {
	store     *store.Store
	usage     *store.Engine
	cashier   *cashier.Cashier
	keys      *keyCache
	lookup    *keyLookup
	networkOf func(*http.Request) netip.Prefix
	log       *slog.Logger
	now       func() int64
	document  *document
	cursors   cursors
	limits    *keyLimits
	inFlight  *inFlight[ids.ID]
	bodies    *inFlight[netip.Prefix]
	tell      func(method, route string, status int, took time.Duration)
	errorPage func(c echo.Context, status int, requestID string) error
	https     bool
	draining  atomic.Bool
	delayed   atomic.Int64 // refusals that are waiting to be sent

	logsRequest func(status int) bool
}

// New reads the document and prepares the server.
func New(o Options) (*Server, error) {
	doc, err := loadDocument(o.BaseURL)
	if err != nil {
		return nil, err
	}
	cached, err := lru.New[keyName, cachedKey](cachedKeys)
	if err != nil {
		return nil, err
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = defaultMaxInFlight
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(string, string, int, time.Duration) {}
	}
	if o.NetworkOf == nil {
		o.NetworkOf = func(*http.Request) netip.Prefix { return netip.Prefix{} }
	}
	if o.LogsRequest == nil {
		o.LogsRequest = func(int) bool { return true }
	}
	if o.Now == nil {
		o.Now = func() int64 { return o.Store.Clock().Now() }
	}
	return &Server{
		store:     o.Store,
		usage:     o.Usage,
		cashier:   o.Cashier,
		keys:      cached,
		lookup:    newKeyLookup(o.Store.Directory().KeyByHash, sinceStart),
		networkOf: o.NetworkOf,
		log:       o.Log,
		now:       o.Now,
		document:  doc,
		cursors:   cursors{key: o.CursorKey},
		limits:    newKeyLimits(o.RateLimit, sinceStart),
		inFlight:  newInFlight[ids.ID](int64(o.MaxInFlight)),
		bodies:    newInFlight[netip.Prefix](bodyBytes(o.MaxBodies)),
		tell:      o.Observe,
		errorPage: o.ErrorPage,
		https:     o.HTTPS,

		logsRequest: o.LogsRequest,
	}, nil
}

// NetworkOf is the network that a request comes from.
func (s *Server) NetworkOf(r *http.Request) netip.Prefix { return s.networkOf(r) }

// Echo makes the one app that serves the interface, and on which the pages for
// people are mounted beside it.
func (s *Server) Echo() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.handleError
	e.Pre(s.observe, s.setHeaders, s.limitBodies, routeByEscapedPath)
	e.Use(refuseMethods)
	e.Match(methodsOf(http.MethodGet), "/healthz", s.healthz)
	e.Match(methodsOf(http.MethodGet), "/readyz", s.readyz)
	e.Match(methodsOf(http.MethodGet), "/v1/openapi.json", s.getOpenapi)
	for _, r := range s.routes() {
		e.Match(methodsOf(r.method), echoPath(r.path), s.serve(r, s.document.operation(r.method, r.path)))
	}
	return e
}

// methodsOf adds HEAD to GET: net/http leaves the body out.
func methodsOf(method string) []string {
	if method == http.MethodGet {
		return []string{method, http.MethodHead}
	}
	return []string{method}
}

func (s *Server) healthz(ec echo.Context) error {
	return ec.String(http.StatusOK, "ok\n")
}

// StartDrain makes /readyz answer 503, and asks clients to open their next
// connection elsewhere. Requests are served as before.
func (s *Server) StartDrain() { s.draining.Store(true) }

func (s *Server) readyz(ec echo.Context) error {
	if s.draining.Load() {
		return ec.String(http.StatusServiceUnavailable, "not ready: the server is stopping\n")
	}
	ctx, cancel := detach(ec.Request().Context(), readyTimeout)
	defer cancel()
	ready := s.store.Ready
	if s.usage != nil {
		ready = s.usage.Ready // which logs why not
	}
	if err := ready(ctx); err != nil {
		return ec.String(http.StatusServiceUnavailable, "not ready: "+store.Reason(err)+"\n")
	}
	return ec.String(http.StatusOK, "ready\n")
}
