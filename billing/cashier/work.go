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
	firstPause = int64(2 * time.Second / time.Millisecond)
	lastPause  = int64(time.Hour / time.Millisecond)
)

// attend does one piece of work, and puts it off when that fails. Its own error
// is one of the database.
func (c *Cashier) attend(ctx context.Context, scope tenancy.Scope, w store.Job) error {
	app := c.options.Store.App(scope)
	ctx = withClock(ctx)
	limit := c.limits.talk
	if comesBack(w.Kind) {
		limit = roundTime
	}
	doing, cancel := context.WithTimeout(ctx, limit)
	next, err := c.do(doing, scope, w)
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	now, clockErr := c.Now(ctx, scope)
	if clockErr != nil {
		return clockErr
	}
	if err == nil || errors.Is(err, errLetGo) {
		return app.FinishJob(ctx, w, next)
	}
	level, said, until := slog.LevelWarn, "job failed, will retry", now+pauseAfter(err, w.Tries)
	switch {
	case refused(err) && !comesBack(w.Kind):
		level, said, until = slog.LevelError, "job stopped: the payment provider refuses it for good", store.StoppedWork
	case w.Tries+1 >= store.ManyTries:
		level, said = slog.LevelError, "job keeps failing, will retry"
	}
	c.options.Log.Log(ctx, level, said, "kind", string(w.Kind), "object", w.Object, "tries", w.Tries+1,
		"app", scope.AppID.Format(ids.Application), "cause", err)
	return app.RetryJob(ctx, w, reason(err), until)
}

// comesBack reports whether a job is one that has to run again and again: lost
// webhooks are found by nothing else.
func comesBack(kind store.JobKind) bool {
	return kind == store.JobEvents || kind == store.JobReconcile || kind == store.JobPrune
}

