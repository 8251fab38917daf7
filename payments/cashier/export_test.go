package cashier

import (
	"context"
	"slices"
	"time"

	"purser/store"
	"purser/tenancy"
)

// EventTypes are the subscribed event types.
func EventTypes() []string { return slices.Clone(eventTypes) }

// SetLimits sets the request timeout and the size of a list batch.
func (c *Cashier) SetLimits(talk time.Duration, portion int) {
	c.limits.request, c.limits.listBatch = talk, portion
}

// RaiseLimits raises the timeouts that a busy machine could reach. A lease stays
// longer than the work under it.
func (c *Cashier) RaiseLimits() {
	c.limits.request, c.limits.leaseWait, c.limits.lease, c.limits.cleanup = 4*time.Minute, 4*time.Minute, 5*time.Minute, time.Minute
}

// WithLease runs work while holding a lease.
func (c *Cashier) WithLease(ctx context.Context, scope tenancy.Scope, name string, work func(context.Context, store.Fence) error) error {
	return c.withLease(ctx, scope, name, work)
}

// TryDrain drains part of an application's queue, as a notified node does.
func (c *Cashier) TryDrain(ctx context.Context, scope tenancy.Scope) (more bool, err error) {
	return c.tryDrain(ctx, scope)
}

// Drain runs the drain task.
func (c *Cashier) Drain(ctx context.Context, scope tenancy.Scope) error {
	return c.runTask(ctx, nil, store.Task{Name: drainJob, Scope: scope})
}

// RunNotified drains notified applications, without the scheduler.
func (c *Cashier) RunNotified(ctx context.Context) error { return c.runNotified(ctx) }

// The limits of a drain, and of a node.
const (
	DrainSize         = maxBatches * batchSize
	MaxConcurrentApps = maxConcurrentApps
)

// SetLease sets the lease duration and turns off renewal, as on a node that died.
func (c *Cashier) SetLease(length time.Duration) { c.limits.lease, c.renewInterval = length, -1 }

// SetRenewal sets the lease duration and the renewal interval.
func (c *Cashier) SetRenewal(length, every time.Duration) {
	c.limits.lease, c.renewInterval = length, every
}

// HoldIdentity runs work under the lease of an identity.
func (c *Cashier) HoldIdentity(ctx context.Context, scope tenancy.Scope, identity string, work func(context.Context) error) error {
	return c.withLease(ctx, scope, identityLease(identity), func(ctx context.Context, _ store.Fence) error { return work(ctx) })
}

// How long a dead node keeps a lease, and how long a caller waits for one.
const (
	LeaseDuration = leaseDuration
	LeaseWait     = leaseWait
)

// WithoutPeriodicJobs leaves periodic jobs to EnqueuePeriodicJobs.
func (c *Cashier) WithoutPeriodicJobs() { c.withoutPeriodicJobs = true }

// EnqueuePeriodicJobs makes periodic jobs due: the one that reads events, or all.
func (c *Cashier) EnqueuePeriodicJobs(ctx context.Context, scope tenancy.Scope, all bool) error {
	with, err := c.account(ctx, scope)
	if err != nil {
		return err
	}
	now, err := c.Now(ctx, scope)
	if err != nil {
		return err
	}
	due := periodicJobs(with.ID, now-reconcileInterval)
	if !all {
		due = due[:1]
	}
	return c.options.Store.App(scope).Enqueue(ctx, due...)
}

// OpenSessions lists the checkout sessions that are expired before another purchase.
var OpenSessions = openSessions

// Charged reports whether an invoice takes money.
var Charged = charged
