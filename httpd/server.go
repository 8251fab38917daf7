package httpd

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/trace"
)

const readyTimeout = 3 * time.Second

// Options configures a Server. Every field has a default.
type Options struct {
	Log *slog.Logger
	// Ready returns why the node cannot serve, in a sentence for operators, or nil.
	Ready func(context.Context) error
	// MaxBodies is how many requests outside /v1 may have a body in flight: fewer than
	// connections, so that bodies that never arrive leave some free. At most 2048, the
	// default.
	MaxBodies int
	// HTTPS reports that clients connect over TLS, possibly terminated by a proxy.
	HTTPS bool
	// NetworkOf returns the client network of a request. If nil, all share one.
	NetworkOf func(*http.Request) netip.Prefix
	// Observe is called for every request, with its route and never its path.
	Observe func(method, route string, status int, took time.Duration)
	// Tracer makes a span of every request; nil for none.
	Tracer trace.Tracer
	// LogsRequest decides by status whether a request gets a log line; if nil, all do.
	LogsRequest func(status int) bool
	// ErrorPage renders errors outside /v1 as HTML; if nil, they are JSON too.
	ErrorPage func(c echo.Context, status int, requestID string) error
}

// Server is the shell.
type Server struct {
	options  Options
	bodies   *InFlight[netip.Prefix]
	draining atomic.Bool
}

// New creates a shell without routes.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	if o.NetworkOf == nil {
		o.NetworkOf = func(*http.Request) netip.Prefix { return netip.Prefix{} }
	}
	if o.Observe == nil {
		o.Observe = func(string, string, int, time.Duration) {}
	}
	if o.LogsRequest == nil {
		o.LogsRequest = func(int) bool { return true }
	}
	return &Server{options: o, bodies: NewInFlight[netip.Prefix](bodyBytes(o.MaxBodies))}
}

// Echo returns an app with the shell around it and the health routes on it. The edges
// register theirs.
func (s *Server) Echo() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.handleError
	e.Pre(s.instrument, s.setHeaders, s.limitBodies, routeByEscapedPath)
	e.Use(refuseMethods)
	e.Match(MethodsOf(http.MethodGet), "/healthz", s.healthz)
	e.Match(MethodsOf(http.MethodGet), "/readyz", s.readyz)
	return e
}

// MethodsOf adds HEAD to GET: net/http omits the body.
func MethodsOf(method string) []string {
	if method == http.MethodGet {
		return []string{method, http.MethodHead}
	}
	return []string{method}
}

// EchoPath converts {name} to echo's :name.
func EchoPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

// StartDrain makes /readyz answer 503 and closes keep-alive connections after their next
// response. Requests are served as before.
func (s *Server) StartDrain() { s.draining.Store(true) }

func (s *Server) healthz(ec echo.Context) error {
	return ec.String(http.StatusOK, "ok\n")
}

func (s *Server) readyz(ec echo.Context) error {
	if s.draining.Load() {
		return ec.String(http.StatusServiceUnavailable, "not ready: the server is stopping\n")
	}
	ctx, cancel := Detach(ec.Request().Context(), readyTimeout)
	defer cancel()
	if err := s.options.Ready(ctx); err != nil {
		return ec.String(http.StatusServiceUnavailable, "not ready: "+err.Error()+"\n")
	}
	return ec.String(http.StatusOK, "ready\n")
}

// routeByEscapedPath makes echo match the path as it was sent. Go keeps the original
// only when it differs from its own encoding, so a handler could not tell whether a '%'
// is still encoded, and decoding twice would address another wallet. A RawPath that Go
// kept is not encoded again: a %2F beside an unescaped character would become a slash.
func routeByEscapedPath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		target := ec.Request().URL
		if target.RawPath == "" {
			target.RawPath = target.EscapedPath()
		}
		return next(ec)
	}
}
