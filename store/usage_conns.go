package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Connections of the hot path. Writing has one of its own, so that its caches in
// Postgres stay warm; reading has one for checks and one for what the next batch
// will need. These are opened at the start and kept. Each pool may open one more,
// for the time of a reconnect and for the probe of readiness.
const (
	keptWriteConns = 1
	keptReadConns  = 2
	spareConns     = 1

	// UsageConns is how many connections the hot path opens at most.
	UsageConns = keptWriteConns + keptReadConns + 2*spareConns
)

const (
	// A lost connection of the hot path is opened again within this time, also while
	// nothing is sent.
	hotHealthCheck = time.Second
	// A connection that was idle for longer is asked whether it still works.
	idleBeforePing = time.Second
	// After Postgres had no connection to give, the hot path borrows for this long
	// before it asks again.
	starvedPause = time.Second
)

// hotPool is a pool whose connections are prepared for the hot path and stay open.
// While Postgres has no connection to give, it borrows those of the store's pool:
// requests that read never starve the ones that charge.
type hotPool struct {
	*pgxpool.Pool
	store    *Store
	starved  atomic.Int64 // since when Postgres has none to give; zero for never
	borrowed *atomic.Int64
}

// wasIdle marks a connection that has to be asked whether it still works.
const wasIdle = "purser_was_idle"

func (s *Store) openHotPool(ctx context.Context, kept int, borrowed *atomic.Int64) (*hotPool, error) {
	config := s.pool.Config()
	config.MinConns, config.MaxConns = int32(kept), int32(kept+spareConns)
	config.MaxConnLifetime = 0 // no end
	config.HealthCheckPeriod = hotHealthCheck
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		s.clock.connected()
		return prepareAll(ctx, conn)
	}
	// acquire pings instead: a connection that the pool finds dead takes up a place
	// for 15 s when the server is silent.
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool {
		p.Conn.PgConn().CustomData()[wasIdle] = p.IdleDuration > idleBeforePing
		return false
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	// Plans are made once for a connection. Left to itself, Postgres finds a plan for
	// the three rows at hand cheaper than one for any number, and makes it each time.
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	hot := &hotPool{Pool: pool, store: s, borrowed: borrowed}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("store: the usage engine gets no database connection: %w", err)
	}
	conn.Release()
	return hot, nil
}

// acquire gives a connection that is ready for the hot path: its own, or a borrowed
// one.
func (h *hotPool) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if h.isStarved() {
		return h.borrow(ctx)
	}
	for {
		conn, err := h.Acquire(ctx)
		if sqlState(err) == tooManyConnections {
			h.starved.Store(int64(time.Since(processStart)))
			return h.borrow(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("store: no connection: %w", err)
		}
		if idle, _ := conn.Conn().PgConn().CustomData()[wasIdle].(bool); !idle || ping(ctx, conn) {
			return conn, nil
		}
		_ = conn.Hijack().Close(ctx) // it is closed already, or as good as
	}
}

// isStarved reports that Postgres had no connection to give a moment ago, and that
// none was opened since.
func (h *hotPool) isStarved() bool {
	since := h.starved.Load()
	return since != 0 && time.Since(processStart)-time.Duration(since) < starvedPause && h.Stat().IdleConns() == 0
}

// borrow takes a connection of the store's pool and prepares it, which costs nothing
// the second time.
func (h *hotPool) borrow(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := h.store.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: no connection to borrow: %w", err)
	}
	if err := prepareAll(ctx, conn.Conn()); err != nil {
		release(conn)
		return nil, err
	}
	h.borrowed.Add(1)
	return conn, nil
}

// ping reports whether a connection still works. One that does not is closed.
func ping(ctx context.Context, conn *pgxpool.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return conn.Ping(ctx) == nil
}
