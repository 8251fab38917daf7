package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

var (
	// SelectEpoch reads the epoch, the clock's offset and the database's time.
	SelectEpoch = Declare("select epoch", `
		SELECT epoch, clock_offset, (extract(epoch FROM statement_timestamp()) * 1000)::bigint FROM app_state WHERE app_id = $1`)

	advanceEpoch = Declare("advance epoch", `
		UPDATE app_state SET epoch = epoch + 1 WHERE app_id = $1 RETURNING epoch`)
)

// AdvanceEpoch tells every node that what it remembers of the catalog and the
// keys has changed. It is part of the transaction that changes them.
func (tx *Tx) AdvanceEpoch(ctx context.Context) (int64, error) {
	return Find(ctx, tx, advanceEpoch, pgx.RowTo[int64], ErrNoAppState)
}
