package cashier

import (
	"context"
	"slices"
	"time"

	"purser/ids"
	"purser/jobs"
	"purser/store/queue"
	"purser/tenancy"
)

// EventTypes are the subscribed event types.
func EventTypes() []string { return slices.Clone(eventTypes) }

// SetLimits sets the request timeout and the size of a list batch.
func (c *Cashier) SetLimits(request time.Duration, listBatch int) {
	c.limits.request, c.limits.listBatch = request, listBatch
	c.renewQueue()
}

// RaiseLimits raises the timeouts that a busy machine could reach. A lease stays
// longer than the work under it.
func (c *Cashier) RaiseLimits() {
	c.limits.request, c.limits.leaseWait, c.limits.attempt = 4*time.Minute, 4*time.Minute, 4*time.Minute
	c.limits.lease, c.limits.cleanup = 5*time.Minute, time.Minute
	c.renewQueue()
}

// renewQueue makes a queue whose handlers go by the current limits.
func (c *Cashier) renewQueue() {
	c.jobs = jobs.New(jobs.Options{Store: c.options.Store, Log: c.options.Log, Now: c.options.Now, Lease: 5 * time.Minute})
	c.registerJobs()
}

// ReceiveWebhook verifies and stores a webhook.
func (c *Cashier) ReceiveWebhook(ctx context.Context, connection, signature string, body []byte) error {
	webhook, err := c.VerifyWebhook(ctx, connection, signature, body)
	if err != nil {
		return err
	}
	return c.StoreWebhook(ctx, webhook)
}

// Recover resumes one operation and runs no other job.
func (c *Cashier) Recover(ctx context.Context, scope tenancy.Scope, operation ids.ID) error {
	_, err := c.recover(ctx, jobs.Job{Scope: scope, Job: queue.Job{Object: operation.String()}})
	return err
}

// WithLease runs work while holding a lease.
func (c *Cashier) WithLease(ctx context.Context, scope tenancy.Scope, name string, work func(context.Context, queue.Fence) error) error {
	return c.withLease(ctx, scope, name, work)
}

// Run runs the jobs of all applications.
func (c *Cashier) Run(ctx context.Context) error { return c.jobs.Run(ctx) }

// SetLease sets the lease duration and turns off renewal, as on a node that died.
func (c *Cashier) SetLease(length time.Duration) { c.limits.lease, c.renewInterval = length, -1 }

// SetRenewal sets the lease duration and the renewal interval.
func (c *Cashier) SetRenewal(length, every time.Duration) {
	c.limits.lease, c.renewInterval = length, every
}

// HoldIdentity runs work under the lease of an identity.
func (c *Cashier) HoldIdentity(ctx context.Context, scope tenancy.Scope, identity string, work func(context.Context) error) error {
	return c.withLease(ctx, scope, queue.IdentityLease(identity), func(ctx context.Context, _ queue.Fence) error { return work(ctx) })
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
	acct, err := c.account(ctx, scope)
	if err != nil {
		return err
	}
	due := periodicJobs(acct.ID, c.nowAt(acct.ClockOffset)-reconcileInterval)
	if !all {
		due = due[:1]
	}
	return c.options.Store.Queue(scope).Enqueue(ctx, due...)
}

// SyncAsLive syncs a subscription as if its account were in live mode.
func (c *Cashier) SyncAsLive(ctx context.Context, scope tenancy.Scope, identity, id string) error {
	acct, err := c.account(ctx, scope)
	if err != nil {
		return err
	}
	acct.Live = true
	return c.withLease(ctx, scope, queue.IdentityLease(identity), func(ctx context.Context, fence queue.Fence) error {
		_, err := c.syncSubscription(ctx, acct, fence, id, syncOptions{})
		return err
	})
}

// RefreshSessionAsLive refreshes a checkout session as if its account were in live mode.
func (c *Cashier) RefreshSessionAsLive(ctx context.Context, scope tenancy.Scope, id string) error {
	acct, err := c.account(ctx, scope)
	if err != nil {
		return err
	}
	acct.Live = true
	_, err = c.refreshSession(ctx, acct, acct.job(queue.JobSession, id, 0))
	return err
}

// PruneAll runs the retention.
func (c *Cashier) PruneAll(ctx context.Context) error { return c.pruneAll(ctx) }

// OpenSessions lists the checkout sessions that are expired before another purchase.
var OpenSessions = openSessions

// Charged reports whether an invoice takes money.
var Charged = charged
