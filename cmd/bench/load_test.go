package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// loadOn is a load on a server that answers every event with the handler.
func loadOn(t *testing.T, connections int, handle http.HandlerFunc) load {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	to := &node{host: server.Listener.Addr().String()}
	return load{tenant: &tenant{secret: "secret"}, nodes: []*node{to}, connections: connections, events: 1, wallets: evenly(10)}
}

// unbounded is for a load that ends before its window does.
func unbounded() window { return windowOf(time.Hour) }

func windowOf(length time.Duration) window {
	now := time.Now()
	return window{from: now.Add(length / 15), to: now.Add(length)}
}

// sized runs a load in a short window, and in longer ones until as much was asked of
// the server as the test needs: how long that takes depends on the machine.
func sized(t *testing.T, run func(window) error, enough func() bool) error {
	t.Helper()
	for length := 150 * time.Millisecond; ; length *= 2 {
		if err := run(windowOf(length)); enough() {
			return err
		}
		if length > time.Minute {
			t.Fatal("the server was hardly asked anything")
		}
	}
}

func accept(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"status":"accepted"}`)
}

func TestLoad(t *testing.T) {
	t.Parallel()
	t.Run("counts every accepted event, and probes at both ends of the window", func(t *testing.T) {
		t.Parallel()
		var asked atomic.Int64
		l := loadOn(t, 1, func(w http.ResponseWriter, r *http.Request) { asked.Add(1); accept(w, r) })
		// Often, for the end of the last request and the end of the window race.
		for range 10 {
			probes := 0
			var out *outcome
			err := sized(t, func(w window) (err error) {
				asked.Store(0)
				probes = 0
				out, err = l.run(t.Context(), w, func() { probes++ })
				return err
			}, func() bool { return out != nil && out.latencies.total > 0 })
			if err != nil {
				t.Fatal(err)
			}
			if probes != 2 || int64(out.accepted) != asked.Load() || out.latencies.total >= uint64(out.accepted) {
				t.Fatalf("%d probes; of %d requests %d were accepted, %d inside the window", probes, asked.Load(), out.accepted, out.latencies.total)
			}
		}
	})
	t.Run("fails on one wrong answer, and shows it", func(t *testing.T) {
		t.Parallel()
		var asked atomic.Int64
		l := loadOn(t, 4, func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 3 {
				http.Error(w, "no credit left", http.StatusConflict)
				return
			}
			accept(w, r)
		})
		err := sized(t, func(w window) error {
			asked.Store(0)
			_, err := l.run(t.Context(), w, func() {})
			return err
		}, func() bool { return asked.Load() >= 3 })
		if err == nil || !strings.Contains(err.Error(), "1 answers were wrong, the first: 409 no credit left") {
			t.Errorf("it says %v", err)
		}
	})
	t.Run("fails when the server hangs up", func(t *testing.T) {
		t.Parallel()
		_, err := loadOn(t, 4, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }).run(t.Context(), unbounded(), func() {})
		if err == nil {
			t.Error("it does not")
		}
	})
	t.Run("ends with its context while answers are due", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := loadOn(t, 4, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // before that, a server does not see its client leave
			cancel()
			<-r.Context().Done()
		}).run(ctx, unbounded(), func() {})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}
