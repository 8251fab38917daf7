package httpd_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/httpd"
	"purser/ids"
)

// exchange serves one request with a handler at its path.
func exchange(o httpd.Options, method, path string, handle echo.HandlerFunc) *httptest.ResponseRecorder {
	app := httpd.New(o).Echo()
	app.Any(path, handle)
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("{}")))
	return w
}

func TestErrorsAreJSONUnderV1AndPagesElsewhere(t *testing.T) {
	t.Parallel()
	page := func(c echo.Context, status int, requestID string) error {
		return c.HTML(status, "<p>"+requestID)
	}
	for name, c := range map[string]struct {
		path string
		err  error
		want string // status, body and one header
	}{
		"a fault of the API":     {"/v1/x", fault.New(fault.CreditNotFound), `404 {"error":"credit_not_found"`},
		"an internal error":      {"/v1/x", errors.New("the password is 1234"), `500 {"error":"internal_error"`},
		"a panic":                {"/v1/x", nil, `500 {"error":"internal_error"`},
		"a misspelt API path":    {"/V2/x", fault.New(fault.PathNotFound), `404 {"error":"not_found"`},
		"a page that is missing": {"/o/x", fault.New(fault.PathNotFound), `404 <p>req_`},
		"a page that fails":      {"/v10x", errors.New("the password is 1234"), `500 <p>req_`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			w := exchange(httpd.Options{ErrorPage: page, Log: slog.New(slog.NewTextHandler(&log, nil))}, "POST", c.path, func(echo.Context) error {
				if c.err == nil {
					panic("the password is 1234")
				}
				return c.err
			})
			if got := w.Result().Status[:3] + " " + w.Body.String(); !strings.HasPrefix(got, c.want) || strings.Contains(got, "1234") {
				t.Errorf("it answers %q, want %q", got, c.want)
			}
			if logged := strings.Contains(log.String(), "1234"); logged != (w.Code == 500) {
				t.Errorf("the cause is logged: %t\n%s", logged, log.String())
			}
			if !strings.HasPrefix(w.Header().Get("X-Request-Id"), "req_") {
				t.Error("there is no request id")
			}
		})
	}
}

func TestRefusalsCarryTheHeadersOfTheirKind(t *testing.T) {
	t.Parallel()
	wait := &httpd.WaitError{Fault: fault.New(fault.RateLimited), Wait: 1500 * time.Millisecond}
	for name, c := range map[string]struct {
		err           error
		anonymous     bool
		header, value string
	}{
		"the wait is rounded up":               {wait, false, "Retry-After", "2"},
		"a wait is at least a second":          {fault.New(fault.Overloaded), false, "Retry-After", "1"},
		"a missing key names the scheme":       {fault.New(fault.MissingAPIKey), false, "WWW-Authenticate", `Bearer realm="purser"`},
		"a missing key closes the connection":  {fault.New(fault.MissingAPIKey), false, "Connection", "close"},
		"an unknown sender is not waited for":  {fault.New(fault.InvalidRequest), true, "Connection", "close"},
		"a known sender keeps its connection":  {fault.New(fault.InvalidRequest), false, "Connection", ""},
		"a refusal is not to be cached":        {fault.New(fault.InvalidRequest), false, "Cache-Control", "no-store"},
		"a refusal has the security headers":   {fault.New(fault.InvalidRequest), false, "X-Content-Type-Options", "nosniff"},
		"a refusal without TLS promises none":  {fault.New(fault.InvalidRequest), false, "Strict-Transport-Security", ""},
		"a refusal shows nothing to a browser": {fault.New(fault.InvalidRequest), false, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := exchange(httpd.Options{}, "POST", "/v1/x", func(ec echo.Context) error {
				httpd.RequestOf(ec).Anonymous = c.anonymous
				return c.err
			})
			if got := w.Header().Get(c.header); got != c.value {
				t.Errorf("%s is %q, want %q", c.header, got, c.value)
			}
		})
	}
}

func TestTheRecordIsCompleteWhenTheRequestIsDone(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	app, key := ids.New(), ids.New()
	var done *httpd.Request
	w := exchange(httpd.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, http.MethodGet, "/v1/x", func(ec echo.Context) error {
		r := httpd.RequestOf(ec)
		r.App, r.Key, r.Done = app, key, func() { done = r }
		return fault.New(fault.CreditNotFound)
	})
	if done == nil || done.Status != 404 || done.Fault != fault.CreditNotFound || done.Took <= 0 || done.ID.Format(ids.Request) != w.Header().Get("X-Request-Id") {
		t.Fatalf("the record is %+v", done)
	}
	for _, want := range []string{"app=" + app.Format(ids.Application), "key=" + key.Format(ids.APIKey), "error=credit_not_found", "status=404", "route=/v1/x"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the line lacks %s: %s", want, log.String())
		}
	}
}

func TestReadinessFollowsTheDatabaseAndTheDrain(t *testing.T) {
	t.Parallel()
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	var cause error
	shell := httpd.New(httpd.Options{Ready: func(ctx context.Context) error {
		if _, limited := ctx.Deadline(); !limited || ctx.Err() != nil {
			t.Errorf("the check has a deadline: %t, and ends with the request: %v", limited, ctx.Err())
		}
		return cause
	}})
	app := shell.Echo()
	expect := func(path, want, connection string) {
		t.Helper()
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodGet, path, nil)) // a cancelled check could cost its connection
		if got := w.Result().Status[:3] + " " + w.Body.String(); got != want || w.Header().Get("Connection") != connection {
			t.Errorf("%s answers %q and Connection: %s, want %q and %s", path, got, w.Header().Get("Connection"), want, connection)
		}
	}
	expect("/readyz", "200 ready\n", "")
	cause = errors.New("the database is read-only")
	expect("/readyz", "503 not ready: the database is read-only\n", "")
	expect("/healthz", "200 ok\n", "")
	shell.StartDrain()
	expect("/readyz", "503 not ready: the server is stopping\n", "close")
	expect("/healthz", "200 ok\n", "close")
}
