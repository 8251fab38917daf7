package cashier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"purser/ids"
	"purser/store/queue"
	"purser/tenancy"
)

// runRenewing runs work and renews its lease meanwhile. When the lease is lost, work
// is cancelled with queue.ErrFenced as the cause: its writes would be refused anyway.
func (c *Cashier) runRenewing(ctx context.Context, scope tenancy.Scope, fence queue.Fence, asked time.Time, work func(context.Context, queue.Fence) error) error {
	every := cmp.Or(c.renewInterval, leaseRenewInterval)
	if every < 0 {
		return work(ctx, fence)
	}
	held := &heldLease{}
	held.extend(asked, c.limits.lease)
	ctx, stop := context.WithCancelCause(context.WithValue(ctx, heldLeaseKey{}, held))
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
			asked := time.Now()
			renewed, err := c.options.Store.Queue(scope).RenewLease(ctx, fence, c.limits.lease)
			switch {
			case ctx.Err() != nil:
				return
			case err == nil && renewed:
				held.extend(asked, c.limits.lease)
			case err == nil, held.isOver():
				stop(queue.ErrFenced)
				return
			default: // the next tick tries again, while the lease lasts
				c.options.Log.Warn("lease renewal failed", "app", scope.AppID.Format(ids.Application), "cause", err)
			}
		}
	}()
	err := work(ctx, fence)
	if lost := context.Cause(ctx); err != nil && errors.Is(lost, queue.ErrFenced) {
		// Cancelled calls look as if the provider were unavailable.
		return fmt.Errorf("%w (after: %v)", lost, err)
	}
	return err
}

// heldLease is until when a lease is certainly held, by this node's monotonic clock.
type heldLease struct{ until atomic.Int64 }

type heldLeaseKey struct{}

var monotonicStart = time.Now()

// extend counts from when the request was sent: the database counts from a later
// moment.
func (l *heldLease) extend(asked time.Time, lease time.Duration) {
	l.until.Store(int64(asked.Sub(monotonicStart) + lease))
}

func (l *heldLease) isOver() bool { return int64(time.Since(monotonicStart)) >= l.until.Load() }

// leaseError is queue.ErrFenced once the lease of ctx may have expired. A process that
// was suspended notices here, before it calls the provider.
func leaseError(ctx context.Context) error {
	if held, known := ctx.Value(heldLeaseKey{}).(*heldLease); known && held.isOver() {
		return queue.ErrFenced
	}
	return nil
}
