package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Exec runs a statement that must touch exactly as many rows as are wanted.
func (tx *Tx) Exec(ctx context.Context, s Statement, wanted int64, args ...any) error {
	touched, err := tx.ExecAny(ctx, s, args...)
	if err == nil && touched != wanted {
		err = fmt.Errorf("store: %s touched %d rows, not %d", s.Name, touched, wanted)
	}
	return err
}

// ExecAny runs a statement that may find nothing to do.
func (tx *Tx) ExecAny(ctx context.Context, s Statement, args ...any) (int64, error) {
	args, err := tx.arguments(s, args)
	if err != nil {
		return 0, err
	}
	tag, err := tx.Conn.Exec(ctx, s.SQL, args...)
	if err != nil {
		return 0, fmt.Errorf("store: %s: %w", s.Name, err)
	}
	return tag.RowsAffected(), nil
}

// ExecAny is Tx.ExecAny in a transaction of its own.
func (a App) ExecAny(ctx context.Context, s Statement, args ...any) error {
	return a.Transact(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.ExecAny(ctx, s, args...)
		return err
	})
}

// Args puts the application's id before the arguments of a statement.
func (tx *Tx) Args(args []any) []any {
	return append([]any{tx.Scope.AppID}, args...)
}

// arguments puts named arguments in order, and the application's id before all.
func (tx *Tx) arguments(s Statement, args []any) ([]any, error) {
	if len(args) == 1 {
		if named, ok := args[0].(Named); ok {
			ordered, err := named.in(s)
			return tx.Args(ordered), err
		}
	}
	return tx.Args(args), nil
}

// Collect runs a query and reads each row.
func Collect[T any](ctx context.Context, tx In, s Statement, read pgx.RowToFunc[T], args ...any) ([]T, error) {
	args, err := tx.in().arguments(s, args)
	if err != nil {
		return nil, err
	}
	rows, _ := tx.in().Conn.Query(ctx, s.SQL, args...) // CollectRows returns its error
	list, err := pgx.CollectRows(rows, read)
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", s.Name, err)
	}
	return list, nil
}

// Each runs a query and calls a function with each row.
func Each(ctx context.Context, tx In, s Statement, each func(pgx.CollectableRow) error, args ...any) error {
	_, err := Collect(ctx, tx, s, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, each(row) }, args...)
	return err
}

// CollectMap runs a query and reads each row as a key and its value.
func CollectMap[K comparable, V any](ctx context.Context, tx In, s Statement, read func(pgx.CollectableRow) (K, V, error), args ...any) (map[K]V, error) {
	found := map[K]V{}
	err := Each(ctx, tx, s, func(row pgx.CollectableRow) error {
		key, value, err := read(row)
		found[key] = value
		return err
	}, args...)
	return found, err
}

// Query is a statement with its arguments, for CollectBoth.
type Query struct {
	Statement Statement
	Args      []any
}

// CollectBoth runs two queries one after the other in one round trip. The second sees what
// the first waited for.
func CollectBoth[A, B any](ctx context.Context, tx In, first Query, readFirst pgx.RowToFunc[A], second Query, readSecond pgx.RowToFunc[B]) (a []A, b []B, err error) {
	var batch pgx.Batch
	for _, q := range []Query{first, second} {
		args, err := tx.in().arguments(q.Statement, q.Args)
		if err != nil {
			return nil, nil, err
		}
		batch.Queue(q.Statement.SQL, args...)
	}
	results := tx.in().Conn.SendBatch(ctx, &batch)
	failed := first
	rows, _ := results.Query() // CollectRows returns its error
	if a, err = pgx.CollectRows(rows, readFirst); err == nil {
		failed = second
		rows, _ = results.Query()
		b, err = pgx.CollectRows(rows, readSecond)
	}
	if closed := results.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, nil, fmt.Errorf("store: %s: %w", failed.Statement.Name, err)
	}
	return a, b, nil
}

