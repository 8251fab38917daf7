package api

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"purser/fault"
)

type errorReply struct {
	Error   fault.Code `json:"error"`
	Message string     `json:"message"`
}

// handleError is the one renderer of errors.
func (s *Server) handleError(err error, ec echo.Context) {
	if ec.Response().Committed {
		return
	}
	f := s.explain(err, ec)
	code := f.Kind().Status()
	header := ec.Response().Header()
	if ec.Request().ContentLength != 0 && (f.Kind() == fault.Unauthorized || fromStranger(ec, err)) {
		header[echo.HeaderConnection] = closeConnection // net/http would wait for the body
	}
	switch f.Kind() {
	case fault.Limited:
		header.Set("Retry-After", strconv.Itoa(retryAfter(err)))
	case fault.Unauthorized:
		header.Set("WWW-Authenticate", `Bearer realm="purser"`)
	case fault.NotAllowed:
		header.Set("Allow", strings.TrimPrefix(header.Get("Allow"), "OPTIONS, "))
	}
	if !forPrograms(ec.Request().URL.Path) && s.errorPage != nil {
		err = s.errorPage(ec, code, requestID(ec))
	} else {
		err = writeJSON(ec, code, errorReply{f.Code, f.Message})
	}
	if err != nil && ec.Request().Context().Err() == nil {
		s.log.Warn("reply failed", "request", requestID(ec), "cause", err)
	}
}

// fromStranger reports a refusal before it was known who calls: no key was found, or
// nothing is served at the path.
func fromStranger(ec echo.Context, err error) bool {
	if errors.Is(err, echo.ErrNotFound) || errors.Is(err, echo.ErrMethodNotAllowed) {
		return true
	}
	c, routed := ec.Get(callKey).(*call)
	return routed && c.keyID.IsZero()
}

// explain turns any error into what may be said of it. What is not a fault is
// ours: its cause goes to the log and stays there.
func (s *Server) explain(err error, ec echo.Context) *fault.Fault {
	var f *fault.Fault
	switch {
	case errors.As(err, &f):
	case errors.Is(err, echo.ErrNotFound):
		f = fault.New(fault.PathNotFound)
	case errors.Is(err, echo.ErrMethodNotAllowed):
		f = fault.New(fault.MethodNotAllowed)
	default:
		f = fault.New(fault.InternalError)
		s.log.Error("request failed", "request", requestID(ec), "cause", err)
	}
	note(ec, f.Code)
	return f
}

// forPrograms knows the interface also where a caller has written its address a
// little wrong: such a caller reads JSON too.
func forPrograms(path string) bool { return programPath.MatchString(path) }

var programPath = regexp.MustCompile(`^/+[vV][0-9]+(/|$)`)

// refuseMethods answers a method that a path does not take. Echo would answer
// OPTIONS with a success, though the interface is not for browsers; and it takes
// a longer path for a known one, because a parameter at the end swallows the rest.
func refuseMethods(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		allowed, known := ec.Get(echo.ContextKeyHeaderAllow).(string)
		path := ec.Request().URL.RawPath
		if known && forPrograms(path) && (strings.Count(path, "/") != strings.Count(ec.Path(), "/") || strings.Contains(path, "//")) {
			return echo.ErrNotFound
		}
		if known && ec.Request().Method == http.MethodOptions {
			ec.Response().Header().Set("Allow", allowed)
			return echo.ErrMethodNotAllowed
		}
		return next(ec)
	}
}

func writeJSON(ec echo.Context, code int, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ec.Response().Header().Set("Cache-Control", "no-store")
	ec.Response().Header().Set(echo.HeaderContentLength, strconv.Itoa(len(text)))
	return ec.Blob(code, echo.MIMEApplicationJSON, text)
}
