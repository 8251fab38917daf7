package store_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/store"
	"purser/store/embedded"
	"purser/store/storetest"
	"purser/store/verify"
)

// prepare is store.Prepare, and gives what it logged.
func prepare(t *testing.T, address string) string {
	t.Helper()
	var log bytes.Buffer
	noError(t, store.Prepare(t.Context(), address, slog.New(slog.NewTextHandler(&log, nil))))
	return log.String()
}

// A dump is restored by an operator in a hurry: onto a server that never had the
// serving role, or that has it, and every complaint of the restore is ignored.
func TestARestoredDumpServesBehindItsWalls(t *testing.T) {
	t.Parallel()
	source := storetest.FreshURL(t)
	db := openStore(t, source)
	usage := openUsage(t, db)
	ours, theirs := newFixture(t, db, usage), newFixture(t, db, usage)
	before, err := ours.Verification().Verify(t.Context(), verify.Options{})
	noError(t, err)

	folder := t.TempDir()
	plain, custom := filepath.Join(folder, "purser.sql"), filepath.Join(folder, "purser.dump")
	for format, file := range map[string]string{"plain": plain, "custom": custom} {
		if complaints, err := storetest.RunProgram(t, "pg_dump", "--format", format, "--file", file, source); err != nil {
			t.Fatal(err, complaints)
		}
	}
	server, err := embedded.Start(t.Context(), embedded.Options{Dir: storetest.DataDir(t)})
	noError(t, err)
	t.Cleanup(func() { noError(t, server.Stop(context.Background())) })
	cluster := connect(t, server.URL("postgres"))

	restorePlain := func(t *testing.T, target string) string {
		complaints, _ := storetest.RunProgram(t, "psql", "--quiet", "--no-psqlrc", "--output", filepath.Join(folder, "out"), "--dbname", target, "--file", plain)
		return complaints
	}
	restoreCustom := func(t *testing.T, target string) string {
		complaints, _ := storetest.RunProgram(t, "pg_restore", "--dbname", target, custom)
		return complaints
	}
	restoreBare := func(t *testing.T, target string) string {
		complaints, _ := storetest.RunProgram(t, "pg_restore", "--no-owner", "--no-privileges", "--dbname", target, custom)
		return complaints
	}
	// In this order: preparing the first database makes the role for the others.
	drills := []struct {
		name, database string
		restore        func(*testing.T, string) string
		complains      bool
	}{
		{"plain, without the role", "plain_bare", restorePlain, true},
		{"custom, without the role", "custom_bare", restoreCustom, true},
		{"without privileges", "no_privileges", restoreBare, false},
		{"plain, with the role", "plain_role", restorePlain, false},
		{"custom, with the role", "custom_role", restoreCustom, false},
	}
	for i, drill := range drills {
		if i == 3 {
			exec(t, cluster, `CREATE ROLE purser_app NOLOGIN NOINHERIT`)
		}
		exec(t, cluster, `CREATE DATABASE `+drill.database)
		complaints := drill.restore(t, server.URL(drill.database))
		if got := strings.Contains(complaints, `role "purser_app" does not exist`); got != drill.complains {
			t.Errorf("%s: the restore complains: %s", drill.name, complaints)
		}
		if i == 2 {
			for _, early := range drills[:3] {
				t.Run(early.name, func(t *testing.T) { servesBehindItsWalls(t, server.URL(early.database), ours, theirs, before, true) })
			}
			exec(t, cluster, `DROP OWNED BY purser_app`) // of its grant on the cluster's own database, if any
			for _, early := range drills[:3] {
				exec(t, cluster, `DROP DATABASE `+early.database+` WITH (FORCE)`)
			}
			exec(t, cluster, `DROP ROLE purser_app`)
		}
		if i > 2 {
			t.Run(drill.name, func(t *testing.T) { servesBehindItsWalls(t, server.URL(drill.database), ours, theirs, before, false) })
		}
	}
	t.Run("a serving role that bypasses policies is refused", func(t *testing.T) {
		exec(t, cluster, `ALTER ROLE purser_app BYPASSRLS`)
		if err := storetest.Migrate(t.Context(), server.URL("plain_role")); err == nil || !strings.Contains(err.Error(), "NOBYPASSRLS") {
			t.Errorf("it says %v", err)
		}
	})
}

