package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"purser/fault"
)

// Querier is the pool, a connection or a transaction, for texts that reach no rows of
// applications. Those have a Statement.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// ExecSQL runs a text and counts the rows that it touched.
func ExecSQL(ctx context.Context, on Querier, name, sql string, args ...any) (int64, error) {
	tag, err := on.Exec(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("store: %s: %w", name, err)
	}
	return tag.RowsAffected(), nil
}

// CollectSQL runs a query and reads each row.
func CollectSQL[T any](ctx context.Context, on Querier, name string, read pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, _ := on.Query(ctx, sql, args...) // CollectRows returns its error
	list, err := pgx.CollectRows(rows, read)
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", name, err)
	}
	return list, nil
}

// FindSQL runs a query that gives one row. None is a 404.
func FindSQL[T any](ctx context.Context, on Querier, name string, read pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	rows, _ := on.Query(ctx, sql, args...) // CollectExactlyOneRow returns its error
	row, err := pgx.CollectExactlyOneRow(rows, read)
	return row, FoundSQL(name, err)
}

// FoundSQL is the error of a query for one row. No row is a 404.
func FoundSQL(name string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.PathNotFound)
	}
	if err != nil {
		return fmt.Errorf("store: %s: %w", name, err)
	}
	return nil
}
