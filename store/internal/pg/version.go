package pg

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
)

// maxVersionStep leaves nine thousand billion changes to a wallet.
const maxVersionStep = 1 << 20

// VersionStep is by how much a change advances the version of a wallet. It differs from
// change to change, so that two histories do not number their states alike: a standby that
// takes over without the last changes may make others in their place, and a node that
// remembers the lost ones has to find out.
func VersionStep() int64 { return 1 + rand.Int64N(maxVersionStep) }

// History identifies the history of the database of a connection: another server has another,
// as a standby that took over, and so has a database that was restored in place of an earlier one.
func History(ctx context.Context, conn *pgx.Conn) (history int64, err error) {
	err = conn.QueryRow(ctx, `
		SELECT hashtextextended(concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), d.oid, to_regclass('public.wallets')::oid), 0)
		FROM pg_database d WHERE d.datname = current_database()`).Scan(&history)
	if err != nil {
		return 0, fmt.Errorf("store: the history of the database: %w", err)
	}
	return history, nil
}
