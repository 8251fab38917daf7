package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

var (
	selectEpoch = declare("select epoch", `
		SELECT epoch FROM app_state WHERE app_id = $1`)

	advanceEpoch = declare("advance epoch", `
		UPDATE app_state SET epoch = epoch + 1 WHERE app_id = $1 RETURNING epoch`)
)

// advanceEpoch tells every node that what it remembers of the catalog and the
// keys has changed. It is part of the transaction that changes them.
func (tx appTx) advanceEpoch(ctx context.Context) (int64, error) {
	return find(ctx, tx, advanceEpoch, pgx.RowTo[int64], errNoAppState)
}
