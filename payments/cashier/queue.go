package cashier

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/ids"
	"purser/store"
	"purser/tenancy"
)

const (
	// batchSize is how many due jobs are read at once, and maxWorkers how many of them
	// run concurrently for one application.
	batchSize  = 50
	maxWorkers = 4
	// maxBatches bounds one drain, so that a long queue does not delay other
	// applications. maxDrains bounds DrainAll: a queue that is not empty by then never
	// is.
	maxBatches = 4
	maxDrains  = 100

	// queueLease lets one node at a time drain an application's queue: several would
	// make the same calls and wait for each other. It is taken again for each batch
	// and not renewed: it saves calls, and a job that runs twice does no harm.
	queueLease = "queue"
)

// drainResult is what a drain leaves in the queue.
type drainResult int

const (
	queueEmpty drainResult = iota
	queueHasMore
	queueHeldElsewhere // another node is draining
)

// DrainAll runs all due jobs of the application, by its clock, and those that they
// enqueue. It waits for jobs that another node runs.
func (c *Cashier) DrainAll(ctx context.Context, app ids.ID) error {
	scope, err := c.options.Store.Directory().ScopeOf(ctx, app)
	if err != nil {
		return err
	}
	unlock, err := c.locks.lock(ctx, queueLock(scope))
	if err != nil {
		return err
	}
	defer unlock()
	for drains := 0; drains < maxDrains; {
		now, err := c.drain(ctx, scope)
		if err != nil || now == queueEmpty {
			return err
		}
		if now == queueHasMore {
			drains++
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(maxPollInterval):
		}
	}
	return errors.New("cashier: the application's queue does not drain")
}

// tryDrain drains part of the queue and reports whether there is more. It does not
// wait for a drain that is already running, here or on another node: waiting workers
// of one application would block all others.
func (c *Cashier) tryDrain(ctx context.Context, scope tenancy.Scope) (more bool, err error) {
	unlock, free := c.locks.tryLock(queueLock(scope))
	if !free {
		return false, nil
	}
	defer unlock()
	now, err := c.drain(ctx, scope)
	return now == queueHasMore, err
}

func queueLock(scope tenancy.Scope) string { return "queue " + scope.AppID.String() }

// drain runs up to maxBatches batches of due jobs. The caller must hold the queue's
// process-local lock.
func (c *Cashier) drain(ctx context.Context, scope tenancy.Scope) (drainResult, error) {
	ctx = withClock(ctx)
	due, err := c.due(ctx, scope)
	if err != nil || len(due) == 0 {
		return queueEmpty, err
	}
	holder := ids.New()
	fence, held, err := c.leaseQueue(ctx, scope, holder)
	if err != nil || !held {
		return queueHeldElsewhere, err
	}
	for range maxBatches {
		if err = c.runBatch(ctx, scope, due); err != nil {
			break
		}
		if due, err = c.due(ctx, scope); err != nil || len(due) == 0 {
			break
		}
		again, held, leaseErr := c.leaseQueue(ctx, scope, holder)
		if leaseErr != nil || !held {
			return queueHeldElsewhere, leaseErr
		}
		fence = again
	}
	c.release(ctx, scope, fence)
	if err != nil || len(due) > 0 {
		return queueHasMore, err
	}
	// A node that found the queue leased left its jobs to this one. This read finds jobs
	// that were enqueued after the last batch and before the release.
	if due, err = c.due(ctx, scope); len(due) > 0 {
		return queueHasMore, err
	}
	return queueEmpty, err
}

func (c *Cashier) leaseQueue(ctx context.Context, scope tenancy.Scope, holder ids.ID) (store.Fence, bool, error) {
	return c.options.Store.App(scope).Lease(ctx, queueLease, holder, c.limits.lease)
}

// due reads a batch of due jobs.
func (c *Cashier) due(ctx context.Context, scope tenancy.Scope) ([]store.Job, error) {
	now, err := c.Now(ctx, scope)
	if err != nil {
		return nil, err
	}
	return c.options.Store.App(scope).DueJobs(ctx, now, batchSize)
}

func (c *Cashier) runBatch(ctx context.Context, scope tenancy.Scope, batch []store.Job) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxWorkers)
	for _, job := range batch {
		group.Go(func() error { return c.runJob(ctx, scope, job) })
	}
	return group.Wait()
}
