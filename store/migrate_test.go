package store_test

import (
	"context"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/migrations"
	"purser/store"
	"purser/store/embedded"
	"purser/store/storetest"
)

// migrationNames are the numbers of the files, as they are recorded.
func migrationNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := fs.Glob(migrations.FS, "*.up.sql")
	noError(t, err)
	for _, file := range files {
		name, _, _ := strings.Cut(file, "_")
		names = append(names, name)
	}
	return names
}

const appliedNames = `SELECT name FROM schema_migrations ORDER BY name`

func TestMigrate(t *testing.T) {
	t.Parallel()

	t.Run("from eight processes at once applies each migration once", func(t *testing.T) {
		t.Parallel()
		address := storetest.EmptyURL(t)
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				if err := storetest.Migrate(t.Context(), address); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		owner := connect(t, address)
		if got := texts(t, owner, appliedNames); !slices.Equal(got, migrationNames(t)) {
			t.Errorf("applied are %v", got)
		}
		noError(t, openStore(t, address).Ready(t.Context()))
		soon(t, "nobody holds the lock", func() bool {
			return len(texts(t, owner, `SELECT pid::text FROM pg_locks
				WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)) == 0
		})
	})

	t.Run("records a migration in the transaction that makes it", func(t *testing.T) {
		t.Parallel()
		address := storetest.FreshURL(t)
		owner := connect(t, address)
		forgetSchema(t, owner)
		// Whatever would be recorded in another transaction fails, as in a crash.
		exec(t, owner, `CREATE FUNCTION crash() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF NOT EXISTS (SELECT FROM pg_class WHERE relkind = 'r' AND xmin = pg_current_xact_id()::xid) THEN
					RAISE 'crash';
				END IF;
				RETURN NEW;
			END $$`)
		exec(t, owner, `CREATE TRIGGER crash BEFORE INSERT OR UPDATE ON schema_migrations FOR EACH ROW EXECUTE FUNCTION crash()`)

		if err := storetest.Migrate(t.Context(), address); err == nil || !strings.Contains(err.Error(), "crash") {
			t.Fatalf("nothing crashed: %v", err)
		}
		if got, first := texts(t, owner, appliedNames), migrationNames(t)[:1]; !slices.Equal(got, first) {
			t.Errorf("applied are %v, and the tables of %v are there", got, first)
		}
		exec(t, owner, `DROP TRIGGER crash ON schema_migrations`)
		noError(t, storetest.Migrate(t.Context(), address))
		noError(t, openStore(t, address).Ready(t.Context()))
	})

	t.Run("leaves nothing of a migration that is cut off", func(t *testing.T) {
		t.Parallel()
		address := storetest.EmptyURL(t)
		owner := connect(t, address)
		// The migration waits for us in the middle, after some of its tables.
		exec(t, owner, `CREATE FUNCTION wait() RETURNS event_trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity = 'public.members') THEN
					PERFORM pg_advisory_lock_shared(42);
				END IF;
			END $$`)
		exec(t, owner, `CREATE EVENT TRIGGER wait ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION wait()`)
		exec(t, owner, `SELECT pg_advisory_lock(42)`)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- storetest.Migrate(ctx, address) }()
		soon(t, "the migration waits", func() bool {
			return len(texts(t, owner, `SELECT pid::text FROM pg_locks
				WHERE locktype = 'advisory' AND objid = 42 AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)) == 1
		})
		cancel()
		if err := <-ended; err == nil {
			t.Error("it says that it has migrated")
		}
		if got := texts(t, owner, appliedNames); len(got) > 0 {
			t.Errorf("applied are %v", got)
		}
		if tables := texts(t, owner, `SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'schema_migrations%'`); len(tables) > 0 {
			t.Errorf("half of it is there: %v", tables)
		}
		exec(t, owner, `DROP EVENT TRIGGER wait`)
		exec(t, owner, `SELECT pg_advisory_unlock(42)`)
		noError(t, storetest.Migrate(t.Context(), address))
		noError(t, openStore(t, address).Ready(t.Context()))
	})

	t.Run("waits for a locked table without blocking its readers", func(t *testing.T) {
		t.Parallel()
		address := storetest.EmptyURL(t)
		owner, backup, reader := connect(t, address), connect(t, address), connect(t, address)
		exec(t, owner, `CREATE TABLE dumped ()`)
		exec(t, owner, `CREATE FUNCTION alter_dumped() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN LOCK TABLE dumped IN ACCESS EXCLUSIVE MODE; END $$`)
		exec(t, owner, `CREATE EVENT TRIGGER alter_dumped ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION alter_dumped()`)
		exec(t, backup, `BEGIN`)
		exec(t, backup, `LOCK TABLE dumped IN ACCESS SHARE MODE`)
		ended := make(chan error, 1)
		go func() { ended <- storetest.Migrate(t.Context(), address) }()
		soon(t, "the migration waits", func() bool {
			return waitingFor(t, owner, "dumped") == 1
		})
		read := make(chan error, 1)
		go func() {
			_, err := reader.Exec(t.Context(), `SELECT FROM dumped`)
			read <- err
		}()
		soon(t, "another session reads the table", func() bool { return len(read) == 1 })
		noError(t, <-read)
		exec(t, backup, `COMMIT`)
		noError(t, <-ended)
		if got := texts(t, owner, appliedNames); !slices.Equal(got, migrationNames(t)) {
			t.Errorf("applied are %v", got)
		}
	})

	t.Run("says so when nobody answers", func(t *testing.T) {
		t.Parallel()
		err := storetest.Migrate(t.Context(), "postgres://someone:secret@127.0.0.1:1/db")
		if err == nil || !strings.Contains(err.Error(), "cannot be reached") || strings.Contains(err.Error(), "secret") {
			t.Errorf("it says %v", err)
		}
	})

	t.Run("refuses an address that cannot be read, without showing it", func(t *testing.T) {
		t.Parallel()
		err := storetest.Migrate(t.Context(), "postgres://someone:secret@host:no-port/db")
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "someone") {
			t.Errorf("it says %v", err)
		}
	})
}

