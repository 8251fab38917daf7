package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"purser/store/storetest"
)

// awaitLockWait returns when a program of Postgres waits for a lock in the database.
const awaitLockWait = `DO $$ BEGIN
	WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = '%s' AND wait_event_type = 'Lock') LOOP
		PERFORM pg_sleep(0.02);
		PERFORM pg_stat_clear_snapshot();
	END LOOP;
END $$`

// awaitGone returns when no program of Postgres is connected to the database.
const awaitGone = `DO $$ BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = '%s') LOOP
		PERFORM pg_sleep(0.02);
		PERFORM pg_stat_clear_snapshot();
	END LOOP;
END $$`

// on runs a command of the program on a database.
func (p *program) on(t *testing.T, database string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.path, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+database, "PURSER_SECRET_KEY="+strings.Repeat("k", 32), "PURSER_DATA="+p.data)
	return cmd
}

// killed starts a command, waits until reached returns, and kills it.
func killed(t *testing.T, cmd *exec.Cmd, reached func()) {
	t.Helper()
	if !killedInTime(t, cmd, reached) {
		t.Fatal("the command was not killed")
	}
}

// killedInTime is killed for a command that may end before: then it is false.
func killedInTime(t *testing.T, cmd *exec.Cmd, reached func()) bool {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reached()
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	err := cmd.Wait()
	if err != nil && (!errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL) {
		t.Fatalf("the command was not killed: %v", err)
	}
	return err != nil
}

func TestAKilledBackupLeavesNoFile(t *testing.T) {
	t.Parallel()
	p := install(t)
	database := storetest.FreshURL(t)
	file := filepath.Join(t.TempDir(), "purser.dump")
	absent := func() {
		t.Helper()
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Fatalf("the file of a killed backup is there: %v", err)
		}
	}
	holder := storetest.Session(t, database)
	holder(`BEGIN`)
	holder(`LOCK TABLE wallets IN ACCESS EXCLUSIVE MODE`)
	killed(t, p.on(t, database, "backup", file), func() { holder(fmt.Sprintf(awaitLockWait, "pg_dump")) })
	absent()
	holder(`COMMIT`)
	holder(fmt.Sprintf(awaitGone, "pg_dump")) // it ends without us

	// Rows whose first bytes are written long before the last. A busy machine may see them
	// when the backup is done: then it gets more.
	begun := func() bool {
		_, done := os.Stat(file)
		info, err := os.Stat(file + ".partial")
		return err == nil && info.Size() > 0 || done == nil
	}
	for rows := 200_000; ; rows *= 4 {
		storetest.Exec(t, database, fmt.Sprintf(`DROP TABLE IF EXISTS ballast; CREATE TABLE ballast AS
			SELECT sha512(i::text::bytea) || sha512((-i)::text::bytea) AS filler FROM generate_series(1, %d) i`, rows))
		killed := killedInTime(t, p.on(t, database, "backup", file), func() { await(t, "the first bytes of the backup", begun) })
		if _, err := os.Stat(file); killed && os.IsNotExist(err) {
			break
		}
		if rows > 3_000_000 {
			t.Fatal("no killed backup leaves no file")
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}

	if out, err := p.on(t, database, "backup", file).CombinedOutput(); err != nil {
		t.Fatalf("the next backup: %v\n%s", err, out)
	}
	if _, err := os.Stat(file + ".partial"); !os.IsNotExist(err) {
		t.Errorf("the partial file stays: %v", err)
	}
	if out, err := p.on(t, storetest.EmptyURL(t), "restore", file).CombinedOutput(); err != nil || !strings.Contains(string(out), "0 differences") {
		t.Errorf("its restore: %v\n%s", err, out)
	}
}

func TestAKilledRestoreIsNeverServed(t *testing.T) {
	t.Parallel()
	p := install(t)
	source := storetest.FreshURL(t)
	file := filepath.Join(t.TempDir(), "purser.dump")
	if out, err := p.on(t, source, "keys", "create", "--org", "Acme", "--app", "Chat", "--preset", "setup").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := p.on(t, source, "backup", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// refused sees that no command uses the database as it is.
	refused := func(t *testing.T, database string) {
		t.Helper()
		for _, command := range [][]string{{"serve", "--addr", "127.0.0.1:0"}, {"migrate"}, {"verify"}, {"keys", "create", "--org", "Acme", "--app", "Chat", "--preset", "setup"}} {
			out, err := p.on(t, database, command...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "a restore into this database was not finished") {
				t.Errorf("%s: %v, %s", command[0], err, out)
			}
		}
	}
	finished := func(t *testing.T, database string) {
		t.Helper()
		if out, err := p.on(t, database, "restore", file).CombinedOutput(); err != nil || !strings.Contains(string(out), "1 application") {
			t.Fatalf("%v\n%s", err, out)
		}
		if out, err := p.on(t, database, "verify").CombinedOutput(); err != nil || !strings.Contains(string(out), "0 differences") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	const lock = 4711

	t.Run("while its rows are loaded", func(t *testing.T) {
		database := storetest.EmptyURL(t)
		// Indexes come after the rows.
		holder := storetest.Session(t, database)
		holder(fmt.Sprintf(`SELECT pg_advisory_lock(%d)`, lock))
		holder(fmt.Sprintf(`CREATE FUNCTION hold() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(%d); END $$`, lock))
		holder(`CREATE EVENT TRIGGER hold ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION hold()`)
		killed(t, p.on(t, database, "restore", file), func() {
			holder(fmt.Sprintf(awaitLockWait, "pg_restore"))
			if out, err := p.on(t, database, "restore", file).CombinedOutput(); err == nil || !strings.Contains(string(out), "another restore into this database is running") {
				t.Errorf("a second restore: %v, %s", err, out)
			}
			refused(t, database)
		})
		refused(t, database)
		// pg_restore has read its whole file, and may still commit.
		if out, err := p.on(t, database, "restore", file).CombinedOutput(); err == nil || !strings.Contains(string(out), "pg_restore of an earlier restore still runs") {
			t.Errorf("a restore beside the programs of a killed one: %v, %s", err, out)
		}
		holder(`DROP EVENT TRIGGER hold`)
		holder(fmt.Sprintf(`SELECT pg_advisory_unlock(%d)`, lock))
		holder(fmt.Sprintf(awaitGone, "pg_restore"))
		refused(t, database)
		finished(t, database)
	})
	t.Run("when they are loaded and not verified", func(t *testing.T) {
		database := storetest.EmptyURL(t)
		holder := storetest.Session(t, database)
		// The serving role gets its rights between the two.
		holder(fmt.Sprintf(`CREATE FUNCTION hold() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(%d); END $$`, lock))
		holder(`CREATE EVENT TRIGGER hold ON ddl_command_start WHEN TAG IN ('GRANT') EXECUTE FUNCTION hold()`)
		holder(fmt.Sprintf(`SELECT pg_advisory_lock(%d)`, lock))
		killed(t, p.on(t, database, "restore", file), func() {
			holder(`DO $$ BEGIN
				WHILE NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted
					AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) LOOP PERFORM pg_sleep(0.02); END LOOP; END $$`)
		})
		refused(t, database)
		holder(`DROP EVENT TRIGGER hold`)
		holder(fmt.Sprintf(`SELECT pg_advisory_unlock(%d)`, lock))
		finished(t, database)
	})
}
