package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"purser/ids"
	"purser/metering"
	"purser/tenancy"
	"purser/tenancy/audit"
)

const (
	// A transaction that Postgres rolled back for the sake of another one is tried
	// so often, with a pause of up to this much times the number of tries.
	maxAttempts = 5
	retryPause  = 20 * time.Millisecond
	// Enough to tell Postgres to roll back when the caller's own time is over.
	rollbackTimeout = time.Second
)

// errCommitUnknown marks a COMMIT whose outcome never arrived. The work may have
// been done or not; only a second look with the same ids can tell.
var errCommitUnknown = errors.New("store: the outcome of the commit is unknown")

// appTx is one transaction in the name of one application.
type appTx struct {
	conn  *pgx.Conn
	scope tenancy.Scope
	by    audit.Actor // who acts by hand, if anybody does

	posted *[]metering.Entry // by the transaction so far, for the figures
}

// transact runs work in one transaction of the application. When Postgres gave
// it up in favour of another transaction, all of it runs again.
func (a App) transact(ctx context.Context, work func(context.Context, appTx) error) error {
	for attempt := 1; ; attempt++ {
		err := a.attempt(ctx, work)
		if attempt == maxAttempts || !wasRolledBack(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(retryPause * time.Duration(attempt))):
		}
	}
}

// snapshot runs work in one transaction that sees one moment, and changes nothing.
func (a App) snapshot(ctx context.Context, work func(context.Context, appTx) error) error {
	a.beginning = beginSnapshot
	return a.transact(ctx, work)
}

func (a App) attempt(ctx context.Context, work func(context.Context, appTx) error) error {
	pooled, err := a.store.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("store: no connection: %w", err)
	}
	// The pool ends a connection that comes back inside a transaction, so neither
	// an error nor a panic hands its setting to the next request.
	defer release(pooled)
	conn := pooled.Conn()
	if err := begin(ctx, conn, a.beginning, a.scope.AppID); err != nil {
		return fmt.Errorf("store: begin: %w", err)
	}
	var posted []metering.Entry
	if err := work(ctx, appTx{conn: conn, scope: a.scope, by: a.by, posted: &posted}); err != nil {
		rollback(ctx, conn)
		return err
	}
	if err := commit(ctx, conn); err != nil {
		return err
	}
	a.store.stats.recordEntries(a.scope, posted)
	return nil
}

// release returns a connection to its pool. A closed one leaves the pool at once: its
// cleanup takes up to 15 s when the server is silent, and would occupy a place for
// as long.
func release(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		conn.Hijack()
		return
	}
	conn.Release()
}

// begin opens a transaction and names its application to the row-level policies,
// in one round trip. The two are messages of their own, and not prepared: the
// text differs for each application.
func begin(ctx context.Context, conn *pgx.Conn, how txCommand, app ids.ID) error {
	if how.sql == "" {
		how = beginTx
	}
	pipeline := conn.PgConn().StartPipeline(ctx)
	pipeline.SendQueryParams(how.sql, nil, nil, nil, nil)
	pipeline.SendQueryParams(setApplication(app), nil, nil, nil, nil)
	err := pipeline.Sync()
	for err == nil {
		var result any
		if result, err = pipeline.GetResults(); result == nil {
			break
		}
		if reader, ok := result.(*pgconn.ResultReader); ok && err == nil {
			_, err = reader.Close()
		}
	}
	return errors.Join(err, pipeline.Close())
}

// setApplication names the application to the policies, until the transaction ends.
func setApplication(app ids.ID) string {
	return "SET LOCAL purser.app_id = '" + app.String() + "'"
}

func commit(ctx context.Context, conn *pgx.Conn) error {
	tag, err := conn.Exec(ctx, "COMMIT")
	if err != nil {
		return fmt.Errorf("%w: %w", errCommitUnknown, err)
	}
	if tag.String() != "COMMIT" { // Postgres answers ROLLBACK when a statement failed unnoticed
		return fmt.Errorf("store: the transaction was rolled back at commit")
	}
	return nil
}

func rollback(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "ROLLBACK") // where this fails, the pool ends the connection
}

// wasRolledBack reports an error after which the transaction has certainly left
// nothing behind, and which another try may well avoid.
func wasRolledBack(err error) bool {
	if errors.Is(err, errCommitUnknown) {
		return false
	}
	switch sqlState(err) {
	case "40001", "40P01", "55P03": // serialization, deadlock, lock timeout
		return true
	}
	return false
}

const (
	uniqueViolation       = "23505"
	divisionByZero        = "22012"
	undefinedTable        = "42P01"
	insufficientPrivilege = "42501"
	queryCanceled         = "57014" // by statement_timeout, or by an administrator
)

// sqlState is the code of a Postgres error, or empty. Decisions rest on it alone:
// a distributed Postgres fills neither constraint nor table names.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// exec runs a statement that must touch exactly as many rows as are wanted.
func (tx appTx) exec(ctx context.Context, s statement, wanted int64, args ...any) error {
	tag, err := tx.conn.Exec(ctx, s.sql, tx.args(args)...)
	if err != nil {
		return fmt.Errorf("store: %s: %w", s.name, err)
	}
	if tag.RowsAffected() != wanted {
		return fmt.Errorf("store: %s touched %d rows, not %d", s.name, tag.RowsAffected(), wanted)
	}
	return nil
}

// execAny runs a statement that may find nothing to do.
func (tx appTx) execAny(ctx context.Context, s statement, args ...any) (int64, error) {
	tag, err := tx.conn.Exec(ctx, s.sql, tx.args(args)...)
	if err != nil {
		return 0, fmt.Errorf("store: %s: %w", s.name, err)
	}
	return tag.RowsAffected(), nil
}

// collect runs a query and reads each row.
func collect[T any](ctx context.Context, tx appTx, s statement, read pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, err := tx.conn.Query(ctx, s.sql, tx.args(args)...)
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", s.name, err)
	}
	list, err := pgx.CollectRows(rows, read)
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", s.name, err)
	}
	return list, nil
}

// find runs a query that gives one row or none; none is the given absence.
func find[T any](ctx context.Context, tx appTx, s statement, read pgx.RowToFunc[T], absence error, args ...any) (T, error) {
	list, err := collect(ctx, tx, s, read, args...)
	if err == nil && len(list) == 0 {
		err = absence
	}
	if err != nil {
		var none T
		return none, err
	}
	return list[0], nil
}

// findOne is find in a transaction of its own.
func findOne[T any](ctx context.Context, a App, s statement, read pgx.RowToFunc[T], absence error, args ...any) (found T, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		found, err = find(ctx, tx, s, read, absence, args...)
		return err
	})
	return found, err
}

// listAll is collect in a transaction of its own.
func listAll[T any](ctx context.Context, a App, s statement, read pgx.RowToFunc[T], args ...any) (list []T, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		list, err = collect(ctx, tx, s, read, args...)
		return err
	})
	return list, err
}

// pageOf lists one page and reports whether there are more.
func pageOf[T any](ctx context.Context, a App, p Page, s statement, read pgx.RowToFunc[T]) (list []T, more bool, err error) {
	list, err = listAll(ctx, a, s, read, p.before(), p.oneMore())
	list, more = cut(list, p.Limit)
	return list, more, err
}

func (tx appTx) args(args []any) []any {
	return append([]any{tx.scope.AppID}, args...)
}
