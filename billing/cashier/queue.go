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
	// batchSize is how much work is taken off the queue at once, and maxWorkers how
	// much of it is done at the same time for one application.
	batchSize  = 50
	maxWorkers = 4
	// maxBatches bounds one visit to a queue: whoever has much to do must not keep
	// others waiting. maxVisits bounds what somebody waits for: a queue that has not
	// emptied by then never does.
	maxBatches = 4
	maxDrains  = 100

	// queueLease is the lease of whoever works off an application's queue. On several
	// nodes all would ask the provider the same, and wait for each other. It is taken
	// again for each batch and not renewed: it saves calls, and a job that runs twice
	// does no harm.
	queueLease = "queue"
)

// drainResult is what a visit to a queue leaves there.
type drainResult int

const (
	queueEmpty drainResult = iota
	queueHasMore
	queueHeldElsewhere // another node is at it
)

// DrainAll works off all that is due for the application, by its clock, and what
// comes of that. What another node is at is waited for.
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
	for visits := 0; visits < maxDrains; {
		now, err := c.drain(ctx, scope)
		if err != nil || now == queueEmpty {
			return err
		}
		if now == queueHasMore {
			visits++
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(maxPollInterval):
		}
	}
	return errors.New("cashier: the queue of an application does not empty")
}

// tryDrain works off some of what is due, and reports whether there is more. Where
// somebody is at it already, on this node or another, it leaves them to it: were it
// to wait, then one application's visitors would keep all others from being visited.
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

// drain works off what is due, as far as one visit goes. The queue's lock on this
// node must be held.
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
	// Whoever found the queue taken has left their work to us. If they came after the
	// last look, then this is the one that finds it.
	if due, err = c.due(ctx, scope); len(due) > 0 {
		return queueHasMore, err
	}
	return queueEmpty, err
}

func (c *Cashier) leaseQueue(ctx context.Context, scope tenancy.Scope, holder ids.ID) (store.Fence, bool, error) {
	return c.options.Store.App(scope).Lease(ctx, queueLease, holder, c.limits.lease)
}

// due is a batch of what is to be done by now.
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
