package store

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"purser/ids"
	"purser/store/internal/limits"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// appRole serves requests. It owns nothing, so no policy is open to it.
const appRole = "purser_app"

const (
	// DefaultConns is how many connections a store opens at most, without those of the
	// hot path.
	DefaultConns = 16
	// Connections that requests opened and no longer need are closed after this time:
	// the database's connections are shared with other nodes and programs.
	connIdleTime    = time.Minute
	connHealthCheck = 15 * time.Second
	// Opening a connection, and asking one whether it still works, may take so long. A
	// server that is silent occupies a place in the pool no longer than this.
	connectTimeout = 5 * time.Second
	pingTimeout    = 2 * time.Second
	// How many keys a node remembers the application of.
	rememberedKeys = 10_000
)

// Options tune a store. The zero value is good for tests and small servers.
type Options struct {
	MaxConns int          // of the pool; DefaultConns when zero
	MinConns int          // that the pool keeps open
	Machine  Machine      // the clocks of the node; those of the machine when nil
	Log      *slog.Logger // nil for silence
	// KeepFailures is how long failed requests are kept; DefaultKeepFailures when zero.
	KeepFailures time.Duration
}

// Store is a pool of connections that serve as the application role.
type Store struct {
	pool        *pgxpool.Pool
	clock       *Clock
	stop        func() // ends what runs in the background
	bun         *bun.DB
	keyAddrs    *lru.Cache[[32]byte, KeyAddress]
	usageCaches sync.Map // of every Engine that is open on it
	stats       *nodeStats

	keepFailures time.Duration
	sandboxConns chan struct{} // one place for each connection that the sandbox uses
}

// Open connects to a migrated database.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	return open(ctx, url, o, limits.Current())
}

func open(ctx context.Context, url string, o Options, session limits.Session) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("store: the database address cannot be read: %w", withoutPassword(err))
	}
	if o.MaxConns == 0 {
		o.MaxConns = DefaultConns
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	config.MaxConns, config.MinConns = int32(o.MaxConns), int32(o.MinConns)
	config.MaxConnIdleTime, config.HealthCheckPeriod, config.PingTimeout = connIdleTime, connHealthCheck, pingTimeout
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	clock := newClock(o.Machine)
	config.AfterConnect = func(context.Context, *pgx.Conn) error {
		clock.connected()
		return nil
	}
	params := config.ConnConfig.RuntimeParams
	params["application_name"] = "purser"
	params["role"] = appRole
	params["timezone"] = "UTC"
	params["statement_timeout"] = milliseconds(session.Statement)
	params["lock_timeout"] = milliseconds(session.Lock)
	params["idle_in_transaction_session_timeout"] = milliseconds(session.Idle)
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement

	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	addrs, err := lru.New[[32]byte, KeyAddress](rememberedKeys)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &Store{
		pool:     pool,
		clock:    clock,
		bun:      bun.NewDB(stdlib.OpenDBFromPool(pool), pgdialect.New()),
		keyAddrs: addrs,
		stats:    newNodeStats(),

		keepFailures: cmp.Or(o.KeepFailures, DefaultKeepFailures),
		sandboxConns: make(chan struct{}, sandboxConns),
	}
	clock.conns.Store(pool)
	if err := s.measureClock(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("store: the database does not answer: %w", err)
	}
	background, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.keepClock(background, o.Log) })
	s.stop = func() { cancel(); running.Wait() }
	return s, nil
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// Close ends every connection, after those in use are given back.
func (s *Store) Close() {
	s.stop()
	_ = s.bun.Close() // a view of the pool: nothing of its own to lose
	s.pool.Close()
}

// Clock is the database's clock: the time that decides about money, keys and
// sessions, the same on every node.
func (s *Store) Clock() *Clock { return s.clock }

// App is the only door to the rows of an application.
func (s *Store) App(scope tenancy.Scope) App { return App{store: s, scope: scope} }

// Org is the door to the rows of an organization.
func (s *Store) Org(id ids.ID) Org { return Org{store: s, id: id} }

// Directory has the looks that come before a scope is known.
func (s *Store) Directory() Directory { return Directory{store: s} }

// App reads and writes the rows of one application.
type App struct {
	store *Store
	scope tenancy.Scope
	by    audit.Actor

	beginning txCommand // how its transactions begin; BEGIN when empty
}

// Org reads and writes the rows of one organization.
type Org struct {
	store *Store
	id    ids.ID
	by    audit.Actor
}
