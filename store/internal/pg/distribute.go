package pg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/limits"
)

const (
	distributeTable = `SELECT create_distributed_table($1::text::regclass, 'app_id', colocate_with => $2)`
)

// controlTables have a column app_id and still belong to no application: they are
// asked before it is known which one a request, or work, is for.
var controlTables = []string{"connection_directory", "key_directory", "work_hints"}

// IsControl reports a control table, which stays on the coordinator.
func IsControl(table string) bool { return slices.Contains(controlTables, table) }

// Distribute spreads the tables of applications over the nodes of a Citus cluster
// by app_id, once the schema is up to date. It may be repeated: what is
// distributed stays, and a table that came since then joins the others. The role
// in the address must own the tables.
//
// Rows that are there are copied, and writes wait meanwhile. The originals stay on
// disk, hidden, until truncate_local_data_after_distributing_table is called.
//
// The ordinary tests run it against an imitation of Citus' catalog and functions, and
// with the build tag citus against the cluster that CITUS_DSN names.
func Distribute(ctx context.Context, ownerURL string) error {
	config, err := pgx.ParseConfig(ownerURL)
	if err != nil {
		return fmt.Errorf("store: the database address cannot be read: %w", WithoutPassword(err))
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("store: the database does not answer: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return fmt.Errorf("store: waiting for other migrations: %w", err)
	}
	if err := checkUnpacked(ctx, conn); err != nil {
		return fmt.Errorf("store: distributing: %w", err)
	}
	var citus bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_proc WHERE proname = 'create_distributed_table')`).Scan(&citus); err != nil {
		return fmt.Errorf("store: distributing: %w", err)
	}
	if !citus {
		return errors.New("store: distributing: the database has no Citus: create the extension first")
	}
	return distribute(ctx, conn)
}

// checkUnpacked refuses a database in which packing has begun: Citus copies rows in sessions
// that the constraint of usage_events refuses, and packed events are not looked up there.
func checkUnpacked(ctx context.Context, conn *pgx.Conn) error {
	if distributed, err := IsDistributed(ctx, conn); err != nil || distributed {
		return err
	}
	var packing bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_constraint
		WHERE conrelid = to_regclass('public.usage_events') AND conname = 'session_reads_packed_events')`).Scan(&packing)
	if err != nil {
		return err
	}
	if packing {
		return errors.New("'purser pack' has run on this database, and a database with packed events can't be distributed: keep it on one Postgres")
	}
	return nil
}

// distribute prepares the serving role and distributes every table that is not. The
// connection holds the migration lock.
func distribute(ctx context.Context, conn *pgx.Conn) error {
	if err := prepareRoleForShards(ctx, conn); err != nil {
		return fmt.Errorf("store: distributing: %w", err)
	}
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return distributeTables(ctx, tx) }); err != nil {
		return fmt.Errorf("store: distributing: %w", err)
	}
	return nil
}

// shardSettings are settings of the serving role: a session's own do not reach the
// workers, to which the coordinator connects as this role.
func shardSettings(session limits.Session) map[string]string {
	settings := maps.Clone(CitusParameters)
	settings["lock_timeout"] = Milliseconds(session.Lock)
	settings["statement_timeout"] = Milliseconds(session.Statement)
	settings["idle_in_transaction_session_timeout"] = Milliseconds(session.Idle)
	return settings
}

// prepareRoleForShards lets the serving role log in, as which the coordinator connects to
// the workers, and sets the role's settings. Each is a statement of its own, outside of
// the transaction that distributes, and none runs twice.
func prepareRoleForShards(ctx context.Context, conn *pgx.Conn) error {
	var mayLogIn bool
	var set []string
	err := conn.QueryRow(ctx, `SELECT rolcanlogin,
			coalesce((SELECT setconfig FROM pg_db_role_setting WHERE setrole = r.oid AND setdatabase = 0), '{}')
		FROM pg_roles r WHERE rolname = $1`, AppRole).Scan(&mayLogIn, &set)
	if err != nil {
		return err
	}
	var statements []string
	if !mayLogIn {
		statements = append(statements, "ALTER ROLE "+AppRole+" LOGIN")
	}
	wanted := shardSettings(limits.Current())
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !slices.Contains(set, name+"="+wanted[name]) {
			statements = append(statements, fmt.Sprintf("ALTER ROLE %s SET %s = '%s'", AppRole, name, wanted[name]))
		}
	}
	for _, sql := range statements {
		_, err := conn.Exec(ctx, sql)
		if SQLState(err) == InsufficientPrivilege {
			return fmt.Errorf("the login may not change the role %s: run %s; as a superuser", AppRole, strings.Join(statements, "; "))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

func distributeTables(ctx context.Context, tx pgx.Tx) error {
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
		with := AnchorTable
		if t.Name == AnchorTable {
			with = "none"
		}
		if _, err := tx.Exec(ctx, distributeTable, t.Name, with); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return nil
}

// leftLocal lists the tables of applications that are not distributed although others
// are. A join of the two kinds under row-level security is not safe on Citus.
func leftLocal(ctx context.Context, conn *pgx.Conn) (names []string, err error) {
	if distributed, err := IsDistributed(ctx, conn); err != nil || !distributed {
		return nil, err
	}
	tables, err := tablesInOrder(ctx, conn)
	for _, t := range tables {
		if !t.Distributed {
			names = append(names, t.Name)
		}
	}
	return names, err
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
func tablesInOrder(ctx context.Context, tx querier) ([]tenantTable, error) {
	rows, _ := tx.Query(ctx, `
		SELECT c.relname::text, c.relforcerowsecurity,
			EXISTS (SELECT FROM pg_dist_partition d WHERE d.logicalrelid = c.oid),
			ARRAY(SELECT p.relname::text FROM pg_constraint k JOIN pg_class p ON p.oid = k.confrelid
				WHERE k.conrelid = c.oid AND k.contype = 'f' AND p.oid <> c.oid)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'app_id' AND NOT a.attisdropped
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> ALL ($1)
		ORDER BY c.relname <> $2, c.relname`, controlTables, AnchorTable) // CollectRows returns its error
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
