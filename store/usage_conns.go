package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"purser/store/internal/ledger"
	"purser/store/internal/limits"
	"purser/store/internal/pg"
)

// Connections of the hot path. There is one for each lane to write on, so that the caches
// of its session stay warm; reads have one for checks and one for prefetching, and may
// open one more for each lane. What plain Postgres needs is opened at the start and kept.
// Writes may open one more, during a reconnect and for the readiness probe. The bulk lanes
// open theirs when they are used.
const (
	keptReadConns = 2
	spareConns    = 1

	// UsageConns is the maximum number of connections of the hot path on plain Postgres.
	UsageConns = 2*maxSingleLanes + keptReadConns + spareConns + bulkLanes
)

// usageConns is the maximum number of connections of the hot path.
func (s *Store) usageConns(places int) int {
	lanes := maxSingleLanes * places
	return lanes + spareConns + s.readConns(lanes, places) + s.bulkLaneCount(places)
}

// readConns is the maximum number of connections for reads. On Citus it is one for the
// checks and one for the prefetching of each lane: reads of a worker that is silent leave
// those of the others alone.
func (s *Store) readConns(lanes, places int) int {
	if s.db.Distributed {
		return spareConns + 2*lanes + places
	}
	return keptReadConns + lanes
}

const (
	// A lost connection is reopened within this time, even without traffic.
	hotHealthCheck = time.Second
	// A connection that was idle for longer is pinged before it is used.
	idleBeforePing = time.Second
	// After a "too many connections" error the hot path borrows for this long before it
	// connects again.
	starvedPause = time.Second
)

// hotPool is a pool whose connections have the hot path's statements prepared and stay
// open. While Postgres refuses new connections it borrows from the store's pool: reads
// must not starve the requests that charge.
type hotPool struct {
	*pgxpool.Pool
	engine  *Engine
	starved atomic.Int64 // when Postgres last refused a connection; zero for never
}

const (
	wasIdle    = "purser_was_idle" // marks a connection that has to be pinged first
	isPrepared = "purser_prepared" // marks one that is ready for the hot path
)

func (e *Engine) openHotPool(ctx context.Context, kept, more int) (*hotPool, error) {
	s := e.store
	config := s.db.Pool.Config()
	config.MinConns, config.MaxConns = int32(kept), int32(kept+more)
	config.MaxConnLifetime = 0 // no limit
	config.HealthCheckPeriod = hotHealthCheck
	connected := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, limits.Current().Prepare)
		defer cancel()
		if err := connected(ctx, conn); err != nil {
			return err
		}
		return e.prepareConn(ctx, conn)
	}
	// acquire pings instead: when the server is silent, a connection that the pool
	// finds dead occupies a slot for 15 s.
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool {
		p.Conn.PgConn().CustomData()[wasIdle] = p.IdleDuration > idleBeforePing
		return false
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	// Plans are made once per connection. By default Postgres prefers a custom plan for
	// the few rows at hand and plans each time. Citus needs the application's id to plan.
	if !s.db.Distributed {
		config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	hot := &hotPool{Pool: pool, engine: e}
	if kept == 0 {
		return hot, nil
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("store: the usage engine gets no database connection: %w", err)
	}
	conn.Release()
	return hot, nil
}

// acquire returns a connection prepared for the hot path, its own or a borrowed one.
func (h *hotPool) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if h.isStarved() {
		return h.borrow(ctx)
	}
	for {
		conn, err := h.Acquire(ctx)
		if pg.SQLState(err) == pg.TooManyConnections {
			h.starved.Store(int64(time.Since(pg.ProcessStart)))
			return h.borrow(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("store: no connection: %w", err)
		}
		if idle, _ := conn.Conn().PgConn().CustomData()[wasIdle].(bool); !idle || ping(ctx, conn) {
			return conn, nil
		}
		_ = conn.Hijack().Close(ctx) // it is dead: the error says nothing new
	}
}

// isStarved reports that Postgres refused a connection within starvedPause and none is
// idle since.
func (h *hotPool) isStarved() bool {
	since := h.starved.Load()
	return since != 0 && time.Since(pg.ProcessStart)-time.Duration(since) < starvedPause && h.Stat().IdleConns() == 0
}

// borrow takes a connection of the store's pool and prepares it.
func (h *hotPool) borrow(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := h.engine.store.db.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: no connection to borrow: %w", err)
	}
	if err := h.engine.prepareConn(ctx, conn.Conn()); err != nil {
		pg.Release(conn)
		return nil, err
	}
	h.engine.borrowed.Add(1)
	return conn, nil
}

