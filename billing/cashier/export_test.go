package cashier

import (
	"context"
	"slices"
	"time"

	"purser/store"
	"purser/tenancy"
)

// EventTypes is what is listened to.
func EventTypes() []string { return slices.Clone(eventTypes) }

// SetLimits has the cashier give up on a conversation, and end a portion of a
// list, where a test can wait for it.
func (c *Cashier) SetLimits(talk time.Duration, portion int) {
	c.limits.request, c.limits.listBatch = talk, portion
}

// RaiseLimits raises the limits that a busy machine could reach. A lease stays longer
// than the work under it.
func (c *Cashier) RaiseLimits() {
	c.limits.request, c.limits.leaseWait, c.limits.lease, c.limits.cleanup = 4*time.Minute, 4*time.Minute, 5*time.Minute, time.Minute
}

// WithLease runs work while holding a lease.
func (c *Cashier) WithLease(ctx context.Context, scope tenancy.Scope, name string, work func(context.Context, store.Fence) error) error {
	return c.withLease(ctx, scope, name, work)
}

// TryDrain looks whether there is something to do for an application, as a node does
// that was woken.
func (c *Cashier) TryDrain(ctx context.Context, scope tenancy.Scope) (more bool, err error) {
	return c.tryDrain(ctx, scope)
}

// Drain is the job of that name.
func (c *Cashier) Drain(ctx context.Context, scope tenancy.Scope) error {
	return c.runTask(ctx, nil, store.Task{Name: drainJob, Scope: scope})
}

// RunNotified works for applications as they are woken, and leaves jobs alone.
func (c *Cashier) RunNotified(ctx context.Context) error { return c.runNotified(ctx) }

// The limits of a visit, and of a node.
const (
	DrainSize         = maxBatches * batchSize
	MaxConcurrentApps = maxConcurrentApps
)

// SetLease has the cashier's leases run out where a test can wait for it, as those
// of a node that died: nothing renews them.
func (c *Cashier) SetLease(length time.Duration) { c.limits.lease, c.renewInterval = length, -1 }

// SetRenewal has leases of the length renewed so often.
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

// WithoutPeriodicJobs has the cashier leave periodic jobs to EnqueueRounds.
func (c *Cashier) WithoutPeriodicJobs() { c.withoutPeriodicJobs = true }

// EnqueuePeriodicJobs makes periodic jobs due: that which finds lost webhooks, or all.
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

// OpenSessions lists the checkout pages that have to be closed before another purchase.
var OpenSessions = openSessions

// Charged reports whether an invoice takes money.
var Charged = charged
