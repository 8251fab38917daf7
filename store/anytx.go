package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"

	"purser/ids"
)

// anyTx is a transaction of either kind: on an application's rows, or through the
// query builder. What both have to write, the audit log before all, is written
// against it.
type anyTx interface {
	scan(ctx context.Context, query string, args []any, into ...any) error
	run(ctx context.Context, query string, args ...any) error
}

type pgxTx struct{ conn *pgx.Conn }

func (tx pgxTx) scan(ctx context.Context, query string, args []any, into ...any) error {
	return tx.conn.QueryRow(ctx, query, args...).Scan(into...)
}

func (tx pgxTx) run(ctx context.Context, query string, args ...any) error {
	_, err := tx.conn.Exec(ctx, query, args...)
	return err
}

type bunTx struct{ tx bun.Tx }

func (tx bunTx) scan(ctx context.Context, query string, args []any, into ...any) error {
	return tx.tx.Tx.QueryRowContext(ctx, query, args...).Scan(into...)
}

func (tx bunTx) run(ctx context.Context, query string, args ...any) error {
	_, err := tx.tx.Tx.ExecContext(ctx, query, args...)
	return err
}

// nullableID is an id in the form that both drivers take.
func nullableID(id ids.ID) *string {
	if id.IsZero() {
		return nil
	}
	text := id.String()
	return &text
}
