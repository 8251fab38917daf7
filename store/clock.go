package store

import (
	"context"
)

// ClockOffset is how far the application's clock is ahead of the real one. It is
// zero but in an application whose sandbox was moved in time.
func (a App) ClockOffset(ctx context.Context) (offset int64, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		offset, err = tx.ClockOffset(ctx)
		return err
	})
	return offset, err
}
