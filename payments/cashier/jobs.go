package cashier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/payments/stripe"
	"purser/store"
	"purser/tenancy"
)

// Retry delays double from minRetryDelay to maxRetryDelay.
const (
	minRetryDelay = int64(2 * time.Second / time.Millisecond)
	maxRetryDelay = int64(time.Hour / time.Millisecond)
)

// runJob runs one job and reschedules it when it fails. Its own error is a database
// error or the end of ctx.
func (c *Cashier) runJob(ctx context.Context, scope tenancy.Scope, job store.Job) error {
	app := c.options.Store.App(scope)
	ctx = withClock(ctx)
	run := JobRun{Kind: job.Kind, Result: JobDone, Lag: c.lagSince(ctx, scope, job.DueAt)}
	begun := time.Now()
	limit := c.limits.request
	if isPeriodic(job.Kind) {
		limit = periodicTimeout
	}
	doing, cancel := context.WithTimeout(ctx, limit)
	next, err := c.dispatch(doing, scope, job)
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	now, clockErr := c.Now(ctx, scope)
	if clockErr != nil {
		return clockErr
	}
	run.Took = time.Since(begun)
	defer func() { c.options.ObserveJob(run) }()
	if err == nil || errors.Is(err, errAccountRetired) {
		return app.FinishJob(ctx, job, next)
	}
	run.Result = JobRetried
	level, remote, until := slog.LevelWarn, "job failed, will retry", now+retryDelay(err, job.Tries)
	switch {
	case isRefusal(err) && !isPeriodic(job.Kind):
		run.Result = JobStopped
		level, remote, until = slog.LevelError, "job stopped: the payment provider refuses it for good", store.StoppedWork
	case job.Tries+1 >= store.ManyTries:
		level, remote = slog.LevelError, "job keeps failing, will retry"
	}
	c.options.Log.Log(ctx, level, remote, "kind", string(job.Kind), "object", job.Object, "tries", job.Tries+1,
		"app", scope.AppID.Format(ids.Application), "cause", err)
	return app.RetryJob(ctx, job, errorMessage(err), until)
}

// isPeriodic reports whether a job repeats for ever. Periodic jobs are never stopped:
// nothing else finds lost webhooks.
func isPeriodic(kind store.JobKind) bool {
	return kind == store.JobEvents || kind == store.JobReconcile || kind == store.JobPrune
}

// isRefusal reports whether the provider refused a call for good.
func isRefusal(err error) bool {
	var problem *stripe.Problem
	if !errors.As(err, &problem) {
		return false
	}
	switch problem.Kind {
	case stripe.Refused, stripe.Declined, stripe.NoPaymentMethod, stripe.CannotWait, stripe.KeyMisused:
		return true
	default:
		return false
	}
}

func retryDelay(err error, tries int) int64 {
	if stripe.Is(err, stripe.Unauthorized) {
		return unauthorizedRetryDelay
	}
	return min(minRetryDelay<<min(tries, 20), maxRetryDelay)
}

// errorMessage is the text of an error for people.
func errorMessage(err error) string {
	var problem *stripe.Problem
	var known *fault.Fault
	switch {
	case errors.As(err, &problem):
		return problem.Message
	case errors.As(err, &known):
		return known.Message
	default:
		return err.Error()
	}
}

// dispatch runs one job and returns when to refresh its object again; zero for never.
func (c *Cashier) dispatch(ctx context.Context, scope tenancy.Scope, job store.Job) (next int64, err error) {
	switch job.Kind {
	case store.JobFree:
		return c.renewFree(ctx, scope, job)
	case store.JobOperation:
		return 0, c.recover(ctx, scope, job)
	case store.JobPrune:
		return c.prune(ctx, scope)
	}
	with, err := c.accountOf(ctx, scope, job.Connection, job.Object)
	if err != nil {
		return 0, c.recordUnconfigured(ctx, scope, job, err)
	}
	next, err = c.callProvider(ctx, with, job)
	return next, c.alertOnUnauthorized(ctx, with, err)
}

// callProvider runs a job that needs the account.
func (c *Cashier) callProvider(ctx context.Context, with account, job store.Job) (next int64, err error) {
	switch job.Kind {
	case store.JobPlan:
		return 0, c.syncPlan(ctx, with, job)
	case store.JobArchive:
		return 0, c.archivePrice(ctx, with, job.Object)
	case store.JobSession:
		return c.refreshSession(ctx, with, job.Object)
	case store.JobSubscription:
		return c.refreshSubscription(ctx, with, job.Object)
	case store.JobCharge:
		return 0, c.refreshCharge(ctx, with, job.Object)
	case store.JobInvoice, store.JobSchedule, store.JobRefund, store.JobDispute:
		return 0, c.refreshParent(ctx, with, job)
	case store.JobCustomer:
		return 0, c.options.Store.App(with.scope).ForgetCustomer(ctx, with.ID, job.Object)
	case store.JobEvents:
		return c.readEvents(ctx, with, job)
	case store.JobReconcile:
		return c.reconcileAll(ctx, with, job)
	}
	return 0, fmt.Errorf("cashier: unknown job kind %q", job.Kind)
}

// ignoreNotFound drops errors about objects that are not ours or were deleted: other
// programs may use the same Stripe account.
func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrUnknown) || stripe.Is(err, stripe.NotFound) {
		return nil
	}
	return err
}

