package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestAStartWaitsAsLongAsARecoveryAdvances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clusterIn(t.TempDir())
		c.log = slog.New(slog.DiscardHandler)
		write := func(text string) {
			t.Helper()
			log, err := os.OpenFile(c.path(logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = log.WriteString(text)
			}
			if err := errors.Join(err, log.Close()); err != nil {
				t.Fatal(err)
			}
		}
		write("LOG:  redo in progress, elapsed time: 9.00 s, current LSN: 0/1\n") // of an earlier start
		ctx, end := c.whileItProgresses(t.Context())
		defer end()
		const step = startLimit * 3 / 4
		alive := func(after string) {
			t.Helper()
			time.Sleep(step)
			synctest.Wait()
			if err := context.Cause(ctx); err != nil {
				t.Fatalf("after %s: %v", after, err)
			}
			write("2026-11-19 10:00:00.000 UTC [9]  FATAL:  the database system is not yet accepting connections\n")
		}
		alive("nothing")
		write("2026-11-19 10:00:00.000 UTC [7]  LOG:  syncing data directory (fsync), elapsed time: 10.00 s, current path: ./base/5/1259\n")
		alive("a file that was synced")
		for i := range 20 {
			write(fmt.Sprintf("2026-11-19 10:00:00.000 UTC [7]  LOG:  redo in progress, elapsed time: %d0.00 s, curr", i))
			synctest.Wait()
			write(fmt.Sprintf("ent LSN: 4/%X000000\n", i))
			alive("a part of the write-ahead log")
			if i == 10 {
				if err := os.Truncate(c.path(logName), 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		// The position of the last line: it advances no more.
		write("2026-11-19 10:00:00.000 UTC [7]  LOG:  redo in progress, elapsed time: 300.00 s, current LSN: 4/13000000\n")
		time.Sleep(step)
		synctest.Wait()
		if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a recovery that does not advance ends with %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := context.WithCancel(t.Context())
		ctx, end := clusterIn(t.TempDir()).whileItProgresses(outer)
		defer end()
		cancel()
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the end of the caller's context is %v", err)
		}
	})
}

// Postgres writes the lines that a start waits for, and they are read as it writes them.
func TestPostgresLogsTheProgressOfARecovery(t *testing.T) {
	t.Parallel()
	s := start(t, newFolder(t))
	if got := query(t, s.URL("postgres"), "SHOW log_startup_progress_interval"); got != "10s" {
		t.Errorf("by default it is logged every %s", got)
	}
	execute(t, s.URL("postgres"), "ALTER SYSTEM SET log_startup_progress_interval = 1") // millisecond
	execute(t, s.URL("postgres"), "CREATE TABLE kept AS SELECT i, repeat('x', 100) AS filler FROM generate_series(1, 300000) i")
	offset := s.cluster.logSize()
	killPostmaster(t, s.cluster)
	eventually(t, "an answer", backWithin, answers(t, s.URL("postgres")))
	if phase, at := s.cluster.progressSince(&offset); phase == "" || at == "" {
		text, err := os.ReadFile(s.cluster.path(logName))
		t.Errorf("no progress is found in the log: %s, %v", text, err)
	}
}
