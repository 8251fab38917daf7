package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"purser/ids"
)

// Lapse makes every lease of an application expire now: the database's clock cannot be
// moved.
func Lapse(tb testing.TB, url, app string) {
	tb.Helper()
	if err := LapseAll(context.Background(), url, app); err != nil {
		tb.Fatal(err)
	}
}

// LapseAll is Lapse for tests that have no testing.TB at hand. A node that died may still
// have a transaction in the database: after a deadlock with it, it is repeated.
func LapseAll(ctx context.Context, url, app string) error {
	return onSession(ctx, url, func(conn *pgx.Conn) error {
		for {
			_, err := conn.Exec(ctx, `
				WITH lapsed AS (UPDATE leases SET held_until = 0 WHERE app_id = $1)
				UPDATE work_queue SET leased_until = 0 WHERE app_id = $1`, app)
			if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "40P01" {
				return err
			}
		}
	})
}

// StealLease gives an application's lease to another holder in one statement, as if its
// time had run out and the other was first: no renewal can come in between. The other
// holds it for the length of time.
func StealLease(tb testing.TB, url, app, name string, length time.Duration) {
	tb.Helper()
	Exec(tb, url, `
		UPDATE leases SET holder = $4, fence = fence + 1,
			held_until = (extract(epoch FROM now()) * 1000)::bigint + $3
		WHERE app_id = $1 AND name = $2`, app, name, length.Milliseconds(), ids.New())
}

// LeasesHeld counts the leases of an application that have not run out.
func LeasesHeld(tb testing.TB, url, app string) (held int) {
	tb.Helper()
	onConnection(tb, url, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `
			SELECT count(*) FROM leases
			WHERE app_id = $1 AND holder <> '00000000-0000-0000-0000-000000000000'
				AND held_until > extract(epoch FROM clock_timestamp()) * 1000`, app).Scan(&held)
	})
	return held
}