// forgetSchema takes the tables away and leaves what records migrations, empty.
func forgetSchema(t *testing.T, owner *pgx.Conn) {
	t.Helper()
	for _, table := range texts(t, owner, `SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'schema_migrations%'`) {
		exec(t, owner, `DROP TABLE `+table+` CASCADE`)
	}
	for _, domain := range texts(t, owner, `SELECT typname::text FROM pg_type WHERE typtype = 'd' AND typnamespace = 'public'::regnamespace`) {
		exec(t, owner, `DROP DOMAIN `+domain)
	}
	exec(t, owner, `DELETE FROM schema_migrations`)
}

// A customer's Postgres gives no superuser away. Its owner's own policies bind it
// there, so this is also where they could stand in the way of foreign keys.
func TestAnOwnerWithoutSuperpowersMigratesAndServes(t *testing.T) {
	t.Parallel()
	role := "owner_" + strings.ReplaceAll(ids.New().String(), "-", "_")
	cluster := connect(t, storetest.URL(t))
	exec(t, cluster, `CREATE ROLE `+role+` LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS`)
	t.Cleanup(func() { // after its database is gone
		conn, err := pgx.Connect(context.Background(), storetest.URL(t))
		noError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), `DROP ROLE `+role)
		noError(t, err)
	})
	address, err := url.Parse(storetest.EmptyURL(t))
	noError(t, err)
	exec(t, cluster, `ALTER DATABASE `+strings.TrimPrefix(address.Path, "/")+` OWNER TO `+role)
	address.User = url.User(role)

	noError(t, storetest.Migrate(t.Context(), address.String()))
	// Only the first migration creates a role: from then on the owner serves and migrates
	// without the right to.
	exec(t, cluster, `ALTER ROLE `+role+` NOCREATEROLE`)
	noError(t, storetest.Migrate(t.Context(), address.String()))
	db := openStore(t, address.String())
	noError(t, db.Ready(t.Context()))
	home := newFixture(t, db, openUsage(t, db))
	if wallet, err := home.Wallet(t.Context(), home.deposit.Identity); err != nil || len(wallet.Balances) != 1 {
		t.Errorf("the wallet is %+v, %v", wallet, err)
	}
	owner := connect(t, address.String())
	for _, problem := range schemaProblems(t, owner, true) {
		t.Error(problem)
	}
	if seen := walletsSeen(t, owner); seen != 0 {
		t.Errorf("the owner sees %d wallets without naming their application", seen)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	t.Run("names every migration before the first", func(t *testing.T) {
		t.Parallel()
		notReady(t, openStore(t, storetest.EmptyURL(t)), migrationNames(t)...)
	})
	t.Run("names the one that is missing", func(t *testing.T) {
		t.Parallel()
		address := storetest.FreshURL(t)
		db := openStore(t, address)
		noError(t, db.Ready(t.Context()))
		names := migrationNames(t)
		last := names[len(names)-1]
		exec(t, connect(t, address), `DELETE FROM schema_migrations WHERE name = $1`, last)
		notReady(t, db, last)
	})
	t.Run("does not mind what a newer binary has migrated", func(t *testing.T) {
		t.Parallel()
		address := storetest.FreshURL(t)
		exec(t, connect(t, address), `INSERT INTO schema_migrations (name, group_id) VALUES ('99990101000000', 9)`)
		noError(t, openStore(t, address).Ready(t.Context()))
		noError(t, storetest.Migrate(t.Context(), address))
	})
	t.Run("says that the database is gone", func(t *testing.T) {
		t.Parallel()
		db := openStore(t, storetest.URL(t))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := db.Ready(ctx); err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("it says %v", err)
		}
	})
}

