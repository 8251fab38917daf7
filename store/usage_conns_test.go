package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"purser/store"
	"purser/store/embedded"
	"purser/store/internal/pg"
	"purser/store/storetest"
)

// smallServer is a Postgres with 20 connections, fewer than one node may open.
func smallServer(t *testing.T) (url string) {
	t.Helper()
	options := embedded.Options{Dir: storetest.DataDir(t)}
	server, err := embedded.Start(t.Context(), options)
	noError(t, err)
	conn := connect(t, server.URL("postgres"))
	exec(t, conn, `ALTER SYSTEM SET max_connections = 20`)
	noError(t, conn.Close(t.Context()))
	noError(t, server.Stop(context.Background()))
	server, err = embedded.Start(t.Context(), options)
	noError(t, err)
	t.Cleanup(func() { noError(t, server.Stop(context.Background())) })
	noError(t, storetest.Migrate(t.Context(), server.URL("postgres")))
	return server.URL("postgres")
}

// hogs are other programs' connections.
type hogs struct {
	url   string
	conns []*pgx.Conn
}

// takeAll connects until the server has no connection left.
func (h *hogs) takeAll(t *testing.T) {
	t.Helper()
	for {
		conn, err := pgx.Connect(t.Context(), h.url)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == "53300" {
			return
		}
		noError(t, err)
		h.conns = append(h.conns, conn)
	}
}

func (h *hogs) leave() {
	for _, conn := range h.conns {
		_ = conn.Close(context.Background())
	}
	h.conns = nil
}

func TestFewConnectionsDoNotStopCharging(t *testing.T) {
	t.Parallel()
	const events = 50
	url := smallServer(t)
	db, err := store.Open(t.Context(), url, store.Options{MinConns: 2})
	noError(t, err)
	t.Cleanup(db.Close)
	room, err := db.Connections(t.Context())
	noError(t, err)
	if shortage := room.Shortage(); room.Need != pg.DefaultConns+store.UsageConns || !strings.Contains(shortage, "max_connections 20") {
		t.Errorf("of %+v it says %q", room, shortage)
	}
	usage, err := db.OpenEngine(t.Context(), store.EngineOptions{Now: func() int64 { return moment }})
	noError(t, err)
	n := node{db: db, usage: usage, close: sync.OnceFunc(usage.Close)}
	t.Cleanup(n.close)
	s := shop{nodes: []node{n}}.stocked(t)
	s.credit(t, "ann", 1_000_000)
	usage.SetTimeouts(time.Minute, time.Minute)

	admin := connect(t, url)
	others := hogs{url: url}
	t.Cleanup(func() { others.leave() })
	reading, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	t.Cleanup(func() { stop(); readers.Wait() })
	for range 30 {
		readers.Go(func() {
			for reading.Err() == nil {
				// They wait for a connection of each other.
				if _, err := s.Wallet(reading, "ann"); err != nil && reading.Err() == nil {
					t.Errorf("a reader got %v", err)
					return
				}
			}
		})
	}
	soon(t, "the readers have connections", func() bool { return store.PoolOf(db).Stat().TotalConns() > 5 })
	others.takeAll(t)

	charge := func(when string) {
		t.Helper()
		for i := range events {
			d, err := usage.Track(s.message("ann", when+numbered(" event", i)))
			if answer(d, err) != "accepted" {
				t.Fatalf("%s an event is %s: %v", when, answer(d, err), err)
			}
		}
		soon(t, when+" the node is ready", func() bool { return usage.Ready(t.Context()) == nil })
	}
	charge("with no connection left")

	// The engine loses its connections, and other programs take their places. Which of
	// them gets one first is open, so it is repeated until the engine had to borrow.
	losses := 0
	soon(t, "an event is charged on a borrowed connection", func() bool {
		for _, pool := range []interface {
			AcquireAllIdle(context.Context) []*pgxpool.Conn
		}{store.UsageWritesOf(usage), store.UsageReadsOf(usage)} {
			for _, conn := range pool.AcquireAllIdle(t.Context()) {
				pid := conn.Conn().PgConn().PID()
				conn.Release()
				exec(t, admin, `SELECT pg_terminate_backend($1, 60000)`, pid)
			}
		}
		others.takeAll(t)
		losses++
		charge(numbered("after loss", losses))
		return usage.Stats().Borrowed > 0
	})

	others.leave()
	stop()
	readers.Wait()
	soon(t, "the engine has connections of its own again", func() bool {
		return store.UsageWritesOf(usage).Stat().TotalConns() > 0 && store.UsageReadsOf(usage).Stat().TotalConns() > 1
	})
	charge("once there are connections again")

	n.close()
	soon(t, "the sessions of the others have ended", func() bool {
		var sessions int
		noError(t, admin.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'`).Scan(&sessions))
		return sessions < 18
	})
	soundBooks(t, url, s.tenant)
}
