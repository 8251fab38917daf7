package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/pg"
)

const (
	// anchorTable is distributed first. The rows of an application lie on the node
	// that has its row of this table.
	anchorTable = "app_state"

	distributeTable = `SELECT create_distributed_table($1::text::regclass, 'app_id', colocate_with => $2)`
)

// controlTables have a column app_id and still belong to no application: they are
// asked before it is known which one a request, or work, is for.
var controlTables = []string{"connection_directory", "key_directory", "work_hints"}

// Distribute spreads the tables of applications over the nodes of a Citus cluster
// by app_id, once the schema is up to date. It may be repeated: what is
// distributed stays, and a table that came since then joins the others. The role
// in the address must own the tables.
//
// Rows that are there are copied, and writes wait meanwhile. The originals stay on
// disk, hidden, until truncate_local_data_after_distributing_table is called.
//
// What it asks of Citus was tried by hand on version 13.2; the tests run it against
// an imitation, and with the build tag citus against the cluster that CITUS_DSN names.
func Distribute(ctx context.Context, ownerURL string) error {
	config, err := pgx.ParseConfig(ownerURL)
	if err != nil {
		return fmt.Errorf("store: the database address cannot be read: %w", pg.WithoutPassword(err))
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("store: the database does not answer: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return distribute(ctx, tx) }); err != nil {
		return fmt.Errorf("store: distributing: %w", err)
	}
	return nil
}

func distribute(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
		return err
	}
	var citus bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_proc WHERE proname = 'create_distributed_table')`).Scan(&citus); err != nil {
		return err
	}
	if !citus {
		return errors.New("the database has no Citus: create the extension first")
	}
	tables, err := tablesInOrder(ctx, tx)
	if err != nil {
		return err
	}
	// Forced policies bind only the owner, who serves no requests, and Citus can neither
	// fill nor move shards under them.
	for _, t := range tables {
		if !t.Forced {
			continue
		}
		if _, err := tx.Exec(ctx, `ALTER TABLE `+pgx.Identifier{t.Name}.Sanitize()+` NO FORCE ROW LEVEL SECURITY`); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if t.Distributed {
			continue
		}
		with := anchorTable
		if t.Name == anchorTable {
			with = "none"
		}
		if _, err := tx.Exec(ctx, distributeTable, t.Name, with); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return nil
}

// tenantTable is a table with rows of applications.
type tenantTable struct {
	Name        string
	Forced      bool
	Distributed bool
	Parents     []string // the tables that its foreign keys lead to
}

// tablesInOrder lists the tables of applications, each after those that it refers
// to. They are known by their column, so none is forgotten.
func tablesInOrder(ctx context.Context, tx pgx.Tx) ([]tenantTable, error) {
	rows, err := tx.Query(ctx, `
		SELECT c.relname::text, c.relforcerowsecurity,
			EXISTS (SELECT FROM pg_dist_partition d WHERE d.logicalrel = c.oid),
			ARRAY(SELECT p.relname::text FROM pg_constraint k JOIN pg_class p ON p.oid = k.confrelid
				WHERE k.conrelid = c.oid AND k.contype = 'f' AND p.oid <> c.oid)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'app_id' AND NOT a.attisdropped
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> ALL ($1)
		ORDER BY c.relname <> $2, c.relname`, controlTables, anchorTable)
	if err != nil {
		return nil, err
	}
	waiting, err := pgx.CollectRows(rows, pgx.RowToStructByPos[tenantTable])
	if err != nil {
		return nil, err
	}
	var ordered []tenantTable
	for len(waiting) > 0 {
		next := slices.IndexFunc(waiting, func(t tenantTable) bool {
			return !slices.ContainsFunc(waiting, func(other tenantTable) bool { return slices.Contains(t.Parents, other.Name) })
		})
		if next < 0 {
			return nil, errors.New("tables refer to each other in a circle")
		}
		ordered = append(ordered, waiting[next])
		waiting = slices.Delete(waiting, next, next+1)
	}
	return ordered, nil
}