// ping reports whether a connection still works. One that does not is closed.
func ping(ctx context.Context, conn *pgxpool.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, pg.PingTimeout)
	defer cancel()
	return conn.Ping(ctx) == nil
}

var txCommands = []pg.TxCommand{pg.BeginTx, pg.BeginReadOnly, pg.BeginSnapshot, pg.CommitTx}

// hotStatements are prepared on every connection of the hot path.
var hotStatements = func() []pg.Statement {
	list := []pg.Statement{
		ledger.EnsureWallets, ledger.LockWallets, readWallets, selectVersions, pg.SelectEpoch, readFeatures, readKeys,
		ledger.ReadEvents, ledger.ReadPacked, ledger.SelectPackedBefore, ledger.ReadCounters, ledger.ReadBilled, chargeWallet, chargeBalance, chargeWallets, chargeBalances,
		countUse, countUses, insertBilledPeriod, insertBilled, insertProperties, lockDeduplication,
		ledger.ListAlertRules, readAlertMarks, markAlerts, pg.InsertNotifications, pg.SelectLaterNotification,
	}
	for _, insert := range eventInserts {
		list = append(list, insert.one, insert.many)
	}
	return list
}()

// prepareConn readies a connection for the hot path, which is free the second time: it notes
// the history of the database, which may lack wallets that are cached, and prepares the statements.
func (e *Engine) prepareConn(ctx context.Context, conn *pgx.Conn) error {
	notes := conn.PgConn().CustomData()
	if notes[isPrepared] != nil {
		return nil
	}
	history, err := pg.History(ctx, conn)
	if err != nil {
		return err
	}
	e.history.Store(history)
	for _, f := range txCommands {
		if _, err := conn.Prepare(ctx, f.Name, f.SQL); err != nil {
			return fmt.Errorf("store: preparing %s: %w", f.SQL, err)
		}
	}
	for _, s := range hotStatements {
		if _, err := conn.Prepare(ctx, s.PreparedName(), s.SQL); err != nil {
			return fmt.Errorf("store: preparing %s: %w", s.Name, err)
		}
	}
	notes[isPrepared] = true
	return nil
}

// PoolStats are the figures of one connection pool of this node.
type PoolStats struct {
	Name string // "general", "events", "checks" or "bulk"
	// InUse, Idle and Connecting are connections now; Max is the pool's limit.
	InUse, Idle, Connecting, Max int32

	Acquires  int64         // connections handed out
	Waits     int64         // of those, the ones that had to wait
	WaitTime  time.Duration // spent in these waits
	Abandoned int64         // waits that ended with the caller's deadline
	Opened    int64         // connections opened
}

// PoolStats reads the figures of the store's own pool.
func (s *Store) PoolStats() PoolStats { return poolStats("general", s.db.Pool) }

// PoolStats reads the figures of the hot path's pools.
func (e *Engine) PoolStats() []PoolStats {
	return []PoolStats{poolStats(EventBatch, e.singleWrites.Pool), poolStats(CheckBatch, e.reads.Pool), poolStats(BulkBatch, e.bulkWrites.Pool)}
}

func poolStats(name string, pool *pgxpool.Pool) PoolStats {
	s := pool.Stat()
	return PoolStats{
		Name: name, InUse: s.AcquiredConns(), Idle: s.IdleConns(), Connecting: s.ConstructingConns(), Max: s.MaxConns(),
		Acquires: s.AcquireCount(), Waits: s.EmptyAcquireCount(), WaitTime: s.EmptyAcquireWaitTime(),
		Abandoned: s.CanceledAcquireCount(), Opened: s.NewConnsCount(),
	}
}
