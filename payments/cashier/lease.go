package cashier

import (
	"context"
	"errors"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/store/queue"
	"purser/tenancy"
)

// Poll intervals for a lease that another node holds. On each node only one goroutine
// polls for a name, so short intervals cost little.
const (
	minPollInterval = 5 * time.Millisecond
	maxPollInterval = 50 * time.Millisecond
	// leaseAttemptTimeout bounds one attempt to take a lease. It is longer than the
	// store's lock and statement timeouts: only a database that does not respond
	// reaches it.
	leaseAttemptTimeout = 10 * time.Second
)

func planLease(id ids.ID) string { return "plan:" + id.String() }

func actionLease(object string) string { return "action:" + object }

// withIdentityLease runs work while holding the lease of the identity that find returns. A
// wallet may get another identity while the lease is waited for: then its lease is taken.
func (c *Cashier) withIdentityLease(ctx context.Context, scope tenancy.Scope, find func(context.Context) (string, error), work func(context.Context, queue.Fence) error) error {
	for {
		identity, err := find(ctx)
		if err != nil {
			return err
		}
		renamed := false
		err = c.withLease(ctx, scope, queue.IdentityLease(identity), func(ctx context.Context, fence queue.Fence) error {
			if !fence.Renamed {
				return work(ctx, fence)
			}
			current, err := find(ctx)
			if renamed = err == nil && current != identity; renamed || err != nil {
				return err
			}
			return work(ctx, fence)
		})
		if err != nil || !renamed {
			return err
		}
	}
}

// withLease runs work while holding the lease, which excludes all nodes. When the
// lease is not free before leaseWait or the caller's deadline, the caller gets
// OperationInProgress.
func (c *Cashier) withLease(ctx context.Context, scope tenancy.Scope, name string, work func(context.Context, queue.Fence) error) error {
	if err := c.options.Store.Clock().Trust(ctx); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, c.limits.leaseWait)
	defer cancel()
	// The process-local lock first, so that one goroutine per node polls the database.
	unlock, err := c.turns.Take(waiting, scope.AppID.String()+" "+name)
	if err != nil {
		return errBusy(ctx)
	}
	defer unlock()
	fence, asked, err := c.lease(waiting, scope, name)
	if err != nil {
		return err
	}
	defer c.release(ctx, scope, fence)
	if ctx.Err() != nil { // the caller's deadline passed during the last attempt
		return errBusy(ctx)
	}
	return c.runRenewing(ctx, scope, fence, asked, work)
}

// lease polls until it holds the lease or waiting ends, at least once, and returns
// when it requested the lease. The end of waiting cancels no attempt: a cancelled one
// may have committed, and then nothing would release the lease before it expires.
func (c *Cashier) lease(waiting context.Context, scope tenancy.Scope, name string) (fence queue.Fence, asked time.Time, err error) {
	holder, pause := ids.New(), minPollInterval
	for {
		asked := time.Now()
		fence, held, err := c.tryLease(waiting, scope, name, holder)
		if held || err != nil {
			return fence, asked, err
		}
		select {
		case <-waiting.Done():
			return queue.Fence{}, asked, errBusy(waiting)
		case <-time.After(pause):
			pause = min(2*pause, maxPollInterval)
		}
	}
}

func (c *Cashier) tryLease(ctx context.Context, scope tenancy.Scope, name string, holder ids.ID) (queue.Fence, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.limits.attempt)
	defer cancel()
	return c.options.Store.Queue(scope).Lease(ctx, name, holder, c.limits.lease)
}

// release gives up the lease, also after the holder's context has ended.
func (c *Cashier) release(ctx context.Context, scope tenancy.Scope, fence queue.Fence) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.limits.cleanup)
	defer cancel()
	if err := c.options.Store.Queue(scope).Release(ctx, fence); err != nil {
		// It expires by itself.
		c.options.Log.Warn("lease release failed", "app", scope.AppID.Format(ids.Application), "cause", err)
	}
}

func errBusy(ctx context.Context) error {
	return errors.Join(fault.New(fault.OperationInProgress), ctx.Err())
}