// servesBehindItsWalls prepares a restored database and holds it against its source.
func servesBehindItsWalls(t *testing.T, address string, ours, theirs fixture, before verify.Verification, repaired bool) {
	t.Helper()
	if log := prepare(t, address); strings.Contains(log, "database rights repaired") != repaired {
		t.Errorf("it logs %q", log)
	}
	if log := prepare(t, address); log != "" {
		t.Errorf("a second start repairs again: %s", log)
	}
	owner := connect(t, address)
	for _, problem := range schemaProblems(t, owner, true) {
		t.Error(problem)
	}
	db, err := store.Open(t.Context(), address, store.Options{})
	noError(t, err)
	defer db.Close()
	noError(t, db.Ready(t.Context()))
	after, err := db.Verification(ours.application.Scope()).Verify(t.Context(), verify.Options{})
	if err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("verified as %+v, %v; before %+v", after, err, before)
	}
	session := appSession{connect(t, asApp(address))}
	for _, table := range []string{"wallets", "journal", "usage_events", "provider_connections"} {
		session.touchesNothing(t, "", `SELECT FROM `+table)
		session.touchesNothing(t, "SET LOCAL purser.app_id = '"+ours.application.ID.String()+"'",
			`SELECT FROM `+table+` WHERE app_id = '`+theirs.application.ID.String()+`'`)
	}
	usage, err := db.OpenEngine(t.Context(), store.EngineOptions{})
	noError(t, err)
	defer usage.Close()
	usage.SetTimeouts(patience, patience)
	decision, err := usage.Track(ours.useOf("messages", "after the restore"))
	noError(t, err)
	noError(t, decision.Err())
}

func TestPrepareRepairsGrantsAndPolicies(t *testing.T) {
	t.Parallel()
	address := storetest.FreshURL(t)
	owner := connect(t, address)
	if log := prepare(t, address); log != "" {
		t.Fatalf("a migrated database is repaired: %s", log)
	}
	damages := map[string]string{
		"a missing grant":                 `REVOKE SELECT ON wallets FROM purser_app`,
		"a missing grant on a schema":     `REVOKE USAGE ON SCHEMA river FROM purser_app`,
		"a grant too many":                `GRANT UPDATE ON journal TO purser_app`,
		"a grant too many on a column":    `GRANT UPDATE (balance_after) ON journal TO purser_app`,
		"a grant too many, to everyone":   `GRANT DELETE ON usage_events TO PUBLIC`,
		"a missing policy":                `DROP POLICY tenant ON wallets`,
		"an open policy":                  `ALTER POLICY tenant ON wallets USING (true)`,
		"a policy open to new rows":       `ALTER POLICY tenant ON wallets WITH CHECK (true)`,
		"a policy for one role":           `ALTER POLICY tenant ON wallets TO purser_app`,
		"a second policy":                 `CREATE POLICY "Second one" ON wallets USING (true)`,
		"row-level security switched off": `ALTER TABLE journal DISABLE ROW LEVEL SECURITY`,
	}
	if !storetest.Distributed(t) { // Citus moves no shards under forced policies
		damages["policies that are not forced"] = `ALTER TABLE journal NO FORCE ROW LEVEL SECURITY`
	}
	for name, damage := range damages {
		t.Run(name+" is repaired", func(t *testing.T) {
			exec(t, owner, damage)
			log := prepare(t, address)
			if !strings.Contains(log, "database rights repaired") {
				t.Error("nothing is repaired")
			}
			for _, problem := range schemaProblems(t, owner, !storetest.Distributed(t)) {
				t.Error(problem)
			}
			noError(t, store.CheckRights(t.Context(), owner))
		})
	}

	t.Run("what a newer binary has granted stays, and what this one needs comes back", func(t *testing.T) {
		t.Parallel()
		address := storetest.FreshURL(t)
		owner := connect(t, address)
		exec(t, owner, `INSERT INTO schema_migrations (name, group_id) VALUES ('99990101000000', 9)`)
		exec(t, owner, `GRANT DELETE ON wallets TO purser_app`)
		exec(t, owner, `REVOKE SELECT ON wallets FROM purser_app`)
		prepare(t, address)
		if got := texts(t, owner, `SELECT p FROM unnest(ARRAY['DELETE', 'SELECT']) p WHERE has_table_privilege('purser_app', 'wallets', p)`); len(got) != 2 {
			t.Errorf("the role may %v", got)
		}
	})
	t.Run("a table that a restore has lost is named", func(t *testing.T) {
		t.Parallel()
		address := storetest.FreshURL(t)
		exec(t, connect(t, address), `DROP TABLE debtors`)
		if err := storetest.Migrate(t.Context(), address); err == nil || !strings.Contains(err.Error(), "the table debtors is missing") {
			t.Errorf("it says %v", err)
		}
	})
}

