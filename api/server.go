package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/labstack/echo/v4"

	"purser/billing/cashier"
	"purser/ids"
	"purser/keys"
	"purser/store"
)

const (
	// How long one request may take, waiting for the database included.
	requestTimeout = 15 * time.Second
	// How long an event or a check may take: authentication, queue and transaction
	// together.
	batchedTimeout     = 10 * time.Second
	readyTimeout       = 3 * time.Second
	defaultMaxInFlight = 4096
)

// Options are what a server needs to know. All but the first three have defaults.
type Options struct {
	Store   *store.Store
	Usage   *store.Usage
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
	// Observe is told of every request, by its route and never by its path.
	Observe func(method, route string, status int, took time.Duration)
	// ErrorPage answers errors outside /v1, where people look.
	ErrorPage func(c echo.Context, status int, requestID string) error
}

// Server is the /v1 interface.
type Server struct {
	store     *store.Store
	usage     *store.Usage
	cashier   *cashier.Cashier
	hotKeys   *hotKeys
	log       *slog.Logger
	now       func() int64
	document  *document
	cursors   cursors
	limits    *keyLimits
	places    *places
	tell      func(method, route string, status int, took time.Duration)
	errorPage func(c echo.Context, status int, requestID string) error
}

// New reads the document and prepares the server.
func New(o Options) (*Server, error) {
	doc, err := loadDocument()
	if err != nil {
		return nil, err
	}
	limits, err := newKeyLimits(o.RateLimit)
	if err != nil {
		return nil, err
	}
	hot, err := lru.New[ids.ID, keys.APIKey](rememberedKeys)
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
	if o.Now == nil {
		o.Now = o.Store.Clock().Now
	}
	return &Server{
		store:     o.Store,
		usage:     o.Usage,
		cashier:   o.Cashier,
		hotKeys:   hot,
		log:       o.Log,
		now:       o.Now,
		document:  doc,
		cursors:   cursors{key: o.CursorKey},
		limits:    limits,
		places:    newPlaces(o.MaxInFlight),
		tell:      o.Observe,
		errorPage: o.ErrorPage,
	}, nil
}

// Echo makes the one app that serves the interface, and on which the pages for
// people are mounted beside it.
func (s *Server) Echo() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.handleError
	e.Pre(s.observe, routeByEscapedPath)
	e.Use(refuseMethods)
	e.GET("/healthz", s.healthz)
	e.GET("/readyz", s.readyz)
	e.GET("/v1/openapi.json", s.getOpenapi)
	for _, r := range s.routes() {
		e.Add(r.method, echoPath(r.path), s.serve(r, s.document.operation(r.method, r.path)))
	}
	return e
}

func (s *Server) getOpenapi(ec echo.Context) error {
	return ec.Blob(http.StatusOK, echo.MIMEApplicationJSON, s.document.json)
}

func (s *Server) healthz(ec echo.Context) error {
	return ec.String(http.StatusOK, "ok\n")
}

func (s *Server) readyz(ec echo.Context) error {
	ctx, cancel := context.WithTimeout(ec.Request().Context(), readyTimeout)
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
