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

// ServerStart is when the server of a connection started, in microseconds. Another server
// has another.
func ServerStart(ctx context.Context, conn *pgx.Conn) (started int64, err error) {
	err = conn.QueryRow(ctx, `SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint`).Scan(&started)
	if err != nil {
		return 0, fmt.Errorf("store: the start of the server: %w", err)
	}
	return started, nil
}
