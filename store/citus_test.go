//go:build citus

package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
	"purser/store/verify"
)

// TestCitus needs a Citus cluster, so it is built only with the tag citus and is no part of
// `make test`. CITUS_DSN is the address of a superuser in a database of the coordinator that
// has the extension and its workers:
//
//	CREATE EXTENSION citus; -- on every node
//	SELECT citus_set_coordinator_host('127.0.0.1', 5432);
//	SELECT citus_add_node('127.0.0.1', 5433); -- each worker
//
// Then: CITUS_DSN=postgres://postgres@127.0.0.1/postgres make citus
//
// With the tag, storetest gives every test distributed databases of that cluster, so most
// of the ordinary tests run there as well. What can be shown without a cluster, the rules
// over the statement list show.
func TestCitus(t *testing.T) {
	dsn := storetest.FreshURL(t)
	owner := connect(t, dsn)

	t.Run("the schema is made and distributed, twice", func(t *testing.T) {
		for range 2 {
			noError(t, storetest.Migrate(t.Context(), dsn))
			noError(t, store.Distribute(t.Context(), dsn))
		}
		for _, problem := range schemaProblems(t, owner, false) {
			t.Error(problem)
		}
	})

	db := openStore(t, dsn)
	usage := openUsage(t, db)
	ours, theirs := newFixture(t, db, usage), newFixture(t, db, usage)
	// As the store's own sessions.
	serving := withParameter(withParameter(dsn, "citus.propagate_set_commands", "local"), "citus.enable_local_execution", "off")
	session := citusSession{appSession{connect(t, asApp(serving))}, theirs.application.ID}

	t.Run("the store works, and its books are sound", func(t *testing.T) {
		decision, err := usage.Track(ours.useOf("messages", "over the network"))
		noError(t, err)
		noError(t, decision.Err())
		repeat, err := usage.Track(ours.useOf("messages", "over the network"))
		noError(t, err)
		if repeat.Verdict != metering.Duplicate {
			t.Errorf("the repeat is %s", repeat.Verdict)
		}
		verification, err := ours.Verification().Verify(t.Context(), verify.Options{})
		noError(t, err)
		for _, difference := range verification.Differences {
			if !strings.Contains(difference.String(), "debtor@example.com") { // who owes without a payment
				t.Error(difference)
			}
		}
		wantFault(t, ours.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "tokens", Name: "Again", Unit: "token", Revision: 1, CreatedAt: moment}), fault.AlreadyExists)
	})

	t.Run("rows of applications that do not exist are found on every shard", func(t *testing.T) {
		findsStrayApplications(t, db, owner)
	})

	t.Run("each statement is one task", func(t *testing.T) {
		for _, s := range store.Statements() {
			if slices.ContainsFunc(controlTables, func(table string) bool { return strings.Contains(s.SQL, table) }) {
				continue // on no shard at all
			}
			if strings.HasPrefix(s.Name, "packing: ") {
				continue // of the owner, who is refused on Citus
			}
			plan, err := session.plan(t, s)
			if err != nil || !strings.Contains(plan, "Task Count: 1\n") || strings.Contains(plan, "INSERT/SELECT method") {
				t.Errorf("%s: %v\n%s", s.Name, err, plan)
			}
		}
	})

	for _, table := range tablesOfTenants(t, owner) {
		t.Run(table+" stays closed on every node", func(t *testing.T) {
			columns, row := rowAsSQL(t, owner, table, ours.application.ID)
			text := rowAsText(t, owner, table, columns, ours.application.ID)
			insert := `INSERT INTO ` + table + ` (` + columns + `) `
			for name, setting := range map[string]string{
				"without a setting": "",
				"as a neighbour":    "SET LOCAL purser.app_id = '" + theirs.application.ID.String() + "'",
			} {
				foreign := ` WHERE app_id = '` + ours.application.ID.String() + `'`
				session.touchesNothing(t, setting, `SELECT app_id FROM `+table+foreign)
				session.staysOut(t, name, setting, `SELECT app_id FROM `+table+foreign+` FOR UPDATE`)
				session.staysOut(t, name, setting, `UPDATE `+table+` SET org_id = org_id`+foreign)
				session.staysOut(t, name, setting, insert+`VALUES (`+row+`)`)
				session.staysOut(t, name, setting, insert+`VALUES (`+row+`) ON CONFLICT DO NOTHING`)
				session.staysOut(t, name, setting, insert+`SELECT `+row+` FROM unnest(ARRAY[1]) AS t (n)`)
				session.staysOut(t, name, setting, insert+`SELECT `+row+` FROM app_state s WHERE s.app_id = '`+ours.application.ID.String()+`'`)
				session.cannotCopy(t, setting, table, columns, text)
			}
		})
	}

	t.Run("a migration goes on after the distribution", func(t *testing.T) {
		for _, statement := range []string{
			`ALTER TABLE wallets ADD COLUMN note text`,
			`CREATE INDEX wallets_by_note ON wallets (app_id, note)`,
			`ALTER TABLE wallets DROP COLUMN note`,
		} {
			exec(t, owner, statement)
		}
		if _, err := ours.Wallet(t.Context(), ours.deposit.Identity); err != nil {
			t.Error(err)
		}
	})
}