func (c *Cashier) refreshSubscription(ctx context.Context, with account, id string) (next int64, err error) {
	app := c.options.Store.App(with.scope)
	identity, err := app.IdentityOfSubscription(ctx, id)
	if errors.Is(err, store.ErrUnknown) {
		// It may be so new that the checkout that created it is not synced yet.
		remote, err := with.provider.Subscription(ctx, id)
		if err != nil {
			return 0, ignoreNotFound(err)
		}
		if identity, err = app.IdentityOfChange(ctx, checkoutIDOf(remote)); err != nil {
			return 0, ignoreNotFound(err)
		}
	} else if err != nil {
		return 0, err
	}
	err = c.withLease(ctx, with.scope, identityLease(identity), func(ctx context.Context, fence store.Fence) error {
		sub, err := c.syncSubscription(ctx, with, fence, id, syncOptions{})
		if err != nil {
			return ignoreNotFound(err)
		}
		now, err := c.Now(ctx, with.scope)
		next = delayOverdue(nextRefresh(sub), now)
		return err
	})
	return next, err
}

func (c *Cashier) refreshSession(ctx context.Context, with account, id string) (next int64, err error) {
	session, err := with.provider.Session(ctx, id)
	if err != nil {
		return 0, ignoreNotFound(err)
	}
	checkout, err := c.checkoutOf(ctx, with, session)
	if err != nil {
		return 0, ignoreNotFound(err)
	}
	err = c.withLease(ctx, with.scope, identityLease(checkout.Identity), func(ctx context.Context, fence store.Fence) error {
		// Read again under the lease.
		session, err := with.provider.Session(ctx, id)
		if err != nil {
			return ignoreNotFound(err)
		}
		now, err := c.Now(ctx, with.scope)
		if err != nil {
			return err
		}
		switch {
		case session.Status == billing.SessionOpen:
			next = delayOverdue(session.ExpiresAt+refreshDelay, now)
		case session.Status == billing.SessionComplete && !session.Paid && !session.Failed && session.SubscriptionID == "":
			next = now + overdueInterval // a bank debit takes days
		}
		return c.applySession(ctx, with, fence, session)
	})
	return next, err
}

func (c *Cashier) refreshCharge(ctx context.Context, with account, id string) error {
	app := c.options.Store.App(with.scope)
	charge, err := with.provider.Charge(ctx, id)
	if err != nil {
		return ignoreNotFound(err)
	}
	identity, err := app.IdentityOfCharge(ctx, charge.ID, charge.IntentID)
	if err != nil {
		return ignoreNotFound(err)
	}
	return c.withLease(ctx, with.scope, identityLease(identity), func(ctx context.Context, fence store.Fence) error {
		charge, err := with.provider.Charge(ctx, id)
		if err != nil {
			return ignoreNotFound(err)
		}
		now, err := c.Now(ctx, with.scope)
		if err != nil {
			return err
		}
		return ignoreNotFound(app.ApplyCharge(ctx, fence, charge, now))
	})
}

// refreshParent enqueues a refresh of the subscription or charge that an object
// belongs to.
func (c *Cashier) refreshParent(ctx context.Context, with account, job store.Job) error {
	now, err := c.Now(ctx, with.scope)
	if err != nil {
		return err
	}
	parent := with.job(store.JobSubscription, "", now)
	switch job.Kind {
	case store.JobInvoice:
		_, parent.Object, err = with.provider.Invoice(ctx, job.Object)
	case store.JobSchedule:
		parent.Object, err = with.provider.ScheduledSubscription(ctx, job.Object)
	case store.JobRefund:
		parent.Kind = store.JobCharge
		parent.Object, err = with.provider.ChargeOfRefund(ctx, job.Object)
	case store.JobDispute:
		parent.Kind = store.JobCharge
		parent.Object, err = with.provider.ChargeOfDispute(ctx, job.Object)
	}
	if err != nil || parent.Object == "" {
		return ignoreNotFound(err)
	}
	return c.options.Store.App(with.scope).Enqueue(ctx, parent)
}

// renewFree renews a free subscription. The provider takes no part.
func (c *Cashier) renewFree(ctx context.Context, scope tenancy.Scope, job store.Job) (next int64, err error) {
	app := c.options.Store.App(scope)
	id, err := uuid.Parse(job.Object)
	if err != nil {
		return 0, err
	}
	identity, err := app.IdentityOfFree(ctx, ids.ID(id))
	if err != nil {
		return 0, ignoreNotFound(err)
	}
	err = c.withLease(ctx, scope, identityLease(identity), func(ctx context.Context, fence store.Fence) error {
		now, err := c.Now(ctx, scope)
		if err != nil {
			return err
		}
		renewed, err := app.RenewFree(ctx, fence, ids.ID(id), now)
		if !renewed.Ended() {
			next = renewed.Period.End
		}
		return ignoreNotFound(err)
	})
	return next, err
}

// recordUnconfigured handles jobs of an application without an account: a plan shows
// why it is not synced, all other jobs wait.
func (c *Cashier) recordUnconfigured(ctx context.Context, scope tenancy.Scope, job store.Job, cause error) error {
	if job.Kind != store.JobPlan || !fault.Is(cause, fault.PaymentsNotConfigured) {
		return cause
	}
	return errors.Join(cause, c.recordPlanError(ctx, scope, job, cause))
}
