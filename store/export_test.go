package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"purser/ids"
	"purser/notify"
	"purser/store/internal/ledger"
	"purser/store/internal/limits"
	"purser/store/internal/pg"
)

// What the tests of package store_test see beyond the doors.

// Statement is an entry of the package's list.
type Statement struct{ Name, SQL string }

// Statements is the package's list.
func Statements() []Statement { return exported(pg.Statements) }

// HotStatements are those that batches send.
func HotStatements() []Statement { return exported(hotStatements) }

func exported(list []pg.Statement) []Statement {
	out := make([]Statement, len(list))
	for i, s := range list {
		out[i] = Statement{s.Name, s.SQL}
	}
	return out
}

// LockWallets is the only statement that may lock wallets.
var LockWallets = Statement{ledger.LockWallets.Name, ledger.LockWallets.SQL}

// The limits that are tested at the limit and one past it.
const (
	AppRole     = pg.AppRole
	MaxAttempts = pg.MaxAttempts
)

// IDAt is the lowest id that can have been made at a moment.
func IDAt(ms int64) ids.ID { return pg.IDAt(ms) }

// OpenWithLockTimeout opens a store whose sessions wait this long for a lock.
func OpenWithLockTimeout(ctx context.Context, url string, wait time.Duration) (*Store, error) {
	session := limits.Current()
	session.Lock = wait
	return open(ctx, url, Options{}, session)
}

// PoolOf is what every method draws its connections from.
func PoolOf(s *Store) *pgxpool.Pool { return s.db.Pool }

// UsageWritesOf is what batches that write draw their connections from.
func UsageWritesOf(e *Engine) *pgxpool.Pool { return e.singleWrites.Pool }

// UsageReadsOf is what reading without locks draws its connections from.
func UsageReadsOf(e *Engine) *pgxpool.Pool { return e.reads.Pool }

// transact runs work in a transaction of the application, as every method does.
func Transact(ctx context.Context, a App, work func(context.Context, *pgx.Conn) error) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error { return work(ctx, tx.Conn) })
}

// Notify inserts a notification, as the methods do that change something.
func Notify(ctx context.Context, a App, n notify.Notification) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error { return tx.Notify(ctx, n) })
}

// Ready is the check of the schema on a connection of the pool.
func (s *Store) Ready(ctx context.Context) error { return pg.CheckSchema(ctx, s.db.Pool) }
