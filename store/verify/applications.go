package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

// StrayApplication is an application that rows name and that does not exist.
type StrayApplication struct {
	AppID ids.ID
	Table string
}

// StrayApplications finds rows of applications that do not exist, in every table of
// tenants. The role that serves cannot see them, so the role that is logged in has to
// be one that row-level security does not bind, such as the embedded database's. It
// reports whether that was so; otherwise nothing was checked.
func (i Installation) StrayApplications(ctx context.Context) (list []StrayApplication, checked bool, err error) {
	tx, err := i.db.Pool.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, false, fmt.Errorf("store: stray applications: %w", err)
	}
	defer func() { err = errors.Join(err, tx.Rollback(context.WithoutCancel(ctx))) }()
	// With row security off, a query that a policy would filter fails instead.
	for _, setting := range []string{"SET LOCAL ROLE NONE", "SET LOCAL row_security = off", "SET LOCAL statement_timeout = '1min'"} {
		if _, err := tx.Exec(ctx, setting); err != nil {
			return nil, false, fmt.Errorf("store: %s: %w", setting, err)
		}
	}
	rows, err := tx.Query(ctx, `
		SELECT c.relname::text
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'app_id' AND NOT a.attisdropped
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
		ORDER BY c.relname`)
	if err != nil {
		return nil, false, fmt.Errorf("store: tables of tenants: %w", err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, false, fmt.Errorf("store: tables of tenants: %w", err)
	}
	for _, table := range tables {
		name := pgx.Identifier{table}.Sanitize()
		// From one application to the next along the key, whatever they hold.
		rows, err := tx.Query(ctx, `
			WITH RECURSIVE named AS (
				(SELECT app_id FROM `+name+` ORDER BY app_id LIMIT 1)
				UNION ALL
				SELECT (SELECT t.app_id FROM `+name+` t WHERE t.app_id > n.app_id ORDER BY t.app_id LIMIT 1)
				FROM named n WHERE n.app_id IS NOT NULL
			)
			SELECT n.app_id, $1::text FROM named n
			WHERE n.app_id IS NOT NULL AND NOT EXISTS (SELECT FROM applications a WHERE a.id = n.app_id)
			LIMIT $2`, table, maxDifferences)
		var found []StrayApplication
		if err == nil {
			found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[StrayApplication])
		}
		if pg.SQLState(err) == pg.InsufficientPrivilege {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("store: stray applications: %w", err)
		}
		list = append(list, found...)
	}
	return list, true, nil
}
