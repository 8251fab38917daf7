//go:build citus

package store_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/verify"
)

// TestCitus needs a Citus cluster, so it is built only with the tag citus and is no
// part of `make test`. CITUS_DSN names a database there, for the role that is to own
// the tables. One node that holds its own shards is enough. What can be shown without
// a cluster, the rules over the statement list show.
//
// Before the first run, as superuser in an empty database:
//
//	CREATE EXTENSION citus;
//	SELECT citus_set_coordinator_host('127.0.0.1', 5432);
//	SELECT citus_set_node_property('127.0.0.1', 5432, 'shouldhaveshards', true);
//	CREATE ROLE purser_owner LOGIN CREATEROLE;
//	ALTER DATABASE purser OWNER TO purser_owner;
//
// Then: CITUS_DSN=postgres://purser_owner@127.0.0.1/purser make citus
func TestCitus(t *testing.T) {
	dsn := os.Getenv("CITUS_DSN")
	if dsn == "" {
		t.Fatal("CITUS_DSN is not set")
	}
	owner := connect(t, dsn)

	t.Run("the schema is made and distributed, twice", func(t *testing.T) {
		for range 2 {
			noError(t, store.Migrate(t.Context(), dsn))
			noError(t, store.Distribute(t.Context(), dsn))
		}
		for _, problem := range schemaProblems(t, owner, false) {
			t.Error(problem)
		}
	})

	db := openStore(t, dsn)
	usage := openUsage(t, db)
	ours, theirs := newHousehold(t, db, usage), newHousehold(t, db, usage)
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
		if len(verification.Differences) > 0 {
			t.Error(verification.Differences)
		}
		wantFault(t, ours.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "tokens", Name: "Again", Unit: "token", Revision: 1, CreatedAt: moment}), fault.AlreadyExists)
	})

	t.Run("each statement is one task", func(t *testing.T) {
		for _, s := range store.Statements() {
			if slices.ContainsFunc(controlTables, func(table string) bool { return strings.Contains(s.SQL, table) }) {
				continue // on no shard at all
			}
			if plan := session.plan(t, s); !strings.Contains(plan, "Task Count: 1") || strings.Contains(plan, "INSERT/SELECT method") {
				t.Errorf("%s:\n%s", s.Name, plan)
			}
		}
	})

	for _, table := range tablesOfTenants(t, owner) {
		t.Run(table+" stays closed on every node", func(t *testing.T) {
			columns, row := rowAsSQL(t, owner, table, ours.application.ID)
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
				session.cannotCopy(t, setting, table, columns)
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

func (s citusSession) plan(t *testing.T, statement store.Statement) string {
	t.Helper()
	tx, err := s.conn.Begin(t.Context())
	noError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	exec(t, tx, `SET LOCAL purser.app_id = '`+s.app.String()+`'`)
	exec(t, tx, `PREPARE "`+statement.Name+`" AS `+statement.SQL)
	args := fmt.Sprintf("'%s'%s", s.app, strings.Repeat(", NULL", parametersOf(t, statement)-1))
	return strings.Join(texts(t, tx, `EXPLAIN (COSTS OFF) EXECUTE "`+statement.Name+`"(`+args+`)`), "\n")
}

// staysOut takes any refusal: Citus has its own before the policy is asked.
func (s citusSession) staysOut(t *testing.T, who, setting, statement string) {
	t.Helper()
	if n, err := s.run(t, setting, statement); err == nil && n > 0 {
		t.Errorf("%s, %s touches %d rows", who, statement, n)
	}
}

// cannotCopy sends nothing: the refusal comes before the first row.
func (s citusSession) cannotCopy(t *testing.T, setting, table, columns string) {
	t.Helper()
	tx, err := s.conn.Begin(t.Context())
	noError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	if setting != "" {
		exec(t, tx, setting)
	}
	_, err = s.conn.PgConn().CopyFrom(t.Context(), strings.NewReader(""), `COPY `+table+` (`+columns+`) FROM STDIN`)
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) {
		t.Errorf("COPY to %s: %v", table, err)
	}
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
		t.Fatalf("the household has nothing in %s, so nothing is shown", table)
	}
	return strings.Join(names, ", "), rows[0]
}
