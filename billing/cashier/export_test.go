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
	c.limits.talk, c.limits.portion = talk, portion
}

// BePatient raises the limits that a busy machine could reach. A lease stays longer
// than the work under it.
func (c *Cashier) BePatient() {
	c.limits.talk, c.limits.patience, c.limits.lease, c.limits.tidy = 4*time.Minute, 4*time.Minute, 5*time.Minute, time.Minute
}

// WithLease runs work while holding a lease.
func (c *Cashier) WithLease(ctx context.Context, scope tenancy.Scope, name string, work func(context.Context, store.Fence) error) error {
	return c.withLease(ctx, scope, name, work)
}

// Visit looks whether there is something to do for an application, as a node does
// that was woken.
func (c *Cashier) Visit(ctx context.Context, scope tenancy.Scope) (more bool, err error) {
	return c.visit(ctx, scope)
}

// Drain is the job of that name.
func (c *Cashier) Drain(ctx context.Context, scope tenancy.Scope) error {
	return c.doJob(ctx, nil, store.Task{Name: drainJob, Scope: scope})
}

// Attend works for applications as they are woken, and leaves jobs alone.
func (c *Cashier) Attend(ctx context.Context) error { return c.attendAll(ctx) }

// The limits of a visit, and of a node.
const (
	VisitSize = maxBatches * batchSize
	MaxAwake  = maxAwake
)

// SetLease has the cashier's leases run out where a test can wait for it, as those
// of a node that died: nothing renews them.
func (c *Cashier) SetLease(length time.Duration) { c.limits.lease, c.renew = length, -1 }

// SetRenewal has leases of the length renewed so often.
func (c *Cashier) SetRenewal(length, every time.Duration) { c.limits.lease, c.renew = length, every }

// HoldIdentity runs work under the lease of an identity.
func (c *Cashier) HoldIdentity(ctx context.Context, scope tenancy.Scope, identity string, work func(context.Context) error) error {
	return c.withLease(ctx, scope, ofIdentity(identity), func(ctx context.Context, _ store.Fence) error { return work(ctx) })
}

// How long a dead node keeps a lease, and how long a caller waits for one.
const (
	LeaseTime = leaseTime
	Patience  = patience
)

// WithoutRounds has the cashier leave periodic jobs to EnqueueRounds.
func (c *Cashier) WithoutRounds() { c.withoutRounds = true }

// EnqueueRounds makes periodic jobs due: that which finds lost webhooks, or all.
func (c *Cashier) EnqueueRounds(ctx context.Context, scope tenancy.Scope, all bool) error {
	with, err := c.account(ctx, scope)
	if err != nil {
		return err
	}
	now, err := c.Now(ctx, scope)
	if err != nil {
		return err
	}
	due := rounds(with.ID, now-sweepTime)
	if !all {
		due = due[:1]
	}
	return c.options.Store.App(scope).Enqueue(ctx, due...)
}

// OpenPages lists the checkout pages that have to be closed before another purchase.
var OpenPages = openPages

// Charged reports whether an invoice takes money.
var Charged = charged
