package storetest

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Lapse makes every lease of an application expire now: the database's clock cannot be
// moved. A node that died may still have a transaction in the database: after a deadlock
// with it, it is repeated.
func Lapse(tb failer, url, app string) {
	tb.Helper()
	OnConnection(tb, url, func(ctx context.Context, conn *pgx.Conn) error {
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
