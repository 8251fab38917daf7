package httpd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"

	"purser/ids"
)

// instrument gives every request an id, recovers panics, records metrics and writes one
// log line. The line has the route and never the path, whose identities may be email
// addresses, and no headers or body.
func (s *Server) instrument(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		started := time.Now()
		r := &Request{ID: ids.New()}
		ec.Set(requestKey, r)
		ec.Response().Header().Set(requestIDHeader, r.ID.Format(ids.Request))
		span := s.startSpan(ec, r)
		err := recoverPanic(next, ec)
		if err != nil && !clientClosed(ec, err) {
			s.handleError(err, ec)
		}
		if clientClosed(ec, err) {
			if !ec.Response().Committed {
				ec.Response().WriteHeader(statusClientClosed)
			}
			ec.Response().Status = statusClientClosed
		}
		r.Status, r.Took = ec.Response().Status, time.Since(started)
		if span != nil {
			endSpan(span, ec, r)
		}
		// Send the response before recording it.
		_ = http.NewResponseController(ec.Response()).Flush()
		s.options.Observe(ec.Request().Method, ec.Path(), r.Status, r.Took)
		s.logRequest(ec, r)
		if r.Done != nil {
			r.Done()
		}
		if _, ok := errors.AsType[*cutError](err); ok {
			panic(http.ErrAbortHandler) // closes the connection
		}
		return nil
	}
}

// statusClientClosed is nginx's status for a client that disconnected before the
// response.
const statusClientClosed = 499

var errPanic = errors.New("panic")

// clientClosed reports an error caused only by the client's disconnect. Work with its
// own deadline is not cancelled by that: its failures are server errors whether the
// client still waits or not.
func clientClosed(ec echo.Context, err error) bool {
	if err == nil || !errors.Is(ec.Request().Context().Err(), context.Canceled) {
		return false
	}
	var lost *lostError
	return errors.Is(err, context.Canceled) || errors.As(err, &lost)
}

// recoverPanic turns a panic into an error, so that one request cannot end the others.
func recoverPanic(next echo.HandlerFunc, ec echo.Context) (err error) {
	defer func() {
		cause := recover()
		if cause == http.ErrAbortHandler {
			panic(cause)
		}
		if cause != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, cause, debug.Stack())
		}
	}()
	return next(ec)
}

func (s *Server) logRequest(ec echo.Context, r *Request) {
	level := slog.LevelInfo
	if r.Status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	ctx := ec.Request().Context()
	if !s.options.Log.Enabled(ctx, level) || !s.options.LogsRequest(r.Status) {
		return
	}
	line := []slog.Attr{
		slog.String("request", requestID(ec)),
		slog.String("method", ec.Request().Method),
		slog.String("route", ec.Path()),
		slog.Int("status", r.Status),
		slog.Float64("ms", float64(r.Took.Microseconds())/1000),
	}
	if trace := traceOf(ec); trace != "" {
		line = append(line, slog.String("trace", trace))
	}
	if !r.Key.IsZero() {
		line = append(line,
			slog.String("app", r.App.Format(ids.Application)),
			slog.String("key", r.Key.Format(ids.APIKey)))
	}
	if r.Fault != "" {
		line = append(line, slog.String("error", string(r.Fault)))
	}
	s.options.Log.LogAttrs(ctx, level, "request", line...)
}