// The grants are read out of the migrations. Whatever a migration grants in a way
// that the reader does not see shows here.
func TestExpectedGrantsAreThoseOfAMigratedDatabase(t *testing.T) {
	t.Parallel()
	conn := connect(t, storetest.URL(t))
	noError(t, store.CheckRights(t.Context(), conn))
	served := texts(t, conn, `
		SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
			AND has_table_privilege('purser_app', oid, 'SELECT, INSERT, UPDATE, DELETE') ORDER BY relname COLLATE "C"`)
	if known := store.GrantedTables(t); !slices.Equal(known, served) {
		t.Errorf("the migrations grant on %v, the database on %v", known, served)
	}
	for _, statement := range []string{`GRANT UPDATE (name) ON users TO purser_app;`, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO purser_app;`} {
		if err := store.ReadGrants(fstest.MapFS{"1_a.up.sql": {Data: []byte(statement)}}); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// A server that was running before does not serve a database that was dropped and is restored
// in its place, until the restore has ended.
func TestARunningServerWaitsForTheRestoreOfItsDatabase(t *testing.T) {
	t.Parallel()
	ctx, address, log := t.Context(), storetest.FreshURL(t), slog.New(slog.DiscardHandler)
	running := openNode(t, address, store.EngineOptions{})
	home := newFixture(t, running.db, running.usage)
	running.usage.SetTimeouts(time.Second, time.Second)
	file := filepath.Join(t.TempDir(), "purser.dump")
	if complaints, err := storetest.RunProgram(t, "pg_dump", "--format=custom", "--file", file, address); err != nil {
		t.Fatal(err, complaints)
	}
	name := texts(t, connect(t, address), `SELECT current_database()::text`)[0]
	cluster := connect(t, storetest.URL(t))
	exec(t, cluster, `DROP DATABASE `+name+` WITH (FORCE)`)
	exec(t, cluster, `CREATE DATABASE `+name+` TEMPLATE template0`)

	restore, err := store.BeginRestore(ctx, address, []byte("archive"), log)
	noError(t, err)
	defer restore.Close(context.WithoutCancel(ctx))
	const sentence = "a restore into this database has not finished: wait until it has"
	refused := func(when string) {
		t.Helper()
		soon(t, when+": the server says that it waits for the restore", func() bool {
			err := running.usage.Ready(ctx)
			return err != nil && strings.Contains(store.Reason(err), sentence)
		})
		soon(t, when+": no wallet is read", func() bool { // after the connections that were cut
			_, err := home.Wallet(ctx, home.deposit.Identity)
			return err != nil && strings.Contains(err.Error(), sentence)
		})
		if _, err := store.Open(ctx, address, store.Options{}); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: another server gets %v", when, err)
		}
		if d, err := running.usage.Track(home.useOf("messages", when)); err == nil {
			t.Errorf("%s: an event is answered with %+v", when, d)
		}
	}
	refused("while the database is empty")
	if complaints, err := storetest.RunProgram(t, "pg_restore", "--no-owner", "--no-privileges", "--dbname", address, file); err != nil {
		t.Fatal(err, complaints)
	}
	refused("while rights are missing")
	noError(t, restore.Prepare(ctx, address, log))
	refused("while it is verified")
	restoring, err := store.Open(ctx, address, store.Options{Restoring: true})
	noError(t, err)
	defer restoring.Close()
	_, err = restoring.Verification(home.application.Scope()).Verify(ctx, verify.Options{})
	noError(t, err)

	t.Run("also on a connection that was open", func(t *testing.T) {
		if err := restoring.Ready(ctx); err == nil || !strings.Contains(store.Reason(err), sentence) {
			t.Errorf("it says %v", err)
		}
	})
	noError(t, restore.Finish(ctx))
	soon(t, "the server serves the restored database", func() bool { return running.usage.Ready(ctx) == nil })
	soon(t, "usage is charged again", func() bool {
		decision, err := running.usage.Track(home.useOf("messages", "after the restore"))
		return err == nil && decision.Err() == nil
	})
}

// A server remembers wallets that were created after the backup. What it charged them after the
// restore would be an event without a wallet.
func TestARunningServerForgetsWalletsThatARestoreHasLost(t *testing.T) {
	t.Parallel()
	for what, empty := range map[string]func(cluster, database *pgx.Conn, name string){
		"the database": func(cluster, _ *pgx.Conn, name string) {
			exec(t, cluster, `DROP DATABASE `+name+` WITH (FORCE)`)
			exec(t, cluster, `CREATE DATABASE `+name+` TEMPLATE template0`)
		},
		"the tables": func(_, database *pgx.Conn, _ string) {
			exec(t, database, `DROP SCHEMA public, river CASCADE`)
			exec(t, database, `CREATE SCHEMA public`)
		},
	} {
		t.Run("with "+what, func(t *testing.T) {
			t.Parallel()
			ctx, address, log := t.Context(), storetest.FreshURL(t), slog.New(slog.DiscardHandler)
			s := newShopOfOneLane(t, address, 1)
			n := s.nodes[0]
			s.credit(t, "ann", 10_000)
			s.warm(t, n, "ann", true)
			file := filepath.Join(t.TempDir(), "purser.dump")
			if complaints, err := storetest.RunProgram(t, "pg_dump", "--format=custom", "--file", file, address); err != nil {
				t.Fatal(err, complaints)
			}
			s.credit(t, "lost", 10_000)
			s.warm(t, n, "lost", true)

			name := texts(t, connect(t, address), `SELECT current_database()::text`)[0]
			empty(connect(t, storetest.URL(t)), connect(t, address), name)
			restore, err := store.BeginRestore(ctx, address, []byte("archive"), log)
			noError(t, err)
			defer restore.Close(context.WithoutCancel(ctx))
			if complaints, err := storetest.RunProgram(t, "pg_restore", "--no-owner", "--no-privileges", "--dbname", address, file); err != nil {
				t.Fatal(err, complaints)
			}
			noError(t, restore.Prepare(ctx, address, log))
			noError(t, restore.Finish(ctx))

			d, err := n.usage.Track(s.message("lost", freshID()))
			if err != nil || d.Code != fault.InsufficientBalance {
				t.Errorf("an event of the lost wallet: %+v, %v", d, err)
			}
			mustAccept(t, n, s.message("ann", freshID()))
			soundBooks(t, address, s.tenant)
			if stray := texts(t, connect(t, address), `SELECT event_id FROM usage_events e WHERE NOT EXISTS (SELECT FROM wallets w WHERE w.app_id = e.app_id AND w.id = e.wallet_id)`); len(stray) > 0 {
				t.Errorf("%d events belong to no wallet", len(stray))
			}
		})
	}
}

// awaitQuestion returns when a connection has asked for the lock of restores.
const awaitQuestion = `DO $$ BEGIN
	WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle' AND query LIKE '%pg_try_advisory_lock%') LOOP
		PERFORM pg_sleep(0.02);
		PERFORM pg_stat_clear_snapshot();
	END LOOP;
END $$`

// Postgres closes the connection of a program that has ended a moment later, so a restore
// that is started again right away finds the lock taken.
func TestARestoreWaitsForTheEndOfTheOneBefore(t *testing.T) {
	t.Parallel()
	address := storetest.EmptyURL(t)
	begin := func() (*store.Restore, error) {
		return store.BeginRestore(t.Context(), address, []byte("archive"), slog.New(slog.DiscardHandler))
	}
	first, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	await := storetest.Session(t, address) // before the second one asks, which it does for 10 seconds
	result := make(chan error)
	go func() {
		second, err := begin()
		if err == nil {
			second.Close(t.Context())
		}
		result <- err
	}()
	await(awaitQuestion)
	first.Close(t.Context())
	if err := <-result; err != nil {
		t.Error(err)
	}
}
