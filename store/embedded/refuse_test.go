package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	s := start(t, dir)
	stop(t, s)
	made, err := s.cluster.madeBy()
	if err != nil {
		t.Fatal(err)
	}

	t.Run("a machine without Postgres, and names the command that installs it", func(t *testing.T) {
		wantRefusal(t, Options{Dir: newFolder(t), BinDir: t.TempDir()}, "apt-get install postgresql")
	})

	t.Run("a Postgres that is too old", func(t *testing.T) {
		wantRefusal(t, Options{Dir: newFolder(t), BinDir: fakePostgres(t, oldestMajor-1)}, "needs 15 or later: install it (on Debian and Ubuntu, from apt.postgresql.org), or set DATABASE_URL")
	})

	t.Run("a cluster of another major version", func(t *testing.T) {
		wantRefusal(t, Options{Dir: dir, BinDir: fakePostgres(t, made+1)}, fmt.Sprintf("apt-get install postgresql-%d", made))
	})

	t.Run("a pointer to a home that is gone", func(t *testing.T) {
		lost := newFolder(t)
		if err := os.MkdirAll(lost, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(lost, locationName), []byte("/nonexistent/home\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, Options{Dir: lost}, "was moved or lost")
	})

	t.Run("no folder", func(t *testing.T) {
		wantRefusal(t, Options{}, "no folder is given")
	})

	t.Run("a context that has ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Start(ctx, Options{Dir: dir}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("settings that Postgres does not take, and shows what Postgres says", func(t *testing.T) {
		auto := s.cluster.path(dataName, "postgresql.auto.conf")
		if err := os.WriteFile(auto, []byte("work_mem = 'a lot'\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, Options{Dir: dir}, `invalid value for parameter "work_mem": "a lot"`)
	})
}

func wantRefusal(t *testing.T, o Options, sentence string) {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err == nil {
		stop(t, s)
	}
	if err == nil || !strings.Contains(err.Error(), sentence) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line with %q", err, sentence)
	}
}

// fakePostgres is a folder of programs that know no more than their version.
func fakePostgres(t *testing.T, major int) string {
	t.Helper()
	bin := newFolder(t)
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.1'\n", major)
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}