func notReady(t *testing.T, db *store.Store, missing ...string) {
	t.Helper()
	err := db.Ready(t.Context())
	if err == nil {
		t.Fatal("it is ready")
	}
	want := "store: the schema lacks the migrations " + strings.Join(missing, ", ") + ": run 'purser migrate'"
	if err.Error() != want {
		t.Errorf("it says %q, not %q", err, want)
	}
}

func TestCheckDurable(t *testing.T) {
	t.Parallel()
	refuses := func(t *testing.T, address, setting string) {
		t.Helper()
		err := openStore(t, address).CheckDurable(t.Context())
		if err == nil || !strings.Contains(err.Error(), setting+" = off") {
			t.Errorf("with %s off it says %v", setting, err)
		}
	}

	t.Run("refuses a database that answers before it has written", func(t *testing.T) {
		t.Parallel()
		address := storetest.FreshURL(t)
		noError(t, openStore(t, address).CheckDurable(t.Context()))
		name := texts(t, connect(t, address), `SELECT current_database()::text`)[0]
		exec(t, connect(t, address), `ALTER DATABASE `+name+` SET synchronous_commit = off`)
		refuses(t, address, "synchronous_commit")
	})

	// These two are a whole server's, so it is one that no other test uses.
	t.Run("refuses a server that writes without care", func(t *testing.T) {
		t.Parallel()
		server, err := embedded.Start(t.Context(), embedded.Options{Dir: storetest.DataDir(t)})
		noError(t, err)
		t.Cleanup(func() { noError(t, server.Stop(context.Background())) })
		address := server.URL("postgres")
		owner := connect(t, address)
		exec(t, owner, `CREATE ROLE purser_app`)
		for _, setting := range []string{"fsync", "full_page_writes"} {
			for _, value := range []string{"off", "on"} {
				exec(t, owner, `ALTER SYSTEM SET `+setting+` = `+value)
				exec(t, owner, `SELECT pg_reload_conf()`)
				soon(t, setting+" is "+value, func() bool { return texts(t, owner, `SHOW `+setting)[0] == value })
				if value == "off" {
					refuses(t, address, setting)
				}
			}
		}
		noError(t, openStore(t, address).CheckDurable(t.Context()))
	})
}
