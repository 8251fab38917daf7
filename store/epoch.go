package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

var (
	selectEpoch = declare("select epoch", `
		SELECT epoch, clock_offset, (extract(epoch FROM statement_timestamp()) * 1000)::bigint FROM app_state WHERE app_id = $1`)

	selectClock = declare("select clock", `
		SELECT clock_offset FROM app_state WHERE app_id = $1`)

	advanceEpoch = declare("advance epoch", `
		UPDATE app_state SET epoch = epoch + 1 WHERE app_id = $1 RETURNING epoch`)
)

// advanceEpoch tells every node that what it remembers of the catalog and the
// keys has changed. It is part of the transaction that changes them.
func (tx appTx) advanceEpoch(ctx context.Context) (int64, error) {
	return find(ctx, tx, advanceEpoch, pgx.RowTo[int64], errNoAppState)
}

// ClockOffset is how far the application's clock is ahead of the real one. It is
// zero but in an application whose sandbox was moved in time.
func (a App) ClockOffset(ctx context.Context) (int64, error) {
	return findOne(ctx, a, selectClock, pgx.RowTo[int64], errNoAppState)
}
