package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"purser/store/storetest"
)

// The drill: a backup beside a running server, restored in another folder, verified and served.
func TestABackupMovesAnEmbeddedDatabase(t *testing.T) {
	t.Parallel()
	from, to := storetest.DataDir(t), storetest.DataDir(t)
	base, stop := serveFolder(t, from)
	key := createJSONKey(t, from, "--org", "Acme", "--app", "Chat", "--preset", "setup")
	useOnce(t, base, key.Secret)
	file := filepath.Join(t.TempDir(), "purser.dump")
	// Left by another backup, and open to all: the new one has the mode that it should have.
	if err := errors.Join(os.WriteFile(file+".partial", []byte("left"), 0o600), os.Chmod(file+".partial", 0o666)); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, from, "backup", file); err != nil || !strings.Contains(out, filepath.Join(from, secretFile)) {
		t.Fatalf("%q, %v", out, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if _, err := os.Stat(file + ".partial"); !os.IsNotExist(err) {
		t.Errorf("the partial file stays: %v", err)
	}
	stop()

	out, err := command(t, to, "restore", file)
	if err != nil || !strings.Contains(out, "1 application, 1 wallet, 2 entries: 0 differences") || !strings.Contains(out, filepath.Join(to, secretFile)) {
		t.Fatalf("%q, %v", out, err)
	}
	if _, err := command(t, to, "serve", "--addr", "127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "is not the key") {
		t.Errorf("without the key: %v", err)
	}
	secret, err := os.ReadFile(filepath.Join(from, secretFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, secretFile), secret, 0o600); err != nil {
		t.Fatal(err)
	}
	base, stop = serveFolder(t, to)
	goesOn(t, base, key.Secret)
	if _, err := command(t, to, "restore", file); err == nil || !strings.Contains(err.Error(), "needs an empty database") {
		t.Errorf("over data: %v", err)
	}
	stop()
	if out, err := command(t, to, "verify"); err != nil || !strings.Contains(out, "3 entries: 0 differences") {
		t.Errorf("%q, %v", out, err)
	}
}

// serveFolder serves a data folder until stop.
func serveFolder(t *testing.T, data string) (base string, stop func()) {
	t.Helper()
	process := startProcess(t, []string{"PURSER_DATA=" + data})
	return process.base, func() { process.stop(t) }
}

func TestBackupRefuses(t *testing.T) {
	t.Parallel()
	p := startProduct(t)
	key := p.newKey(t, "--org", "Acme", "--app", "Chat", "--preset", "setup")
	useOnce(t, p.base, key.Secret)
	folder := t.TempDir()
	there := filepath.Join(folder, "there")
	if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(there, filepath.Join(folder, "linked.partial")); err != nil {
		t.Fatal(err)
	}
	_, plain := newLogin(t, p.database, "IN ROLE pg_read_all_data")
	for name, c := range map[string]struct {
		database string
		args     []string
		says     string
	}{
		"no file":                        {p.database, nil, "name a file"},
		"a file that exists":             {p.database, []string{there}, "exists"},
		"a partial file that is a link":  {p.database, []string{filepath.Join(folder, "linked")}, "is a symbolic link"},
		"a folder that does not exist":   {p.database, []string{filepath.Join(folder, "none", "x")}, "no such file"},
		"a login that does not see all":  {plain, []string{filepath.Join(folder, "x")}, "CREATE ROLE purser_backup LOGIN BYPASSRLS"},
		"a database without Purser":      {storetest.EmptyURL(t), []string{filepath.Join(folder, "x")}, "nothing to back up"},
		"an address that demands no TLS": {"postgres://ann:hidden@db.example:1/x", []string{filepath.Join(folder, "x")}, "sslmode"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), append([]string{"backup"}, c.args...), []string{"DATABASE_URL=" + c.database}, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("got %v", err)
			}
		})
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	p := startProduct(t)
	key := p.newKey(t, "--org", "Acme", "--app", "Chat", "--preset", "setup")
	useOnce(t, p.base, key.Secret)
	folder := t.TempDir()
	file := filepath.Join(folder, "purser.dump")
	if err := run(t.Context(), []string{"backup", file}, p.environ, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cut := write("cut", whole[:len(whole)*2/3])
	restore := func(t *testing.T, database string, args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"restore"}, args...), []string{"DATABASE_URL=" + database}, &out, io.Discard)
		return out.String(), err
	}

	t.Run("a database with tables", func(t *testing.T) {
		database := storetest.EmptyURL(t)
		storetest.Exec(t, database, `CREATE TABLE theirs (x int)`)
		if _, err := restore(t, database, file); err == nil || !strings.Contains(err.Error(), "the database has 1 tables") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a file that is no backup, before it starts a database", func(t *testing.T) {
		data := filepath.Join(folder, "data")
		for _, path := range []string{write("text", []byte("-- PostgreSQL database dump")), write("empty", nil), filepath.Join(folder, "none")} {
			if err := run(t.Context(), []string{"restore", path, "--data", data}, nil, io.Discard, io.Discard); err == nil {
				t.Errorf("%s was restored", path)
			}
		}
		if _, err := os.Stat(data); !os.IsNotExist(err) {
			t.Errorf("a data folder was made: %v", err)
		}
	})
	t.Run("a file that was cut off, and no server uses the database until a whole one is restored", func(t *testing.T) {
		database := storetest.EmptyURL(t)
		if _, err := restore(t, database, cut); err == nil {
			t.Fatal("it was restored")
		}
		for _, command := range [][]string{{"serve", "--addr", "127.0.0.1:0"}, {"migrate"}, {"backup", filepath.Join(folder, "half")}} {
			err := run(t.Context(), command, []string{"DATABASE_URL=" + database, "PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey)}, io.Discard, io.Discard)
			if err == nil {
				t.Errorf("%s uses the database", command[0])
			}
		}
		if out, err := restore(t, database, file); err != nil || !strings.Contains(out, "0 differences") {
			t.Errorf("%q, %v", out, err)
		}
	})
	t.Run("differences, until they are accepted", func(t *testing.T) {
		storetest.Exec(t, p.database, `UPDATE balances SET amount_nanocredits = amount_nanocredits + 1`)
		spoilt := filepath.Join(folder, "spoilt")
		if err := run(t.Context(), []string{"backup", spoilt}, p.environ, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
		database := storetest.EmptyURL(t)
		if _, err := restore(t, database, spoilt); err == nil || !strings.Contains(err.Error(), "--accept-differences") {
			t.Fatalf("got %v", err)
		}
		if _, err := restore(t, database, file, "--accept-differences"); err == nil || !strings.Contains(err.Error(), "another file") {
			t.Errorf("another file: %v", err)
		}
		if err := run(t.Context(), []string{"migrate"}, []string{"DATABASE_URL=" + database}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "was not finished") {
			t.Errorf("got %v", err)
		}
		if out, err := restore(t, database, "--accept-differences", spoilt); err != nil || !strings.Contains(out, "Continuing with its verification") {
			t.Errorf("%q, %v", out, err)
		}
		if err := run(t.Context(), []string{"migrate"}, []string{"DATABASE_URL=" + database}, io.Discard, io.Discard); err != nil {
			t.Error(err)
		}
	})
}

// What verification could not finish once, it may never finish in time.
func TestAnIncompleteVerificationOfARestoreCanBeAccepted(t *testing.T) {
	t.Parallel()
	other := errors.New("connection lost")
	for _, verified := range []error{nil, errDiffers, errUnfinished, other} {
		for _, accept := range []bool{false, true} {
			err := restored(verified, accept)
			if refused := verified == other || verified != nil && !accept; refused != (err != nil) || err != nil && !errors.Is(err, verified) {
				t.Errorf("after %v, accepted %v: %v", verified, accept, err)
			}
			if err != nil && verified != other && !strings.Contains(err.Error(), "--accept-differences") {
				t.Errorf("%v does not name the flag", err)
			}
		}
	}
}
