package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/store"
	"purser/store/storetest"
)

var (
	// controlTables have a column app_id and still belong to no application: they
	// are asked before it is known which one a request, or work, is for.
	controlTables = []string{"connection_directory", "key_directory", "work_hints"}

	// listTables hold lists that are replaced as a whole, what is done with, names that
	// the provider has given up, what is only good for a while, and the objects of the
	// payments sandbox. A period is billed until its charge is reversed, and
	// notifications are kept for some months. No other table loses a row.
	listTables = []string{"alert_rules", "billed_periods", "debtors", "deleted_endpoints", "deliveries", "delivery_attempts", "denial_records", "event_properties", "feature_references", "leases", "notifications", "pending_seals", "provider_customers", "request_failures", "sandbox_objects", "webhook_endpoints", "webhook_events", "work_queue"}

	// appendOnly tables are what a charge is explained by: no row of them ever
	// changes or goes. Properties of events are not of them: an erasure deletes them.
	appendOnly = []string{"adjustments", "journal", "prices", "reversals", "transfers", "usage_events"}
)

const policyExpression = `((app_id)::text = current_setting('purser.app_id'::text, true))`

// tenantTables finds them by their column, so that a new table is one of them
// before anyone thinks of it.
const tenantTables = `
	WITH tenant AS (
		SELECT c.oid, c.relname, c.relrowsecurity, c.relforcerowsecurity, a.attnum AS app_id,
			a.atttypid = 'uuid'::regtype AND a.attnotnull AS app_id_is_sound
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'app_id' AND NOT a.attisdropped
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> ALL (@control)
	)`

// keyRules is the second wall. Each query gives a sentence for every place where
// its rule is broken.
var keyRules = []string{
	`SELECT relname || '.app_id is not a uuid that is always there' FROM tenant WHERE NOT app_id_is_sound`,

	// An event may leave it out: there are far more events than rows of anything else.
	`SELECT relname || ' has no org_id that is always there' FROM tenant
	WHERE NOT EXISTS (SELECT FROM pg_attribute a
		WHERE a.attrelid = tenant.oid AND a.attname = 'org_id' AND a.atttypid = 'uuid'::regtype AND (a.attnotnull OR tenant.relname = 'usage_events'))`,

	`SELECT relname || ' has no primary key' FROM tenant
	WHERE NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = tenant.oid AND i.indisprimary)`,

	`SELECT 'the unique index ' || i.indexrelid::regclass || ' does not begin with app_id'
	FROM tenant JOIN pg_index i ON i.indrelid = tenant.oid AND i.indisunique WHERE i.indkey[0] <> tenant.app_id`,

	`SELECT 'the foreign key ' || k.conname || ' does not begin with app_id on both sides'
	FROM tenant JOIN pg_constraint k ON k.conrelid = tenant.oid AND k.contype = 'f' JOIN tenant target ON target.oid = k.confrelid
	WHERE k.conkey[1] <> tenant.app_id OR k.confkey[1] <> target.app_id`,

	`SELECT 'the foreign key ' || k.conname || ' leads from ' || k.conrelid::regclass || ' to ' || k.confrelid::regclass
	FROM pg_constraint k WHERE k.contype = 'f'
	  AND (k.conrelid IN (SELECT oid FROM tenant)) <> (k.confrelid IN (SELECT oid FROM tenant))`,

	`SELECT 'the foreign key ' || k.conname || ' changes rows on its own'
	FROM tenant JOIN pg_constraint k ON k.conrelid = tenant.oid AND k.contype = 'f'
	WHERE k.confdeltype NOT IN ('a', 'r') OR k.confupdtype NOT IN ('a', 'r')`,

	`SELECT 'the constraint ' || k.conname || ' can be deferred'
	FROM tenant JOIN pg_constraint k ON k.conrelid = tenant.oid WHERE k.condeferrable`,

	`SELECT relname || ' has the trigger ' || t.tgname
	FROM tenant JOIN pg_trigger t ON t.tgrelid = tenant.oid AND NOT t.tgisinternal`,

	`SELECT relname || ' has the rule ' || r.rulename FROM tenant JOIN pg_rewrite r ON r.ev_class = tenant.oid`,

	`SELECT relname || '.' || a.attname || ' is filled in by Postgres'
	FROM tenant JOIN pg_attribute a ON a.attrelid = tenant.oid AND a.attnum > 0
	LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
	WHERE a.attidentity <> '' OR a.attgenerated <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE '%(%'`,

	`SELECT relname || ' is a view, which reads with the rights of its owner'
	FROM pg_class v WHERE relnamespace = 'public'::regnamespace AND relkind IN ('v', 'm')
		AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = v.oid AND d.deptype = 'e')`,

	`SELECT p.oid::regprocedure || ' runs with the rights of its owner'
	FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef`,

	`SELECT 'the table ' || name || ' is in a list of this test, and nowhere else'
	FROM unnest(@control::text[] || @append_only::text[] || @lists::text[]) AS name
	WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = to_regclass(name) AND a.attname = 'app_id')`,
}