// citusSession is a session of the role that serves requests.
type citusSession struct {
	appSession
	app ids.ID // in whose name it plans
}

func (s citusSession) plan(t *testing.T, statement store.Statement) (string, error) {
	t.Helper()
	tx, err := s.conn.Begin(t.Context())
	noError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	exec(t, tx, `SET LOCAL purser.app_id = '`+s.app.String()+`'`)
	exec(t, tx, `PREPARE "`+statement.Name+`" AS `+statement.SQL)
	args := []string{"'" + s.app.String() + "'"}
	for _, kind := range texts(t, tx, `SELECT unnest(parameter_types)::text FROM pg_prepared_statements WHERE name = $1`, statement.Name)[1:] {
		args = append(args, sampleOf(t, kind))
	}
	rows, err := tx.Query(t.Context(), `EXPLAIN (COSTS OFF) EXECUTE "`+statement.Name+`"(`+strings.Join(args, ", ")+`)`)
	noError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}

// sampleOf is a value: with NULL, Citus finds no shard to ask, or two different ones.
func sampleOf(t *testing.T, kind string) string {
	t.Helper()
	element := strings.TrimSuffix(kind, "[]")
	sample, known := map[string]string{
		"uuid": "0190f5d2-8c5e-7b7a-9a53-0c8f4f2f6d11", "text": "1", "bytea": "1", "boolean": "true", "jsonb": "{}", "json": "{}",
		"bigint": "1", "integer": "1", "smallint": "1", "numeric": "1", "nanocredits": "1", "billing_interval": "month", "wallet_version": "1", "double precision": "1", "real": "1",
	}[element]
	if !known {
		t.Fatalf("there is no sample of %s", kind)
	}
	if element != kind {
		sample = "{" + sample + "}"
	}
	return "'" + sample + "'"
}

// staysOut takes any refusal: Citus has its own before the policy is asked.
func (s citusSession) staysOut(t *testing.T, who, setting, statement string) {
	t.Helper()
	if n, err := s.run(t, setting, statement); err == nil && n > 0 {
		t.Errorf("%s, %s touches %d rows", who, statement, n)
	}
}

// cannotCopy sends a row, without which no shard is asked.
func (s citusSession) cannotCopy(t *testing.T, setting, table, columns, row string) {
	t.Helper()
	tx, err := s.conn.Begin(t.Context())
	noError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	if setting != "" {
		exec(t, tx, setting)
	}
	_, err = s.conn.PgConn().CopyFrom(t.Context(), strings.NewReader(row), `COPY `+table+` (`+columns+`) FROM STDIN`)
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) {
		t.Errorf("COPY to %s: %v", table, err)
	}
}

// rowAsText is a row of the application as COPY writes it.
func rowAsText(t *testing.T, owner *pgx.Conn, table, columns string, app ids.ID) string {
	t.Helper()
	var text strings.Builder
	_, err := owner.PgConn().CopyTo(t.Context(), &text, `COPY (SELECT `+columns+` FROM `+table+` WHERE app_id = '`+app.String()+`' LIMIT 1) TO STDOUT`)
	noError(t, err)
	return text.String()
}

// rowAsSQL is a row of the application as a list of columns and one of values.
func rowAsSQL(t *testing.T, owner *pgx.Conn, table string, app ids.ID) (columns, values string) {
	t.Helper()
	names := texts(t, owner, `SELECT quote_ident(attname) FROM pg_attribute
		WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, table)
	literals := make([]string, len(names))
	for i, name := range names {
		literals[i] = `quote_nullable(` + name + `::text)`
	}
	rows := texts(t, owner, `SELECT concat_ws(', ', `+strings.Join(literals, ", ")+`) FROM `+table+` WHERE app_id = $1 LIMIT 1`, app)
	if len(rows) == 0 {
		t.Fatalf("the fixture has nothing in %s, so nothing is shown", table)
	}
	return strings.Join(names, ", "), rows[0]
}
