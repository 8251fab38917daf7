package pg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"purser/migrations"
)

const (
	policyName = "tenant"
	// policyRule is the one policy of every tenant table; policyText is how Postgres
	// prints it.
	policyRule = `app_id::text = current_setting('purser.app_id', true)`
	policyText = `((app_id)::text = current_setting('purser.app_id'::text, true))`
)

// rights are the grants of the serving role that the migrations state.
type rights struct {
	schemas []string
	Tables  map[string]map[string]bool // table, privilege
}

var (
	grantTables  = regexp.MustCompile(`^GRANT ([A-Z, ]+) ON (?:TABLE )?([a-z0-9_, ]+) TO ` + AppRole + `$`)
	revokeTables = regexp.MustCompile(`^REVOKE ([A-Z, ]+) ON (?:TABLE )?([a-z0-9_, ]+) FROM ` + AppRole + `$`)
	grantSchema  = regexp.MustCompile(`^GRANT USAGE ON SCHEMA ([a-z0-9_]+) TO ` + AppRole + `$`)
	dropTable    = regexp.MustCompile(`^DROP TABLE (?:IF EXISTS )?([a-z0-9_]+)`)
	sqlComment   = regexp.MustCompile(`--[^\n]*`)
	sqlSpace     = regexp.MustCompile(`\s+`)
)

// ExpectedRights reads the grants out of the migration files, so that a grant is
// stated once. A grant in a form that it does not know is an error, and a test
// compares the result with a migrated database.
func ExpectedRights(files fs.FS) (rights, error) {
	names, err := fs.Glob(files, "*.up.sql")
	if err != nil {
		return rights{}, err
	}
	slices.Sort(names)
	r := rights{Tables: map[string]map[string]bool{}}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return rights{}, err
		}
		for chunk := range strings.SplitSeq(string(text), "--bun:split") {
			chunk = strings.TrimSpace(sqlComment.ReplaceAllString(chunk, ""))
			if strings.HasPrefix(chunk, "DO ") {
				continue
			}
			for statement := range strings.SplitSeq(chunk, ";") {
				if err := r.read(strings.TrimSpace(sqlSpace.ReplaceAllString(statement, " "))); err != nil {
					return rights{}, fmt.Errorf("store: migration %s: %w", name, err)
				}
			}
		}
	}
	return r, nil
}

func (r *rights) read(statement string) error {
	if m := grantTables.FindStringSubmatch(statement); m != nil {
		r.set(m[1], m[2], true)
		return nil
	}
	if m := revokeTables.FindStringSubmatch(statement); m != nil {
		r.set(m[1], m[2], false)
		return nil
	}
	if m := grantSchema.FindStringSubmatch(statement); m != nil {
		r.schemas = append(r.schemas, m[1])
		return nil
	}
	if m := dropTable.FindStringSubmatch(statement); m != nil {
		delete(r.Tables, m[1])
		return nil
	}
	if strings.HasPrefix(statement, "GRANT ") || strings.HasPrefix(statement, "REVOKE ") {
		return fmt.Errorf("this grant cannot be read: %s", statement)
	}
	return nil
}

func (r *rights) set(privileges, tables string, granted bool) {
	for table := range strings.SplitSeq(tables, ",") {
		table = strings.TrimSpace(table)
		if r.Tables[table] == nil {
			r.Tables[table] = map[string]bool{}
		}
		for privilege := range strings.SplitSeq(privileges, ",") {
			r.Tables[table][strings.TrimSpace(privilege)] = granted
		}
	}
}

// tableState is what the catalog says about one table.
type tableState struct {
	Name        string
	Privileges  []string // that the serving role has, however it got them
	Tenant      bool     // has a column app_id
	Enabled     bool
	Forced      bool
	Distributed bool
	Policies    []string
	Sound       bool // its one policy is the tenant policy
}

// readTables asks for effective privileges, so that what PUBLIC may do counts too.
const readTables = `
	SELECT c.relname::text,
		ARRAY(SELECT p FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) p WHERE has_any_column_privilege($2::name, c.oid, p)
			UNION ALL SELECT p FROM unnest(ARRAY['DELETE', 'TRUNCATE', 'TRIGGER']) p WHERE has_table_privilege($2::name, c.oid, p)),
		EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'app_id' AND NOT a.attisdropped),
		c.relrowsecurity, c.relforcerowsecurity, %s,
		ARRAY(SELECT polname::text FROM pg_policy WHERE polrelid = c.oid ORDER BY polname),
		coalesce((SELECT count(*) = 1 AND bool_and(polname = $3 AND polcmd = '*' AND polpermissive AND polroles = '{0}'
			AND pg_get_expr(polqual, polrelid) = $4 AND polwithcheck IS NULL) FROM pg_policy WHERE polrelid = c.oid), false)
	FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname = ANY ($1)
	ORDER BY c.relname`

// repair is one difference between the catalog and the migrations, and the
// statement that removes it.
type repair struct{ what, statement string }