// roleRules is what the role that serves requests must not be able to do.
var roleRules = []string{
	`SELECT 'there is no role ' || @role::text WHERE to_regrole(@role) IS NULL`,

	`SELECT rolname || ' may do more than serve' FROM pg_roles WHERE rolname = @role
	  AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication)`,

	`SELECT @role || ' owns ' || pg_describe_object(classid, objid, 0) FROM pg_shdepend
	WHERE refobjid = to_regrole(@role) AND deptype = 'o' AND dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))`,

	`SELECT @role || ' is a member of ' || roleid::regrole FROM pg_auth_members WHERE member = to_regrole(@role)`,

	`SELECT @role || ' may create in the schema' WHERE has_schema_privilege(@role, 'public', 'CREATE')`,

	`SELECT @role || ' may change schema_migrations' WHERE has_table_privilege(@role, 'schema_migrations', 'INSERT, UPDATE, DELETE, TRUNCATE')`,

	`SELECT @role || ' may ' || privilege || ' ' || relname
	FROM tenant CROSS JOIN unnest(ARRAY['DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS privilege
	WHERE has_table_privilege(@role, tenant.oid, privilege) AND NOT (privilege = 'DELETE' AND relname = ANY (@lists))`,

	`SELECT @role || ' may change rows of ' || relname FROM tenant
	WHERE relname = ANY (@append_only) AND has_any_column_privilege(@role, tenant.oid, 'UPDATE')`,
}

// policyRules is the third wall. Once the tables are distributed they are not
// forced any more: that would bind nobody but their owner, and stop shards from moving.
var policyRules = []string{
	`SELECT relname || ' does not have row-level security enabled' FROM tenant WHERE NOT relrowsecurity`,

	`SELECT relname || CASE WHEN @forced THEN ' does not force' ELSE ' still forces' END || ' its row-level security' FROM tenant
	WHERE relforcerowsecurity <> @forced`,

	`SELECT relname || ' has ' || count(p.oid) || ' policies'
	FROM tenant LEFT JOIN pg_policy p ON p.polrelid = tenant.oid GROUP BY relname HAVING count(p.oid) <> 1`,

	`SELECT relname || ': the policy ' || p.polname || ' is not for all commands of all roles'
	FROM tenant JOIN pg_policy p ON p.polrelid = tenant.oid
	WHERE p.polcmd <> '*' OR NOT p.polpermissive OR p.polroles <> '{0}'`,

	`SELECT relname || ': the policy ' || p.polname || ' says ' || pg_get_expr(p.polqual, p.polrelid)
	FROM tenant JOIN pg_policy p ON p.polrelid = tenant.oid
	WHERE pg_get_expr(p.polqual, p.polrelid) IS DISTINCT FROM @expression`,

	`SELECT relname || ': the policy ' || p.polname || ' checks new rows by ' || pg_get_expr(p.polwithcheck, p.polrelid)
	FROM tenant JOIN pg_policy p ON p.polrelid = tenant.oid WHERE p.polwithcheck IS NOT NULL`,
}

