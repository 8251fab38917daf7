package cashier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"purser/billing"
	"purser/billing/stripe"
	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
)

// The pauses after failures: they double.
const (
	minRetryDelay = int64(2 * time.Second / time.Millisecond)
	maxRetryDelay = int64(time.Hour / time.Millisecond)
)

// runJob does one piece of work, and puts it off when that fails. Its own error
// is one of the database.
func (c *Cashier) runJob(ctx context.Context, scope tenancy.Scope, job store.Job) error {
	app := c.options.Store.App(scope)
	ctx = withClock(ctx)
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
	if err == nil || errors.Is(err, errAccountRetired) {
		return app.FinishJob(ctx, job, next)
	}
	level, remote, until := slog.LevelWarn, "job failed, will retry", now+retryDelay(err, job.Tries)
	switch {
	case isRefusal(err) && !isPeriodic(job.Kind):
		level, remote, until = slog.LevelError, "job stopped: the payment provider refuses it for good", store.StoppedWork
	case job.Tries+1 >= store.ManyTries:
		level, remote = slog.LevelError, "job keeps failing, will retry"
	}
	c.options.Log.Log(ctx, level, remote, "kind", string(job.Kind), "object", job.Object, "tries", job.Tries+1,
		"app", scope.AppID.Format(ids.Application), "cause", err)
	return app.RetryJob(ctx, job, errorMessage(err), until)
}

// isPeriodic reports whether a job is one that has to run again and again: lost
// webhooks are found by nothing else.
func isPeriodic(kind store.JobKind) bool {
	return kind == store.JobEvents || kind == store.JobReconcile || kind == store.JobPrune
}

// isRefusal reports whether the provider refused a call in a way that no repetition
// changes.
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

// errorMessage is what people read of an error.
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

// dispatch does one piece of work, and says when to look at its object again; zero for
// never.
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

// callProvider does a piece of work for which the account is asked.
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
	return 0, fmt.Errorf("cashier: nobody knows how to do work of the kind %q", job.Kind)
}

// ignoreNotFound is err, unless it says that the object is not ours, or no longer there:
// other programs may use the same account.
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
		// It may be so new that the checkout that made it has not been heard of.
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
		// Again, now that nobody else writes down what they saw.
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
			next = now + overdueInterval // a debit is on its way, for days
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

// refreshParent finds the object that matters behind one that only points to it,
// and has that looked at.
func (c *Cashier) refreshParent(ctx context.Context, with account, job store.Job) (err error) {
	behind := with.job(store.JobSubscription, "", 0)
	switch job.Kind {
	case store.JobInvoice:
		_, behind.Object, err = with.provider.Invoice(ctx, job.Object)
	case store.JobSchedule:
		behind.Object, err = with.provider.ScheduledSubscription(ctx, job.Object)
	case store.JobRefund:
		behind.Kind = store.JobCharge
		behind.Object, err = with.provider.ChargeOfRefund(ctx, job.Object)
	case store.JobDispute:
		behind.Kind = store.JobCharge
		behind.Object, err = with.provider.ChargeOfDispute(ctx, job.Object)
	}
	if err != nil || behind.Object == "" {
		return ignoreNotFound(err)
	}
	return c.options.Store.App(with.scope).Enqueue(ctx, behind)
}

// renewFree turns a free subscription that runs here. The provider is not asked.
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

// recordUnconfigured is for work of an application that has no account: a plan shows
// why it is not synced, everything else waits.
func (c *Cashier) recordUnconfigured(ctx context.Context, scope tenancy.Scope, job store.Job, cause error) error {
	if job.Kind != store.JobPlan || !fault.Is(cause, fault.PaymentsNotConfigured) {
		return cause
	}
	return errors.Join(cause, c.recordPlanError(ctx, scope, job, cause))
}
