package httpd

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"purser/fault"
)

// errorBody is the body of every error under /v1.
type errorBody struct {
	Error   fault.Code `json:"error"`
	Message string     `json:"message"`
	Index   *int       `json:"index,omitzero"`
}

// ItemError is a refusal that one item of the request caused.
type ItemError struct {
	Cause error
	Index int
}

func (e *ItemError) Error() string { return e.Cause.Error() }

func (e *ItemError) Unwrap() error { return e.Cause }

func itemOf(err error) *int {
	if item, ok := errors.AsType[*ItemError](err); ok {
		return &item.Index
	}
	return nil
}

// handleError renders all errors.
func (s *Server) handleError(err error, ec echo.Context) {
	if ec.Response().Committed {
		if cut, ok := errors.AsType[*cutError](err); ok {
			s.options.Log.Warn("response cut off", "request", requestID(ec), "cause", cut.cause)
			ec.Response().Status = http.StatusInternalServerError // for the log
		}
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
		header.Set("Retry-After", strconv.Itoa(RetryAfter(err)))
	case fault.Unauthorized:
		header.Set("WWW-Authenticate", `Bearer realm="purser"`)
	case fault.NotAllowed:
		header.Set("Allow", strings.TrimPrefix(header.Get("Allow"), "OPTIONS, "))
	}
	if !isAPIPath(ec.Request().URL.Path) && s.options.ErrorPage != nil {
		err = s.options.ErrorPage(ec, code, requestID(ec))
	} else {
		err = WriteJSON(ec, code, errorBody{f.Code, f.Message, itemOf(err)})
	}
	if err != nil && ec.Request().Context().Err() == nil {
		s.options.Log.Warn("reply failed", "request", requestID(ec), "cause", err)
	}
}

// isUnauthenticated reports a refusal before the client was known: no key was found, or
// the path has no route.
func isUnauthenticated(ec echo.Context, err error) bool {
	if errors.Is(err, echo.ErrNotFound) || errors.Is(err, echo.ErrMethodNotAllowed) {
		return true
	}
	return RequestOf(ec).Anonymous
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
		s.options.Log.Error("request failed", "request", requestID(ec), "cause", err)
	}
	r := RequestOf(ec)
	r.Fault, r.Message = f.Code, f.Message
	return f
}

// isAPIPath also matches slightly misspelt API paths: their clients expect JSON too.
func isAPIPath(path string) bool {
	version := strings.TrimLeft(path, "/")
	if len(version) == len(path) || version == "" || version[0]|0x20 != 'v' {
		return false
	}
	digits := strings.TrimLeft(version[1:], "0123456789")
	return len(digits) < len(version)-1 && (digits == "" || digits[0] == '/')
}

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
		if known {
			allowed = allMethods(ec, allowed)
			ec.Set(echo.ContextKeyHeaderAllow, allowed)
		}
		if known && ec.Request().Method == http.MethodOptions {
			ec.Response().Header().Set("Allow", allowed)
			return echo.ErrMethodNotAllowed
		}
		return next(ec)
	}
}

// allMethods adds the methods that a route with a parameter takes to those of the route that
// the path is of: GET /v1/events/batch is of an event.
func allMethods(ec echo.Context, allowed string) string {
	methods := strings.Split(allowed, ", ")
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut} {
		other := ec.Echo().NewContext(ec.Request(), nil)
		ec.Echo().Router().Find(method, echo.GetPath(ec.Request()), other)
		if _, refused := other.Get(echo.ContextKeyHeaderAllow).(string); !refused && !slices.Contains(methods, method) {
			methods = append(methods, method)
		}
	}
	slices.Sort(methods[1:]) // OPTIONS is the first
	return strings.Join(methods, ", ")
}

// JSONAppender is a body of the hot path that appends itself as JSON, without reflection.
type JSONAppender interface {
	AppendJSON(text []byte) []byte
}

var (
	noStore  = []string{"no-store"}
	jsonType = []string{echo.MIMEApplicationJSON}
	replies  = sync.Pool{New: func() any { return new([]byte) }}
)

// maxPooledReply is the largest buffer that is kept for the next reply: a batch of a
// thousand events needs several times as much, and few servers see one.
const maxPooledReply = 64 << 10

// WriteJSON sends a body that no cache may keep.
func WriteJSON(ec echo.Context, code int, body any) error {
	if fast, hot := body.(JSONAppender); hot {
		text := replies.Get().(*[]byte)
		*text = fast.AppendJSON((*text)[:0])
		err := writeJSON(ec, code, *text)
		if cap(*text) <= maxPooledReply {
			replies.Put(text)
		}
		return err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return writeJSON(ec, code, text)
}

// WriteCountedJSON is WriteJSON, refused when the owner has too much that its clients don't
// read. It counts bytes.
func WriteCountedJSON[K comparable](ec echo.Context, code int, body any, unsent *InFlight[K], owner K) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	sent, err := unsent.EnterReply(owner, int64(len(text)))
	if err != nil {
		return err
	}
	defer sent()
	return writeJSON(ec, code, text)
}

func writeJSON(ec echo.Context, code int, text []byte) error {
	response := ec.Response()
	header := response.Header()
	header[echo.HeaderCacheControl], header[echo.HeaderContentType] = noStore, jsonType
	header[echo.HeaderContentLength] = []string{strconv.Itoa(len(text))}
	response.WriteHeader(code)
	_, err := response.Write(text)
	return err
}

// WaitError is a refusal with a Retry-After.
type WaitError struct {
	*fault.Fault
	Wait time.Duration
}

func (w *WaitError) Unwrap() error { return w.Fault }

// RetryAfter is the Retry-After of a refusal in whole seconds, at least one.
func RetryAfter(err error) int {
	if w, ok := errors.AsType[*WaitError](err); ok {
		return max(1, int(math.Ceil(w.Wait.Seconds())))
	}
	return 1
}