// schemaProblems lists where the schema breaks the rules of the second and third
// wall.
func schemaProblems(tb testing.TB, on execer, forced bool) (problems []string) {
	tb.Helper()
	for _, rule := range slices.Concat(keyRules, roleRules, policyRules) {
		problems = append(problems, texts(tb, on, tenantTables+rule, pgx.NamedArgs{
			"control": controlTables, "append_only": appendOnly, "lists": listTables, "role": store.AppRole,
			"forced": forced, "expression": policyExpression,
		})...)
	}
	return problems
}

// tablesOfTenants lists the tables that the walls stand around.
func tablesOfTenants(tb testing.TB, on execer) []string {
	tb.Helper()
	return texts(tb, on, tenantTables+`SELECT relname::text FROM tenant ORDER BY relname`, pgx.NamedArgs{"control": controlTables})
}

func TestTheSchemaKeepsTheWalls(t *testing.T) {
	t.Parallel()
	conn := connect(t, storetest.URL(t))
	if tables := tablesOfTenants(t, conn); len(tables) < 12 || !slices.Contains(tables, "wallets") {
		t.Fatalf("only these tables were looked at: %v", tables)
	}
	for _, problem := range schemaProblems(t, conn, !storetest.Distributed(t)) {
		t.Error(problem)
	}
}

