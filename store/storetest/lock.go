package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// LockLeases locks every lease row of an application until unlock is called, as a
// transaction that is still open does. blocked waits until another session waits for
// such a row, and returns its process id.
func LockLeases(tb testing.TB, url, app string) (blocked func() (pid int32), unlock func()) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	tb.Cleanup(cancel)
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	locker, watcher := connect(), connect()
	tx, err := locker.Begin(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SELECT fence FROM leases WHERE app_id = $1 FOR UPDATE`, app); err != nil {
		tb.Fatal(err)
	}
	waiters := `SELECT pid FROM pg_stat_activity WHERE $1::int = ANY(pg_blocking_pids(pid))`
	if Distributed(tb) { // they wait on a worker; the ids of sessions end with the process ids at the coordinator
		waiters = `SELECT (waiting_gpid % 10000000000)::int FROM citus_lock_waits WHERE blocking_gpid % 10000000000 = $1::int`
	}
	blocked = func() int32 {
		tb.Helper()
		for {
			rows, _ := watcher.Query(ctx, waiters, locker.PgConn().PID()) // CollectRows returns its error
			waiting, err := pgx.CollectRows(rows, pgx.RowTo[int32])
			if err != nil {
				tb.Fatal(err)
			}
			if len(waiting) > 0 {
				return waiting[0]
			}
			select {
			case <-ctx.Done():
				tb.Fatal("no session waits for a lease")
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	return blocked, func() {
		tb.Helper()
		if err := tx.Rollback(ctx); err != nil {
			tb.Fatal(err)
		}
	}
}
