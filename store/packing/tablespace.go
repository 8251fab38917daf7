package packing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/pg"
)

// listMoves has a statement for each table and index of packed events that lies elsewhere.
const listMoves = `
	SELECT format('ALTER %s %s SET TABLESPACE %I', CASE r.relkind WHEN 'i' THEN 'INDEX' ELSE 'TABLE' END, r.oid::regclass, $1::text)
	FROM pg_class r LEFT JOIN pg_index i ON i.indexrelid = r.oid
	WHERE coalesce(i.indrelid, r.oid) IN ('packed_events'::regclass, 'packed_ids'::regclass)
		AND coalesce(nullif(r.reltablespace, 0), (SELECT d.dattablespace FROM pg_database d WHERE d.datname = current_database()))
			IS DISTINCT FROM (SELECT t.oid FROM pg_tablespace t WHERE t.spcname = $1)
	ORDER BY r.oid`

// MoveTo moves all packed events to a tablespace, where later ones follow them, and reports
// whether they were elsewhere. Nothing reads or writes blocks meanwhile: it is for the time
// before the first run, or for a quiet hour.
func (p *Packer) MoveTo(ctx context.Context, tablespace string) (moved bool, err error) {
	for try := 1; ; try++ {
		err := pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
				return err
			}
			rows, _ := tx.Query(ctx, listMoves, tablespace) // CollectRows returns its error
			moves, err := pgx.CollectRows(rows, pgx.RowTo[string])
			for _, statement := range moves {
				if _, err := tx.Exec(ctx, statement); err != nil {
					return err
				}
			}
			moved = len(moves) > 0
			return err
		})
		if err == nil {
			return moved, nil
		}
		if !pg.WasRolledBack(err) || try == pg.MaxAttempts {
			return false, fmt.Errorf("store: packing: moving packed events to another tablespace: %w", err)
		}
	}
}
