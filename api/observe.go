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

// What travels with a request in echo's context.
const (
	idKey    = "id"
	callKey  = "call"
	faultKey = "fault"
)

const requestIDHeader = "X-Request-Id"

func requestID(ec echo.Context) string { return ec.Response().Header().Get(requestIDHeader) }

// requestOf is the request's id as a number. A use's transaction takes it over, so
// that one leads to the other.
func requestOf(ec echo.Context) ids.ID {
	id, _ := ec.Get(idKey).(ids.ID)
	return id
}

// note remembers for the log how the request was refused.
func note(ec echo.Context, code fault.Code) { ec.Set(faultKey, code) }

// observe gives every request an id, turns a panic into an error, and writes one
// line about it. The line has the route and never the path, whose identities may
// be people's addresses, and nothing of the headers or the body.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		started := time.Now()
		id := ids.New()
		ec.Set(idKey, id)
		ec.Response().Header().Set(requestIDHeader, id.Format(ids.Request))
		err := s.sheltered(next, ec)
		if err != nil && !hungUp(ec, err) {
			s.handleError(err, ec)
		}
		if hungUp(ec, err) {
			if !ec.Response().Committed {
				ec.Response().WriteHeader(statusClientClosed)
			}
			ec.Response().Status = statusClientClosed
		}
		took := time.Since(started)
		// The caller has the answer before the books about it are kept.
		_ = http.NewResponseController(ec.Response()).Flush()
		s.tell(ec.Request().Method, ec.Path(), ec.Response().Status, took)
		s.logRequest(ec, took)
		s.remember(ec, took)
		return nil
	}
}

// statusClientClosed is the status, known from nginx, of a request whose client
// closed the connection before the answer.
const statusClientClosed = 499

var errPanic = errors.New("panic")

// hungUp reports an error that only says that the client has closed the connection.
// Work with a deadline of its own is not cancelled by that: when it fails, the cause
// is ours, whether the client still waits or not.
func hungUp(ec echo.Context, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(ec.Request().Context().Err(), context.Canceled)
}

// sheltered turns a panic into an error, so that one request cannot end the others.
func (s *Server) sheltered(next echo.HandlerFunc, ec echo.Context) (err error) {
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
