package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Progress is how far an application has come on the way to its first charge.
type Progress struct {
	HasKey     bool
	HasCredit  bool
	HasFeature bool
	IsFunded   bool // credits have come into some wallet
	IsUsed     bool // a use was accepted
}

// A feature remembers that it was used, so the events need not be asked.
var selectProgress = declare("select progress", `
	SELECT EXISTS (SELECT 1 FROM api_keys k WHERE k.app_id = $1),
		EXISTS (SELECT 1 FROM credits c WHERE c.app_id = $1),
		EXISTS (SELECT 1 FROM features f WHERE f.app_id = $1),
		EXISTS (SELECT 1 FROM journal j WHERE j.app_id = $1),
		EXISTS (SELECT 1 FROM features f WHERE f.app_id = $1 AND f.deduplication_locked)
	FROM app_state s WHERE s.app_id = $1`)

// Progress tells what of the first steps is done, from what is there.
func (a App) Progress(ctx context.Context) (p Progress, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		p, err = find(ctx, tx, selectProgress, pgx.RowToStructByPos[Progress], errNoAppState)
		return err
	})
	return p, err
}