// Find runs a query that gives one row or none; none is the given absence.
func Find[T any](ctx context.Context, tx In, s Statement, read pgx.RowToFunc[T], absence error, args ...any) (T, error) {
	list, err := Collect(ctx, tx, s, read, args...)
	return first(list, err, absence)
}

// FindOne is Find in a transaction of its own, for a query that changes nothing.
func FindOne[T any](ctx context.Context, a App, s Statement, read pgx.RowToFunc[T], absence error, args ...any) (T, error) {
	list, err := ListAll(ctx, a, s, read, args...)
	return first(list, err, absence)
}

func first[T any](list []T, err, absence error) (row T, _ error) {
	if err == nil && len(list) == 0 {
		err = absence
	}
	if err != nil {
		return row, err
	}
	return list[0], nil
}

// ListAll is Collect in a transaction of its own, for a query that changes nothing. All of
// it takes one round trip, except on Citus: it doesn't forward nameApplication to the shards.
func ListAll[T any](ctx context.Context, a App, s Statement, read pgx.RowToFunc[T], args ...any) (list []T, err error) {
	if a.DB.Distributed {
		return Return(ctx, a.Transact, func(ctx context.Context, tx *Tx) ([]T, error) { return Collect(ctx, tx, s, read, args...) })
	}
	return listRetried(ctx, a, "", s, read, args)
}

// ListInSnapshot is ListAll in a transaction that sees one moment. settings is a query
// without parameters that sets what holds in the transaction; on Citus it has no effect on
// the shards, so there the caller uses Snapshot.
func ListInSnapshot[T any](ctx context.Context, a App, settings string, s Statement, read pgx.RowToFunc[T], args ...any) (list []T, err error) {
	a.begins = BeginSnapshot
	return listRetried(ctx, a, settings, s, read, args)
}

func listRetried[T any](ctx context.Context, a App, settings string, s Statement, read pgx.RowToFunc[T], args []any) (list []T, err error) {
	if args, err = (&Tx{Scope: a.Scope}).arguments(s, args); err != nil {
		return nil, err
	}
	err = Retry(ctx, func() error {
		list, err = listOnce(ctx, a, settings, s, read, args)
		return err
	})
	return list, err
}

// nameApplication is SetApplication as a statement that can be prepared. It has no effect on
// the shards of Citus.
const nameApplication = `SELECT set_config('purser.app_id', $1, true)`

// listOnce is ListAll without a second try, and with the application's id in the arguments.
// settings runs before the statement, unless it is empty.
func listOnce[T any](ctx context.Context, a App, settings string, s Statement, read pgx.RowToFunc[T], args []any) (list []T, err error) {
	pooled, release, err := a.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	conn := pooled.Conn()
	var batch pgx.Batch
	batch.Queue(a.beginCommand())
	batch.Queue(nameApplication, a.Scope.AppID.String())
	if settings != "" {
		batch.Queue(settings)
	}
	before := batch.Len()
	batch.Queue(s.SQL, args...)
	batch.Queue(CommitTx.SQL)
	results := conn.SendBatch(ctx, &batch)
	for i := 0; i < before && err == nil; i++ {
		_, err = results.Exec()
	}
	if err == nil {
		rows, _ := results.Query() // CollectRows returns its error
		list, err = pgx.CollectRows(rows, read)
	}
	if closed := results.Close(); err == nil {
		err = closed
	}
	if err != nil {
		if !conn.IsClosed() && conn.PgConn().TxStatus() != idle {
			Rollback(ctx, conn)
		}
		return nil, fmt.Errorf("store: %s: %w", s.Name, err)
	}
	return list, nil
}

// idle is the status of a connection that is in no transaction.
const idle = 'I'

// PageOf lists one page and reports whether there are more.
func PageOf[T any](ctx context.Context, a App, p Page, s Statement, read pgx.RowToFunc[T]) (list []T, more bool, err error) {
	list, err = ListAll(ctx, a, s, read, p.Start(), p.OneMore())
	list, more = Cut(list, p.Limit)
	return list, more, err
}
