package people

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"purser/fault"
)

// querier is the pool, a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// exec runs a statement and counts the rows that it touched.
func exec(ctx context.Context, on querier, name, sql string, args ...any) (int64, error) {
	tag, err := on.Exec(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("store: %s: %w", name, err)
	}
	return tag.RowsAffected(), nil
}

// collect runs a query and reads each row.
func collect[T any](ctx context.Context, on querier, name string, read pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, _ := on.Query(ctx, sql, args...) // CollectRows returns its error
	list, err := pgx.CollectRows(rows, read)
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", name, err)
	}
	return list, nil
}

// find runs a query that gives one row. None is a 404.
func find[T any](ctx context.Context, on querier, name string, read pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	rows, _ := on.Query(ctx, sql, args...) // CollectExactlyOneRow returns its error
	row, err := pgx.CollectExactlyOneRow(rows, read)
	return row, found(name, err)
}

// found is the error of a query for one row. No row is a 404.
func found(name string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.PathNotFound)
	}
	if err != nil {
		return fmt.Errorf("store: %s: %w", name, err)
	}
	return nil
}
