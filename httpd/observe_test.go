package httpd_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/httpd"
)

// levelLog keeps level and text of each line.
type levelLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *levelLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *levelLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *levelLog) WithGroup(string) slog.Handler            { return l }

func (l *levelLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "status" {
			line += " " + a.Value.String()
		}
		return true
	})
	l.lines = append(l.lines, line)
	return nil
}

func (l *levelLog) read() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func TestAClientThatHangsUpIsNoError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(echo.Context) error // after the client disconnected
		want   string
	}{
		"a cancelled statement": {
			func(c echo.Context) error { return fmt.Errorf("store: %w", c.Request().Context().Err()) },
			"INFO request 499"},
		"a failure of ours stays one": {
			func(echo.Context) error { return errors.New("conn closed") },
			"ERROR request failed, ERROR request 500"},
		"a handler that answers 500 by itself": {
			func(c echo.Context) error { return c.String(http.StatusInternalServerError, "no") },
			"ERROR request 500"},
		"a refusal stays one": {
			func(echo.Context) error { return fault.New(fault.PathNotFound) },
			"INFO request 404"},
		"a success stays one": {
			func(c echo.Context) error { return c.String(http.StatusOK, "yes") },
			"INFO request 200"},
		"a panic stays an error": {
			func(echo.Context) error { panic("broken") },
			"ERROR request failed, ERROR request 500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, observed := &levelLog{}, make(chan int, 1)
			shell := httpd.New(httpd.Options{
				Log:     slog.New(log),
				Observe: func(_, _ string, status int, _ time.Duration) { observed <- status },
			})
			app, entered := shell.Echo(), make(chan struct{})
			app.GET("/v1/slow", func(ec echo.Context) error {
				close(entered)
				<-ec.Request().Context().Done()
				return c.answer(ec)
			})
			listening := httptest.NewServer(app)
			ctx, hangUp := context.WithCancel(t.Context())
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, listening.URL+"/v1/slow", nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				<-entered
				hangUp()
			}()
			if _, err := listening.Client().Do(request); !errors.Is(err, context.Canceled) {
				t.Errorf("the client gets %v", err)
			}
			status := <-observed
			listening.Close() // waits for the handler, and so for its line
			if got := strings.Join(log.read(), ", "); got != c.want || !strings.HasSuffix(got, fmt.Sprint(status)) {
				t.Errorf("logged %q, observed %d, want %q", got, status, c.want)
			}
		})
	}
}

func TestRequestsWithoutALineAreStillObserved(t *testing.T) {
	t.Parallel()
	log, observed := &levelLog{}, make(chan int, 4)
	shell := httpd.New(httpd.Options{
		Log:         slog.New(log),
		Observe:     func(_, _ string, status int, _ time.Duration) { observed <- status },
		LogsRequest: func(status int) bool { return status != http.StatusOK },
	})
	listening := httptest.NewServer(shell.Echo())
	for _, path := range []string{"/healthz", "/v1/nowhere"} {
		response, err := listening.Client().Get(listening.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	listening.Close()
	got := []int{<-observed, <-observed} // each after its reply, so in any order
	slices.Sort(got)
	if !slices.Equal(got, []int{200, 404}) || !slices.Equal(log.read(), []string{"INFO request 404"}) {
		t.Errorf("observed %v, logged %q", got, log.read())
	}
}
