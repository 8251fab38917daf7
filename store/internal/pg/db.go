package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/limits"
	"purser/tenancy"
	"purser/tenancy/turns"
)

// AppRole serves requests. It owns nothing, so no policy is open to it.
const AppRole = "purser_app"

const (
	// DefaultConns is how many connections a pool opens at most, without those of the
	// hot path.
	DefaultConns = 16
	// Connections that requests opened and no longer need are closed after this time:
	// the database's connections are shared with other nodes and programs.
	connIdleTime    = time.Minute
	connHealthCheck = 15 * time.Second
	// PingTimeout bounds asking a connection whether it still works, as limits.Session bounds
	// opening one. A server that is silent occupies a place in the pool no longer.
	PingTimeout = 2 * time.Second
	// serverName is what Postgres shows as the application of a server's connections.
	serverName = "purser"
)

// Options tune a pool.
type Options struct {
	MaxConns  int          // of the pool; DefaultConns when zero
	MinConns  int          // that the pool keeps open
	Machine   Machine      // the clocks of the node; those of the machine when nil
	Log       *slog.Logger // nil for silence
	Restoring bool         // for the restore itself: others get no connection before it has finished
}

// DB is a pool of connections that serve as the application role, with the
// database's clock.
type DB struct {
	Pool  *pgxpool.Pool
	Clock *Clock
	stop  func() // ends what runs in the background
	// Distributed reports that Citus has distributed the tables.
	Distributed bool

	changed sync.Map                // of *walletListener
	refused atomic.Pointer[refusal] // the last one of a connection
	turns   *turns.Turns[ids.ID]
	shares  *turns.Turns[ids.ID] // of the pool, by organization
	entries func(tenancy.Scope, []metering.Entry)

	notifications atomic.Pointer[func(tenancy.Scope)]
}

type walletListener struct {
	changed func(app ids.ID, identity string)
}

// Open connects to a migrated database.
func Open(ctx context.Context, url string, o Options, session limits.Session) (*DB, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("store: the database address cannot be read: %w", WithoutPassword(err))
	}
	o.MaxConns = cmp.Or(o.MaxConns, DefaultConns)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	config.MaxConns, config.MinConns = int32(o.MaxConns), int32(o.MinConns)
	config.MaxConnIdleTime, config.HealthCheckPeriod, config.PingTimeout = connIdleTime, connHealthCheck, PingTimeout
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, session.Connect)
	clock := newClock(o.Machine)
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		clock.Connected()
		if o.Restoring {
			return nil
		}
		return checkSession(ctx, conn)
	}
	params := config.ConnConfig.RuntimeParams
	params["application_name"] = serverName
	params["role"] = AppRole
	params["timezone"] = "UTC"
	params[PackedSetting] = "on"
	params["statement_timeout"] = Milliseconds(session.Statement)
	params["lock_timeout"] = Milliseconds(session.Lock)
	params["idle_in_transaction_session_timeout"] = Milliseconds(session.Idle)
	maps.Copy(params, CitusParameters)
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement

	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	db := &DB{Pool: pool, Clock: clock, turns: turns.New[ids.ID](turnsAtOnce), shares: turns.New[ids.ID](shareOf(o.MaxConns)), entries: func(tenancy.Scope, []metering.Entry) {}}
	clock.Conns.Store(pool)
	if err := db.MeasureClock(ctx); err != nil {
		pool.Close()
		if refused := refusedSession(err); refused != nil {
			return nil, refused
		}
		return nil, fmt.Errorf("store: the database does not answer: %w", err)
	}
	if db.Distributed, err = IsDistributed(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("store: reading the catalog: %w", err)
	}
	background, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { db.keepClock(background, o.Log) })
	db.stop = func() { cancel(); running.Wait() }
	return db, nil
}

// shareOf is how many connections of a pool an organization has at most: slow reads of one
// leave some to the others.
func shareOf(conns int) int { return max(1, conns*3/4) }

// Milliseconds is how a setting of Postgres writes a duration.
func Milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// Close ends every connection, after those in use are given back.
func (db *DB) Close() {
	db.StopClock()
	db.Pool.Close()
}

// StopClock ends the measurements of the database's clock.
func (db *DB) StopClock() { db.stop() }

// App is the rows of one application.
func (db *DB) App(scope tenancy.Scope) App { return App{DB: db, Scope: scope} }

// OnWalletChange has changed called after this node has changed a wallet outside the
// usage engine, until it is removed.
func (db *DB) OnWalletChange(changed func(app ids.ID, identity string)) (remove func()) {
	listener := &walletListener{changed}
	db.changed.Store(listener, nil)
	return func() { db.changed.Delete(listener) }
}

// OnEntries has committed called with the journal entries of each transaction, after
// its commit. It is set once, before the first transaction.
func (db *DB) OnEntries(committed func(tenancy.Scope, []metering.Entry)) { db.entries = committed }

// WithoutPassword keeps the reason why an address cannot be parsed and drops the
// address itself, which pgx repeats with everything but the password.
func WithoutPassword(err error) error {
	if _, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		return errors.New("it is not a valid postgres:// address")
	}
	return err
}
