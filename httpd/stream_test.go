package httpd_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/httpd"
)

func TestStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		produce func(begin func() io.Writer) error
		status  int
		body    string
		cut     bool
		line    string
	}{
		"sends parts": {func(begin func() io.Writer) error {
			w := begin()
			_, first := w.Write([]byte(`[1,`))
			_, second := w.Write([]byte(`2]`))
			return errors.Join(first, second)
		}, http.StatusOK, `[1,2]`, false, "INFO request 200"},
		"refuses before the first": {func(func() io.Writer) error { return fault.New(fault.WalletNotFound) },
			http.StatusNotFound, "", false, "INFO request 404"},
		"closes the connection when it fails in between": {func(begin func() io.Writer) error {
			if _, err := begin().Write([]byte(`[1,`)); err != nil {
				return err
			}
			return errors.New("the database is gone")
		}, http.StatusOK, `[1,`, true, "ERROR request 500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &levelLog{}
			e := httpd.New(httpd.Options{Log: slog.New(log)}).Echo()
			e.GET("/v1/stream", func(ec echo.Context) error { return httpd.Stream(ec, c.produce) })
			server := httptest.NewServer(e)
			defer server.Close()
			got, err := http.Get(server.URL + "/v1/stream")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(got.Body)
			got.Body.Close()
			if got.StatusCode != c.status || c.body != "" && string(body) != c.body || (err != nil) != c.cut {
				t.Errorf("status %d, %q, %v", got.StatusCode, body, err)
			}
			server.Close() // the line is written
			if !slices.Contains(log.read(), c.line) {
				t.Errorf("the log has %q, not %q", log.read(), c.line)
			}
		})
	}
}

// TestAReaderThatHangsUpIsNoError closes the connection after the first part.
func TestAReaderThatHangsUpIsNoError(t *testing.T) {
	t.Parallel()
	broken := errors.New("the database is gone")
	const ours = "WARN response cut off, ERROR request 500"
	for name, c := range map[string]struct {
		closed bool  // by the server, and not by the client
		cause  error // of the producer, after the hang-up
		want   string
	}{
		"the next part fails":             {false, nil, "INFO request 499"},
		"a failure of ours stays one":     {false, broken, ours},
		"and a connection that we closed": {true, nil, ours},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &levelLog{}
			e := httpd.New(httpd.Options{Log: slog.New(log)}).Echo()
			e.GET("/v1/stream", func(ec echo.Context) error {
				return httpd.Stream(ec, func(begin func() io.Writer) error {
					w, part := begin(), make([]byte, 64<<10)
					for {
						if _, err := w.Write(part); err != nil {
							return err
						}
						if c.cause != nil {
							<-ec.Request().Context().Done()
							return c.cause
						}
					}
				})
			})
			server := httptest.NewServer(e)
			defer server.Close()
			got, err := http.Get(server.URL + "/v1/stream")
			if err != nil {
				t.Fatal(err)
			}
			if c.closed {
				server.CloseClientConnections()
			}
			got.Body.Close()
			server.Close() // the line is written
			if lines := strings.Join(log.read(), ", "); lines != c.want {
				t.Errorf("the log has %q, want %q", lines, c.want)
			}
		})
	}
}
