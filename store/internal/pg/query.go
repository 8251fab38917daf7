package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Exec runs a statement that must touch exactly as many rows as are wanted.
func (tx *Tx) Exec(ctx context.Context, s Statement, wanted int64, args ...any) error {
	tag, err := tx.Conn.Exec(ctx, s.SQL, tx.Args(args)...)
	if err != nil {
		return fmt.Errorf("store: %s: %w", s.Name, err)
	}
	if tag.RowsAffected() != wanted {
		return fmt.Errorf("store: %s touched %d rows, not %d", s.Name, tag.RowsAffected(), wanted)
	}
	return nil
}

// ExecAny runs a statement that may find nothing to do.
func (tx *Tx) ExecAny(ctx context.Context, s Statement, args ...any) (int64, error) {
	tag, err := tx.Conn.Exec(ctx, s.SQL, tx.Args(args)...)
	if err != nil {
		return 0, fmt.Errorf("store: %s: %w", s.Name, err)
	}
	return tag.RowsAffected(), nil
}

// Args puts the application's id before the arguments of a statement.
func (tx *Tx) Args(args []any) []any {
	return append([]any{tx.Scope.AppID}, args...)
}

// Collect runs a query and reads each row.
func Collect[T any](ctx context.Context, tx In, s Statement, read pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, err := tx.in().Conn.Query(ctx, s.SQL, tx.in().Args(args)...)
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", s.Name, err)
	}
	list, err := pgx.CollectRows(rows, read)
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", s.Name, err)
	}
	return list, nil
}

// Find runs a query that gives one row or none; none is the given absence.
func Find[T any](ctx context.Context, tx In, s Statement, read pgx.RowToFunc[T], absence error, args ...any) (T, error) {
	list, err := Collect(ctx, tx, s, read, args...)
	if err == nil && len(list) == 0 {
		err = absence
	}
	if err != nil {
		var none T
		return none, err
	}
	return list[0], nil
}

// FindOne is Find in a transaction of its own.
func FindOne[T any](ctx context.Context, a App, s Statement, read pgx.RowToFunc[T], absence error, args ...any) (found T, err error) {
	err = a.Transact(ctx, func(ctx context.Context, tx *Tx) error {
		found, err = Find(ctx, tx, s, read, absence, args...)
		return err
	})
	return found, err
}

// ListAll is Collect in a transaction of its own.
func ListAll[T any](ctx context.Context, a App, s Statement, read pgx.RowToFunc[T], args ...any) (list []T, err error) {
	err = a.Transact(ctx, func(ctx context.Context, tx *Tx) error {
		list, err = Collect(ctx, tx, s, read, args...)
		return err
	})
	return list, err
}

// PageOf lists one page and reports whether there are more.
func PageOf[T any](ctx context.Context, a App, p Page, s Statement, read pgx.RowToFunc[T]) (list []T, more bool, err error) {
	list, err = ListAll(ctx, a, s, read, p.Start(), p.OneMore())
	list, more = Cut(list, p.Limit)
	return list, more, err
}