func TestTheSchemaCheckFinds(t *testing.T) {
	t.Parallel()
	conn := connect(t, storetest.FreshURL(t))

	finds := func(t *testing.T, want string, changes ...string) {
		t.Helper()
		tx, err := conn.Begin(t.Context())
		noError(t, err)
		defer func() { noError(t, tx.Rollback(context.Background())) }()
		for _, change := range changes {
			exec(t, tx, change)
		}
		if problems := schemaProblems(t, tx, true); !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("it finds %q, not %q", problems, want)
		}
	}

	for _, table := range tablesOfTenants(t, conn) {
		t.Run("the missing policy of "+table, func(t *testing.T) {
			finds(t, table+" has 0 policies", "DROP POLICY tenant ON "+table)
		})
		t.Run("a second policy of "+table, func(t *testing.T) {
			finds(t, table+" has 2 policies", "CREATE POLICY second ON "+table+" USING (true)")
		})
		t.Run("security switched off on "+table, func(t *testing.T) {
			finds(t, table+" does not have row-level security enabled", fmt.Sprintf("ALTER TABLE %s DISABLE ROW LEVEL SECURITY", table))
			finds(t, table+" does not force", fmt.Sprintf("ALTER TABLE %s NO FORCE ROW LEVEL SECURITY", table))
		})
	}

	for name, c := range map[string]struct {
		want    string
		changes []string
	}{
		"a policy for reading only":       {"is not for all commands", []string{`DROP POLICY tenant ON wallets`, `CREATE POLICY tenant ON wallets FOR SELECT USING (true)`}},
		"a policy for one role":           {"is not for all commands", []string{`ALTER POLICY tenant ON wallets TO purser_app`}},
		"an open policy":                  {"the policy tenant says true", []string{`ALTER POLICY tenant ON wallets USING (true)`}},
		"a policy open to new rows":       {"checks new rows by true", []string{`ALTER POLICY tenant ON wallets WITH CHECK (true)`}},
		"a table without anything":        {"bare does not have row-level security", []string{`CREATE TABLE bare (app_id uuid)`}},
		"an app_id of another kind":       {"bare.app_id is not a uuid", []string{`CREATE TABLE bare (app_id bigint NOT NULL)`}},
		"an app_id that may be missing":   {"bare.app_id is not a uuid", []string{`CREATE TABLE bare (app_id uuid)`}},
		"a table without an organization": {"bare has no org_id", []string{`CREATE TABLE bare (app_id uuid NOT NULL)`}},
		"a table without a primary key":   {"bare has no primary key", []string{`CREATE TABLE bare (app_id uuid NOT NULL)`}},
		"a key that begins otherwise":     {"bare_pkey does not begin with app_id", []string{`CREATE TABLE bare (app_id uuid, id uuid, PRIMARY KEY (id, app_id))`}},
		"a unique index over all":         {"global does not begin with app_id", []string{`CREATE UNIQUE INDEX global ON wallets (identity)`}},
		"a reference past app_id":         {"does not begin with app_id on both sides", []string{`ALTER TABLE wallets ADD UNIQUE (id, app_id)`, `CREATE TABLE bare (app_id uuid, wallet uuid, FOREIGN KEY (wallet, app_id) REFERENCES wallets (id, app_id))`}},
		"a reference from outside":        {"leads from bare to app_state", []string{`CREATE TABLE bare (app uuid REFERENCES app_state (app_id))`}},
		"a reference to the outside":      {"leads from wallets to organizations", []string{`ALTER TABLE wallets ADD FOREIGN KEY (org_id) REFERENCES organizations (id)`}},
		"a reference that deletes":        {"changes rows on its own", []string{`ALTER TABLE balances ADD FOREIGN KEY (app_id) REFERENCES app_state (app_id) ON DELETE CASCADE`}},
		"a constraint that can wait":      {"can be deferred", []string{`ALTER TABLE wallets ADD UNIQUE (app_id, version) DEFERRABLE`}},
		"a trigger":                       {"wallets has the trigger suppress", []string{`CREATE TRIGGER suppress BEFORE UPDATE ON wallets FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`}},
		"a rule":                          {"wallets has the rule nothing", []string{`CREATE RULE nothing AS ON DELETE TO wallets DO INSTEAD NOTHING`}},
		"a serial number":                 {"wallets.number is filled in", []string{`ALTER TABLE wallets ADD number bigserial`}},
		"an identity column":              {"wallets.number is filled in", []string{`ALTER TABLE wallets ADD number bigint GENERATED ALWAYS AS IDENTITY`}},
		"a clock in a default":            {"wallets.made is filled in", []string{`ALTER TABLE wallets ADD made timestamptz DEFAULT now()`}},
		"a view":                          {"everyone is a view", []string{`CREATE VIEW everyone AS SELECT identity FROM wallets`}},
		"a function with the owner's eye": {"peek() runs with the rights of its owner", []string{`CREATE FUNCTION peek() RETURNS int LANGUAGE sql SECURITY DEFINER RETURN 1`}},
		"the right to delete":             {"may DELETE wallets", []string{`GRANT DELETE ON wallets TO purser_app`}},
		"the right to truncate":           {"may TRUNCATE counters", []string{`GRANT TRUNCATE ON counters TO purser_app`}},
		"the right to rewrite history":    {"may change rows of journal", []string{`GRANT UPDATE ON journal TO purser_app`}},
		"the right to rewrite one column": {"may change rows of usage_events", []string{`GRANT UPDATE (quantity) ON usage_events TO purser_app`}},
		"rights that everybody has":       {"may DELETE wallets", []string{`GRANT DELETE ON wallets TO public`}},
		"a role that owns a table":        {"owns table wallets", []string{`ALTER TABLE wallets OWNER TO purser_app`}},
		"a role that may create tables":   {"may create in the schema", []string{`GRANT CREATE ON SCHEMA public TO purser_app`}},
		"a role that notes migrations":    {"may change schema_migrations", []string{`GRANT INSERT ON schema_migrations TO purser_app`}},
		"a stale list in this test":       {"prices is in a list of this test", []string{`DROP TABLE prices`}},
	} {
		t.Run(name, func(t *testing.T) { finds(t, c.want, c.changes...) })
	}
}

// Roles are the whole cluster's, which other tests use at the same time, so these
// changes are seen by nobody else: they are rolled back.
func TestTheSchemaCheckFindsAStrongRole(t *testing.T) {
	t.Parallel()
	conn := connect(t, storetest.URL(t))
	for _, change := range []string{
		`ALTER ROLE purser_app BYPASSRLS`, `ALTER ROLE purser_app SUPERUSER`, `ALTER ROLE purser_app CREATEROLE`,
		`GRANT pg_read_all_data TO purser_app`,
	} {
		tx, err := conn.Begin(t.Context())
		noError(t, err)
		exec(t, tx, change)
		if problems := schemaProblems(t, tx, true); len(problems) == 0 {
			t.Errorf("%s: it finds nothing", change)
		}
		noError(t, tx.Rollback(t.Context()))
	}
}