// refused reports whether the provider refused a call in a way that no repetition
// changes.
func refused(err error) bool {
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

func pauseAfter(err error, tries int) int64 {
	if stripe.Is(err, stripe.Unauthorized) {
		return lockedOutPause
	}
	return min(firstPause<<min(tries, 20), lastPause)
}

// reason is what people read of an error.
func reason(err error) string {
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

// do does one piece of work, and says when to look at its object again; zero for
// never.
func (c *Cashier) do(ctx context.Context, scope tenancy.Scope, w store.Job) (next int64, err error) {
	switch w.Kind {
	case store.JobFree:
		return c.renewFree(ctx, scope, w)
	case store.JobOperation:
		return 0, c.recover(ctx, scope, w)
	case store.JobPrune:
		return c.prune(ctx, scope)
	}
	with, err := c.accountOf(ctx, scope, w.Connection, w.Object)
	if err != nil {
		return 0, c.unconfigured(ctx, scope, w, err)
	}
	next, err = c.ask(ctx, with, w)
	return next, c.noticed(ctx, with, err)
}

// ask does a piece of work for which the account is asked.
func (c *Cashier) ask(ctx context.Context, with account, w store.Job) (next int64, err error) {
	switch w.Kind {
	case store.JobPlan:
		return 0, c.syncPlan(ctx, with, w)
	case store.JobArchive:
		return 0, c.archivePrice(ctx, with, w.Object)
	case store.JobSession:
		return c.lookAtSession(ctx, with, w.Object)
	case store.JobSubscription:
		return c.lookAtSubscription(ctx, with, w.Object)
	case store.JobCharge:
		return 0, c.lookAtCharge(ctx, with, w.Object)
	case store.JobInvoice, store.JobSchedule, store.JobRefund, store.JobDispute:
		return 0, c.lookBehind(ctx, with, w)
	case store.JobCustomer:
		return 0, c.options.Store.App(with.scope).ForgetCustomer(ctx, with.ID, w.Object)
	case store.JobEvents:
		return c.readEvents(ctx, with, w)
	case store.JobReconcile:
		return c.sweep(ctx, with, w)
	}
	return 0, fmt.Errorf("cashier: nobody knows how to do work of the kind %q", w.Kind)
}

// known is err, unless it says that the object is not ours, or no longer there:
// other programs may use the same account.
func known(err error) error {
	if errors.Is(err, store.ErrUnknown) || stripe.Is(err, stripe.NotFound) {
		return nil
	}
	return err
}

func (c *Cashier) lookAtSubscription(ctx context.Context, with account, id string) (next int64, err error) {
	app := c.options.Store.App(with.scope)
	identity, err := app.IdentityOfSubscription(ctx, id)
	if errors.Is(err, store.ErrUnknown) {
		// It may be so new that the checkout that made it has not been heard of.
		said, err := with.provider.Subscription(ctx, id)
		if err != nil {
			return 0, known(err)
		}
		if identity, err = app.IdentityOfChange(ctx, boughtBy(said)); err != nil {
			return 0, known(err)
		}
	} else if err != nil {
		return 0, err
	}
	err = c.withLease(ctx, with.scope, ofIdentity(identity), func(ctx context.Context, fence store.Fence) error {
		heard, err := c.hearSubscription(ctx, with, fence, id, hearing{})
		if err != nil {
			return known(err)
		}
		now, err := c.Now(ctx, with.scope)
		next = notBefore(nextLook(heard), now)
		return err
	})
	return next, err
}

func (c *Cashier) lookAtSession(ctx context.Context, with account, id string) (next int64, err error) {
	session, err := with.provider.Session(ctx, id)
	if err != nil {
		return 0, known(err)
	}
	checkout, err := c.checkoutOf(ctx, with, session)
	if err != nil {
		return 0, known(err)
	}
	err = c.withLease(ctx, with.scope, ofIdentity(checkout.Identity), func(ctx context.Context, fence store.Fence) error {
		// Again, now that nobody else writes down what they saw.
		session, err := with.provider.Session(ctx, id)
		if err != nil {
			return known(err)
		}
		now, err := c.Now(ctx, with.scope)
		if err != nil {
			return err
		}
		switch {
		case session.Status == billing.SessionOpen:
			next = notBefore(session.ExpiresAt+lateness, now)
		case session.Status == billing.SessionComplete && !session.Paid && !session.Failed && session.SubscriptionID == "":
			next = now + restTime // a debit is on its way, for days
		}
		return c.applySession(ctx, with, fence, session)
	})
	return next, err
}

func (c *Cashier) lookAtCharge(ctx context.Context, with account, id string) error {
	app := c.options.Store.App(with.scope)
	charge, err := with.provider.Charge(ctx, id)
	if err != nil {
		return known(err)
	}
	identity, err := app.IdentityOfCharge(ctx, charge.ID, charge.IntentID)
	if err != nil {
		return known(err)
	}
	return c.withLease(ctx, with.scope, ofIdentity(identity), func(ctx context.Context, fence store.Fence) error {
		charge, err := with.provider.Charge(ctx, id)
		if err != nil {
			return known(err)
		}
		now, err := c.Now(ctx, with.scope)
		if err != nil {
			return err
		}
		return known(app.ApplyCharge(ctx, fence, charge, now))
	})
}

// lookBehind finds the object that matters behind one that only points to it,
// and has that looked at.
func (c *Cashier) lookBehind(ctx context.Context, with account, w store.Job) (err error) {
	behind := with.work(store.JobSubscription, "", 0)
	switch w.Kind {
	case store.JobInvoice:
		_, behind.Object, err = with.provider.Invoice(ctx, w.Object)
	case store.JobSchedule:
		behind.Object, err = with.provider.ScheduledSubscription(ctx, w.Object)
	case store.JobRefund:
		behind.Kind = store.JobCharge
		behind.Object, err = with.provider.ChargeOfRefund(ctx, w.Object)
	case store.JobDispute:
		behind.Kind = store.JobCharge
		behind.Object, err = with.provider.ChargeOfDispute(ctx, w.Object)
	}
	if err != nil || behind.Object == "" {
		return known(err)
	}
	return c.options.Store.App(with.scope).Enqueue(ctx, behind)
}

// renewFree turns a free subscription that runs here. The provider is not asked.
func (c *Cashier) renewFree(ctx context.Context, scope tenancy.Scope, w store.Job) (next int64, err error) {
	app := c.options.Store.App(scope)
	id, err := uuid.Parse(w.Object)
	if err != nil {
		return 0, err
	}
	identity, err := app.IdentityOfFree(ctx, ids.ID(id))
	if err != nil {
		return 0, known(err)
	}
	err = c.withLease(ctx, scope, ofIdentity(identity), func(ctx context.Context, fence store.Fence) error {
		now, err := c.Now(ctx, scope)
		if err != nil {
			return err
		}
		turned, err := app.RenewFree(ctx, fence, ids.ID(id), now)
		if !turned.Ended() {
			next = turned.Period.End
		}
		return known(err)
	})
	return next, err
}

// unconfigured is for work of an application that has no account: a plan shows
// why it is not synced, everything else waits.
func (c *Cashier) unconfigured(ctx context.Context, scope tenancy.Scope, w store.Job, cause error) error {
	if w.Kind != store.JobPlan || !fault.Is(cause, fault.PaymentsNotConfigured) {
		return cause
	}
	return errors.Join(cause, c.refusePlan(ctx, scope, w, cause))
}
