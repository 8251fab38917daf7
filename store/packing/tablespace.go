package packing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/pg"
)

// listMoves has a statement for each table and index of packed events that lies elsewhere.
// Both tables are locked first, in the order of readers who look an event up by its id.
const listMoves = `
	WITH moves AS (
		SELECT r.oid, format('ALTER %s %s SET TABLESPACE %I', CASE r.relkind WHEN 'i' THEN 'INDEX' ELSE 'TABLE' END, r.oid::regclass, $1::text) AS statement
		FROM pg_class r LEFT JOIN pg_index i ON i.indexrelid = r.oid
		WHERE coalesce(i.indrelid, r.oid) IN ('packed_events'::regclass, 'packed_ids'::regclass)
			AND coalesce(nullif(r.reltablespace, 0), (SELECT d.dattablespace FROM pg_database d WHERE d.datname = current_database()))
				IS DISTINCT FROM (SELECT t.oid FROM pg_tablespace t WHERE t.spcname = $1)),
	locks AS (
		SELECT l.place, format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', l.name) AS statement
		FROM unnest(ARRAY['packed_ids', 'packed_events']::regclass[]) WITH ORDINALITY AS l (name, place)
		WHERE EXISTS (SELECT FROM moves))
	SELECT s.statement FROM (SELECT 1 AS step, place, statement FROM locks UNION ALL SELECT 2, oid::bigint, statement FROM moves) s
	ORDER BY s.step, s.place`

// MoveTo moves all packed events to a tablespace, where later ones follow them, and reports
// whether they were elsewhere. Nothing reads or writes blocks meanwhile, and usage with an id
// of a packed month waits: it is for the time before the first run, or without servers.
func (p *Packer) MoveTo(ctx context.Context, tablespace string) (moved bool, err error) {
	err = pg.RetryLocked(ctx, pg.SchemaPatience, func() error {
		return pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
				return err
			}
			rows, _ := tx.Query(ctx, listMoves, tablespace) // CollectRows returns its error
			statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
			for _, statement := range statements {
				if _, err := tx.Exec(ctx, statement); err != nil {
					return err
				}
			}
			moved = len(statements) > 0
			return err
		})
	})
	if err != nil {
		return false, fmt.Errorf("store: packing: moving packed events to another tablespace: %w", err)
	}
	return moved, nil
}
