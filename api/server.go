package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/labstack/echo/v4"

	"purser/ids"
	"purser/payments/cashier"
	"purser/store"
)

const (
	// requestTimeout bounds one request, waiting for the database included.
	requestTimeout = 15 * time.Second
	// batchedTimeout bounds an event or a check: authentication, queue and transaction
	// together.
	batchedTimeout = 10 * time.Second
	readyTimeout   = 3 * time.Second
	// maxRequest bounds a request with a slow body. Shutdown waits that long.
	maxRequest = 20 * time.Second
	// slowBody is how long a body may take before the deadline is extended.
	slowBody = 100 * time.Millisecond
	// refusalDelay is the mean delay of a rate-limited response. It grows by itself for
	// every refusalsPerDelay waiting, up to maxRefusalDelay. At most maxDelayed wait;
	// others are refused at once.
	refusalDelay       = 400 * time.Millisecond
	maxRefusalDelay    = time.Second
	refusalsPerDelay   = 128
	maxDelayed         = 4096
	defaultMaxInFlight = 4096
)

// Options configures a Server. All but the first three fields have defaults.
type Options struct {
	Store   *store.Store
	Usage   *store.Engine
	Cashier *cashier.Cashier
	Log     *slog.Logger
	// Now is the clock, in milliseconds since 1970; the database's if nil.
	Now func() int64
	// CursorKey authenticates cursors. Nodes on one database share it.
	CursorKey []byte
	// RateLimit is the requests per second of one key, with a burst of twice that. Zero
	// means no limit.
	RateLimit float64
	// MaxInFlight is the limit of concurrent requests; 4096 if zero.
	MaxInFlight int
	// MaxBodies is how many requests outside /v1 may have a body in flight: fewer than
	// connections, so that bodies that never arrive leave some free. At most 2048, the
	// default.
	MaxBodies int
	// BaseURL is the public URL in the served document; "/" if empty.
	BaseURL string
	// HTTPS reports that clients connect over TLS, possibly terminated by a proxy.
	HTTPS bool
	// NetworkOf returns the client network of a request. If nil, all share one.
	NetworkOf func(*http.Request) netip.Prefix
	// Observe is called for every request, with its route and never its path.
	Observe func(method, route string, status int, took time.Duration)
	// LogsRequest decides by status whether a request gets a log line; if nil, all do.
	LogsRequest func(status int) bool
	// ErrorPage renders errors outside /v1 as HTML.
	ErrorPage func(c echo.Context, status int, requestID string) error
}

// Server serves the /v1 API.
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
	observe   func(method, route string, status int, took time.Duration)
	errorPage func(c echo.Context, status int, requestID string) error
	https     bool
	draining  atomic.Bool
	delayed   atomic.Int64 // refusals waiting in SlowDown

	logsRequest func(status int) bool
}

// New compiles the OpenAPI document and creates the server.
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
		observe:   o.Observe,
		errorPage: o.ErrorPage,
		https:     o.HTTPS,

		logsRequest: o.LogsRequest,
	}, nil
}

// NetworkOf is the client network of a request.
func (s *Server) NetworkOf(r *http.Request) netip.Prefix { return s.networkOf(r) }

// Echo returns the app that serves the API, on which the dashboard is mounted too.
func (s *Server) Echo() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.handleError
	e.Pre(s.instrument, s.setHeaders, s.limitBodies, routeByEscapedPath)
	e.Use(refuseMethods)
	e.Match(methodsOf(http.MethodGet), "/healthz", s.healthz)
	e.Match(methodsOf(http.MethodGet), "/readyz", s.readyz)
	e.Match(methodsOf(http.MethodGet), "/v1/openapi.json", s.getOpenapi)
	for _, r := range s.routes() {
		e.Match(methodsOf(r.method), echoPath(r.path), s.serve(r, s.document.operation(r.method, r.path)))
	}
	return e
}

// methodsOf adds HEAD to GET: net/http omits the body.
func methodsOf(method string) []string {
	if method == http.MethodGet {
		return []string{method, http.MethodHead}
	}
	return []string{method}
}

func (s *Server) healthz(ec echo.Context) error {
	return ec.String(http.StatusOK, "ok\n")
}

// StartDrain makes /readyz answer 503 and closes keep-alive connections after their next
// response. Requests are served as before.
func (s *Server) StartDrain() { s.draining.Store(true) }

func (s *Server) readyz(ec echo.Context) error {
	if s.draining.Load() {
		return ec.String(http.StatusServiceUnavailable, "not ready: the server is stopping\n")
	}
	ctx, cancel := detach(ec.Request().Context(), readyTimeout)
	defer cancel()
	ready := s.store.Ready
	if s.usage != nil {
		ready = s.usage.Ready // logs the reason too
	}
	if err := ready(ctx); err != nil {
		return ec.String(http.StatusServiceUnavailable, "not ready: "+store.Reason(err)+"\n")
	}
	return ec.String(http.StatusOK, "ready\n")
}