// RightsRepairs compares the catalog with the migrations. When a newer binary has
// migrated the database, only grants that are missing count: the rest may be that
// binary's.
func RightsRepairs(ctx context.Context, conn *pgx.Conn, newer bool) ([]repair, error) {
	want, err := ExpectedRights(migrations.FS)
	if err != nil {
		return nil, err
	}
	var repairs []repair
	for _, schema := range want.schemas {
		var granted bool
		if err := conn.QueryRow(ctx, `SELECT has_schema_privilege($1::name, $2::text, 'USAGE')`, AppRole, schema).Scan(&granted); err != nil {
			return nil, err
		}
		if !granted {
			repairs = append(repairs, repair{"USAGE on schema " + schema, "GRANT USAGE ON SCHEMA " + schema + " TO " + AppRole})
		}
	}
	distributed := "false"
	citus, err := HasCitus(ctx, conn)
	if err != nil {
		return nil, err
	}
	if citus {
		distributed = "EXISTS (SELECT FROM pg_dist_partition d WHERE d.logicalrelid = c.oid)"
	}
	names := slices.Sorted(maps.Keys(want.Tables))
	rows, _ := conn.Query(ctx, fmt.Sprintf(readTables, distributed), names, AppRole, policyName, policyText) // CollectRows returns its error
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[tableState])
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, t := range tables {
		found[t.Name] = true
		repairs = append(repairs, t.grants(want.Tables[t.Name], newer)...)
		if !newer && t.Tenant && !slices.Contains(controlTables, t.Name) {
			repairs = append(repairs, t.policies()...)
		}
	}
	for _, name := range names {
		if !found[name] {
			return nil, fmt.Errorf("the table %s is missing although the schema is recorded as migrated: restore the backup again into an empty database", name)
		}
	}
	return repairs, nil
}

func (t tableState) grants(want map[string]bool, newer bool) (repairs []repair) {
	name := pgx.Identifier{t.Name}.Sanitize()
	for _, privilege := range slices.Sorted(maps.Keys(want)) {
		if want[privilege] && !slices.Contains(t.Privileges, privilege) {
			repairs = append(repairs, repair{privilege + " on " + t.Name, fmt.Sprintf("GRANT %s ON %s TO %s", privilege, name, AppRole)})
		}
	}
	for _, privilege := range t.Privileges {
		if !want[privilege] && !newer {
			repairs = append(repairs, repair{"no " + privilege + " on " + t.Name, fmt.Sprintf("REVOKE %s ON %s FROM %s, PUBLIC", privilege, name, AppRole)})
		}
	}
	return repairs
}

func (t tableState) policies() (repairs []repair) {
	name := pgx.Identifier{t.Name}.Sanitize()
	if !t.Sound {
		for _, policy := range t.Policies {
			repairs = append(repairs, repair{"no policy " + policy + " on " + t.Name, fmt.Sprintf("DROP POLICY %s ON %s", pgx.Identifier{policy}.Sanitize(), name)})
		}
		repairs = append(repairs, repair{"the tenant policy on " + t.Name, fmt.Sprintf("CREATE POLICY %s ON %s USING (%s)", policyName, name, policyRule)})
	}
	if !t.Enabled {
		repairs = append(repairs, repair{"row-level security on " + t.Name, "ALTER TABLE " + name + " ENABLE ROW LEVEL SECURITY"})
	}
	// Citus can neither fill nor move shards with forced policies.
	if !t.Forced && !t.Distributed {
		repairs = append(repairs, repair{"forced row-level security on " + t.Name, "ALTER TABLE " + name + " FORCE ROW LEVEL SECURITY"})
	}
	return repairs
}

// repairRights makes grants and policies what the migrations state, in one
// transaction, and lists what it changed. A restored dump loses them when the
// serving role did not exist.
func repairRights(ctx context.Context, conn *pgx.Conn, newer bool) ([]string, error) {
	repairs, err := RightsRepairs(ctx, conn, newer)
	if err != nil || len(repairs) == 0 {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '"+Milliseconds(repairLockTimeout)+"'"); err != nil {
			return err
		}
		for _, r := range repairs {
			if _, err := tx.Exec(ctx, r.statement); err != nil {
				return fmt.Errorf("%s: %w", r.statement, err)
			}
		}
		return nil
	})
	// Without any right on a table GRANT fails; with some right it only warns.
	if SQLState(err) != InsufficientPrivilege && err != nil {
		return nil, err
	}
	left, err := RightsRepairs(ctx, conn, newer)
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		return nil, errors.New(Differ(left) + ": make the login of DATABASE_URL the owner of every table with REASSIGN OWNED, and " + AppRole + " a member of no other role")
	}
	done := make([]string, len(repairs))
	for i, r := range repairs {
		done[i] = r.what
	}
	return done, nil
}

// Differ says in one line how the catalog differs.
func Differ(repairs []repair) string {
	const named = 3
	var names []string
	for _, r := range repairs[:min(named, len(repairs))] {
		names = append(names, r.what)
	}
	text := "the rights of the role " + AppRole + " differ from the schema; it should have " + strings.Join(names, ", ")
	if more := len(repairs) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
