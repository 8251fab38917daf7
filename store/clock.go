package store

import (
	"context"
	"purser/store/internal/pg"
)

// ClockOffset is how far the application's clock is ahead of the real one. It is
// zero but in an application whose sandbox was moved in time.
func (a App) ClockOffset(ctx context.Context) (int64, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (int64, error) { return tx.ClockOffset(ctx) })
}
