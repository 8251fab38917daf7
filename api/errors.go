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

// handleError renders all errors.
func (s *Server) handleError(err error, ec echo.Context) {
	if ec.Response().Committed {
		return
	}
	f := s.publicFault(err, ec)
	code := f.Kind().Status()
	header := ec.Response().Header()
	if ec.Request().ContentLength != 0 && (f.Kind() == fault.Unauthorized || isUnauthenticated(ec, err)) {
		header[echo.HeaderConnection] = closeConnection // net/http would otherwise wait for the body
	}
	switch f.Kind() {
	case fault.Limited:
		header.Set("Retry-After", strconv.Itoa(retryAfter(err)))
	case fault.Unauthorized:
		header.Set("WWW-Authenticate", `Bearer realm="purser"`)
	case fault.NotAllowed:
		header.Set("Allow", strings.TrimPrefix(header.Get("Allow"), "OPTIONS, "))
	}
	if !isAPIPath(ec.Request().URL.Path) && s.errorPage != nil {
		err = s.errorPage(ec, code, requestID(ec))
	} else {
		err = writeJSON(ec, code, errorReply{f.Code, f.Message})
	}
	if err != nil && ec.Request().Context().Err() == nil {
		s.log.Warn("reply failed", "request", requestID(ec), "cause", err)
	}
}

// isUnauthenticated reports a refusal before the client was known: no key was found, or
// the path has no route.
func isUnauthenticated(ec echo.Context, err error) bool {
	if errors.Is(err, echo.ErrNotFound) || errors.Is(err, echo.ErrMethodNotAllowed) {
		return true
	}
	c, routed := ec.Get(callKey).(*call)
	return routed && c.keyID.IsZero()
}

// publicFault converts an error into one that may be shown. An error that is not a fault
// is internal: its cause is logged and not sent.
func (s *Server) publicFault(err error, ec echo.Context) *fault.Fault {
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
	setFault(ec, f.Code)
	return f
}

// isAPIPath also matches slightly misspelt API paths: their clients expect JSON too.
func isAPIPath(path string) bool { return apiPath.MatchString(path) }

var apiPath = regexp.MustCompile(`^/+[vV][0-9]+(/|$)`)

// refuseMethods answers 405. Echo would answer OPTIONS with success, though the API is
// not for browsers, and would match a longer path to a route whose last parameter
// accepts slashes.
func refuseMethods(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		allowed, known := ec.Get(echo.ContextKeyHeaderAllow).(string)
		path := ec.Request().URL.RawPath
		if known && isAPIPath(path) && (strings.Count(path, "/") != strings.Count(ec.Path(), "/") || strings.Contains(path, "//")) {
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
