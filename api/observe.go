package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/ids"
)

// Keys of echo's request context.
const (
	idKey    = "id"
	callKey  = "call"
	faultKey = "fault"
)

const requestIDHeader = "X-Request-Id"

func requestID(ec echo.Context) string { return ec.Response().Header().Get(requestIDHeader) }

// requestIDOf is the request's id. The transaction of a usage event has the same id, so
// each can be found by the other.
func requestIDOf(ec echo.Context) ids.ID {
	id, _ := ec.Get(idKey).(ids.ID)
	return id
}

// setFault stores the refusal's code for the log line.
func setFault(ec echo.Context, code fault.Code) { ec.Set(faultKey, code) }

// instrument gives every request an id, recovers panics, records metrics and writes one
// log line. The line has the route and never the path, whose identities may be email
// addresses, and no headers or body.
func (s *Server) instrument(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		started := time.Now()
		id := ids.New()
		ec.Set(idKey, id)
		ec.Response().Header().Set(requestIDHeader, id.Format(ids.Request))
		err := s.recoverPanic(next, ec)
		if err != nil && !clientClosed(ec, err) {
			s.handleError(err, ec)
		}
		if clientClosed(ec, err) {
			if !ec.Response().Committed {
				ec.Response().WriteHeader(statusClientClosed)
			}
			ec.Response().Status = statusClientClosed
		}
		took := time.Since(started)
		// Send the response before recording it.
		_ = http.NewResponseController(ec.Response()).Flush()
		s.observe(ec.Request().Method, ec.Path(), ec.Response().Status, took)
		s.logRequest(ec, took)
		s.recordRequest(ec, took)
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
	return errors.Is(err, context.Canceled) && errors.Is(ec.Request().Context().Err(), context.Canceled)
}

// recoverPanic turns a panic into an error, so that one request cannot end the others.
func (s *Server) recoverPanic(next echo.HandlerFunc, ec echo.Context) (err error) {
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

func (s *Server) logRequest(ec echo.Context, took time.Duration) {
	level := slog.LevelInfo
	code := ec.Response().Status
	if code >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	ctx := ec.Request().Context()
	if !s.log.Enabled(ctx, level) || !s.logsRequest(code) {
		return
	}
	line := []slog.Attr{
		slog.String("request", requestID(ec)),
		slog.String("method", ec.Request().Method),
		slog.String("route", ec.Path()),
		slog.Int("status", code),
		slog.Float64("ms", float64(took.Microseconds())/1000),
	}
	if trace := traceID(ec.Request().Header); trace != "" {
		line = append(line, slog.String("trace", trace))
	}
	if c, known := ec.Get(callKey).(*call); known && !c.key.ID.IsZero() {
		line = append(line,
			slog.String("app", c.scope.AppID.Format(ids.Application)),
			slog.String("key", c.key.ID.Format(ids.APIKey)))
	}
	if refused, known := ec.Get(faultKey).(fault.Code); known {
		line = append(line, slog.String("error", string(refused)))
	}
	s.log.LogAttrs(ctx, level, "request", line...)
}
