package storetest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Lapse has every lease of an application run out now, as time does. The database's
// clock cannot be moved, and nobody wants to wait for it.
func Lapse(tb testing.TB, url, app string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `UPDATE leases SET held_until = 0 WHERE app_id = $1`, app); err != nil {
		tb.Fatal(err)
	}
}

// LeasesHeld counts the leases of an application that have not run out.
func LeasesHeld(tb testing.TB, url, app string) (held int) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, `
		SELECT count(*) FROM leases
		WHERE app_id = $1 AND name <> 'queue' AND holder <> '00000000-0000-0000-0000-000000000000'
			AND held_until > extract(epoch FROM clock_timestamp()) * 1000`, app).Scan(&held)
	if err != nil {
		tb.Fatal(err)
	}
	return held
}
