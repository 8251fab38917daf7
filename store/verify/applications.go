package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

// StrayApplication is an application that rows name and that does not exist.
type StrayApplication struct {
	AppID ids.ID
	Table string
}

// strayApplications names the queries in errors.
const strayApplications = "stray applications"

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
		if _, err := pg.ExecSQL(ctx, tx, setting, setting); err != nil {
			return nil, false, err
		}
	}
	tables, err := pg.CollectSQL(ctx, tx, "tables of tenants", pgx.RowTo[string], `
		SELECT c.relname::text
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'app_id' AND NOT a.attisdropped
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
		ORDER BY c.relname`)
	if err != nil {
		return nil, false, err
	}
	if i.db.Distributed {
		tables = append(slices.DeleteFunc(tables, func(table string) bool { return !pg.IsControl(table) }), onShards)
	}
	for _, table := range tables {
		found, err := straysIn(ctx, tx, table)
		if pg.SQLState(err) == pg.InsufficientPrivilege {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		list = append(list, found...)
	}
	return list, true, nil
}

// namedIn goes from one application to the next along the key, whatever they hold.
func namedIn(table string) string {
	return `
		WITH RECURSIVE named AS (
			(SELECT app_id FROM ` + table + ` ORDER BY app_id LIMIT 1)
			UNION ALL
			SELECT (SELECT t.app_id FROM ` + table + ` t WHERE t.app_id > n.app_id ORDER BY t.app_id LIMIT 1)
			FROM named n WHERE n.app_id IS NOT NULL
		)`
}

func straysIn(ctx context.Context, tx pgx.Tx, table string) ([]StrayApplication, error) {
	if table == onShards {
		return straysOnShards(ctx, tx)
	}
	return pg.CollectSQL(ctx, tx, strayApplications, pgx.RowToStructByPos[StrayApplication], namedIn(pgx.Identifier{table}.Sanitize())+`
		SELECT n.app_id, $1::text FROM named n
		WHERE n.app_id IS NOT NULL AND NOT EXISTS (SELECT FROM applications a WHERE a.id = n.app_id)
		LIMIT $2`, table, maxDifferences)
}

// onShards means every distributed table.
const onShards = "*"

// askShards has each shard group asked once, about all of its tables: a recursive query
// runs on one shard. $1 is the query of a shard, with its name and that of its table.
const askShards = `
	WITH asked AS (
		SELECT p.nodename::text AS host, p.nodeport::int AS port, string_agg(format($1, shard_name(s.logicalrelid, s.shardid), s.logicalrelid), ' UNION ALL ') AS parts
		FROM pg_dist_shard s JOIN pg_dist_shard_placement p USING (shardid)
		GROUP BY p.nodename, p.nodeport, s.shardminvalue
	), command AS (
		SELECT array_agg(host) AS hosts, array_agg(port) AS ports, array_agg('SELECT string_agg(name, '' '') FROM (' || parts || ') AS shard (name)') AS texts
		FROM asked
	)
	SELECT r.success, coalesce(r.result, '') FROM command c CROSS JOIN LATERAL master_run_on_worker(c.hosts, c.ports, c.texts, true) r`

// straysOnShards compares the applications that shards name with those of the coordinator.
func straysOnShards(ctx context.Context, tx pgx.Tx) ([]StrayApplication, error) {
	// Shards are asked on sessions without the settings of this one, so these are tried first.
	if _, err := pg.ExecSQL(ctx, tx, strayApplications, `SELECT app_id FROM `+pg.AnchorTable+` LIMIT 1`); err != nil {
		return nil, err
	}
	var tables, apps []string
	_, err := pg.CollectSQL(ctx, tx, strayApplications, func(row pgx.CollectableRow) (struct{}, error) {
		var success bool
		var result string
		err := row.Scan(&success, &result)
		if err == nil && !success {
			err = fmt.Errorf("a shard: %s", result)
		}
		for name := range strings.FieldsSeq(result) {
			table, app, _ := strings.Cut(name, ":")
			tables, apps = append(tables, table), append(apps, app)
		}
		return struct{}{}, err
	}, askShards, `(`+namedIn("%1$s")+` SELECT '%2$s:' || app_id FROM named WHERE app_id IS NOT NULL)`)
	if err != nil {
		return nil, err
	}
	return pg.CollectSQL(ctx, tx, strayApplications, pgx.RowToStructByPos[StrayApplication], `
		SELECT n.app_id, n.table_name FROM unnest($1::text[]::uuid[], $2::text[]) AS n (app_id, table_name)
		WHERE NOT EXISTS (SELECT FROM applications a WHERE a.id = n.app_id)
		LIMIT $3`, apps, tables, maxDifferences)
}
