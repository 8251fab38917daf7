package cashier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"purser/ids"
	"purser/store"
	"purser/tenancy"
)

// renewing runs work and renews its lease meanwhile. When the lease has gone to
// another holder, work is cancelled with store.ErrFenced as the cause: whatever it
// went on to find out could not be stored.
func (c *Cashier) renewing(ctx context.Context, scope tenancy.Scope, fence store.Fence, work func(context.Context, store.Fence) error) error {
	every := cmp.Or(c.renew, renewTime)
	if every < 0 {
		return work(ctx, fence)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			held, err := c.options.Store.App(scope).RenewLease(ctx, fence, c.limits.lease)
			if ctx.Err() != nil {
				return
			}
			if err != nil { // the next tick tries again, while the lease lasts
				c.options.Log.Warn("lease renewal failed", "app", scope.AppID.Format(ids.Application), "cause", err)
				continue
			}
			if !held {
				stop(store.ErrFenced)
				return
			}
		}
	}()
	err := work(ctx, fence)
	if lost := context.Cause(ctx); err != nil && errors.Is(lost, store.ErrFenced) {
		// Calls that were cut off say that the provider is unavailable, which it is not.
		return fmt.Errorf("%w (after: %v)", lost, err)
	}
	return err
}
