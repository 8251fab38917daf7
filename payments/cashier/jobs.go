package cashier

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/jobs"
	"purser/payments/stripe"
	"purser/store/payments"
	"purser/store/queue"
	"purser/tenancy"
)

// registerJobs registers the handler of each kind of job.
func (c *Cashier) registerJobs() {
	type handler = func(context.Context, jobs.Job) (next int64, err error)
	for kind, run := range map[queue.JobKind]handler{
		queue.JobFree:      c.renewFree,
		queue.JobOperation: c.recover,
		queue.JobPrune:     c.prune,
		queue.JobIdentity:  c.finishIdentityChange,

		queue.JobPlan:         c.atProvider(c.syncPlan),
		queue.JobArchive:      c.atProvider(c.archivePrice),
		queue.JobSession:      c.atProvider(c.refreshSession),
		queue.JobSubscription: c.atProvider(c.refreshSubscription),
		queue.JobCharge:       c.atProvider(c.refreshCharge),
		queue.JobInvoice:      c.atProvider(c.refreshParent),
		queue.JobSchedule:     c.atProvider(c.refreshParent),
		queue.JobRefund:       c.atProvider(c.refreshParent),
		queue.JobDispute:      c.atProvider(c.refreshParent),
		queue.JobCustomer:     c.atProvider(c.forgetCustomer),
		queue.JobLabel:        c.atProvider(c.labelCustomer),
		queue.JobEvents:       c.atProvider(c.readEvents),
		queue.JobReconcile:    c.atProvider(c.reconcileAll),
	} {
		timeout := c.limits.request
		if isPeriodic(kind) {
			timeout = periodicTimeout
		}
		c.jobs.Register(kind, jobs.Handler{Timeout: timeout, Run: func(ctx context.Context, job jobs.Job) (int64, error) {
			next, err := run(ctx, job)
			return next, jobError(kind, err)
		}})
	}
	c.jobs.Every(jobs.Task{Name: "prune applications", Interval: pruneInterval, Timeout: pruneTimeout, Run: c.pruneAll})
}

// atProvider is the handler of a job that needs the account.
func (c *Cashier) atProvider(run func(context.Context, account, queue.Job) (next int64, err error)) func(context.Context, jobs.Job) (int64, error) {
	return func(ctx context.Context, job jobs.Job) (int64, error) {
		acct, err := c.accountOf(ctx, job.Scope, job.Connection, job.Object)
		if err != nil {
			return 0, c.recordUnconfigured(ctx, job.Scope, job.Job, err)
		}
		next, err := run(ctx, acct, job.Job)
		return next, c.alertOnUnauthorized(ctx, acct, err)
	}
}

// jobError says how the queue goes on after an error. Jobs of a retired account are
// done.
func jobError(kind queue.JobKind, err error) error {
	if err == nil || errors.Is(err, errAccountRetired) {
		return nil
	}
	failure := &jobs.Failure{Err: err, Message: errorMessage(err), Stop: isRefusal(err) && !isPeriodic(kind)}
	if stripe.Is(err, stripe.Unauthorized) {
		failure.RetryAfter = unauthorizedRetryDelay
	}
	return failure
}

// isPeriodic reports whether a job repeats for ever. Periodic jobs are never stopped:
// nothing else finds lost webhooks.
func isPeriodic(kind queue.JobKind) bool {
	return kind == queue.JobEvents || kind == queue.JobReconcile || kind == queue.JobPrune
}

// isRefusal reports whether the provider refused a call for good.
func isRefusal(err error) bool {
	problem, ok := errors.AsType[*stripe.Problem](err)
	if !ok {
		return false
	}
	switch problem.Kind {
	case stripe.Refused, stripe.Declined, stripe.NoPaymentMethod, stripe.CannotWait, stripe.KeyMisused:
		return true
	default:
		return false
	}
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
	case errors.Is(err, errAccountRetired):
		return "The payment account was replaced and is no longer used."
	case errors.Is(err, errTooLate):
		return "The payment provider could not be reached for too long. Request it again."
	default:
		return err.Error()
	}
}

// ignoreNotFound drops errors about objects that are not ours or were deleted: other
// programs may use the same Stripe account.
func ignoreNotFound(err error) error {
	if errors.Is(err, payments.ErrUnknown) || stripe.Is(err, stripe.NotFound) {
		return nil
	}
	return err
}

func (c *Cashier) refreshSubscription(ctx context.Context, acct account, job queue.Job) (next int64, err error) {
	return c.refreshSubscriptionWith(ctx, acct, job.Object, syncOptions{})
}

func (c *Cashier) refreshSubscriptionWith(ctx context.Context, acct account, id string, opts syncOptions) (next int64, err error) {
	app := c.options.Store.Payments(acct.scope)
	var checkoutID ids.ID
	var remote stripe.Subscription
	identity := func(ctx context.Context) (string, error) {
		identity, err := app.IdentityOfSubscription(ctx, id)
		if !errors.Is(err, payments.ErrUnknown) {
			return identity, err
		}
		if checkoutID.IsZero() { // it may be so new that the checkout that created it is not synced yet
			if remote, err = acct.provider.Subscription(ctx, id); err != nil {
				return "", err
			}
			checkoutID = checkoutIDOf(remote)
		}
		return app.IdentityOfChange(ctx, checkoutID)
	}
	err = c.withIdentityLease(ctx, acct.scope, identity, func(ctx context.Context, fence queue.Fence) error {
		sub, err := c.syncSubscription(ctx, acct, fence, id, opts)
		if err != nil {
			return ignoreNotFound(err)
		}
		next = delayOverdue(nextRefresh(sub), c.nowAt(fence.ClockOffset))
		return nil
	})
	if !remote.Status.Terminal() && remote.Status != billing.ProviderIncomplete {
		err = c.alertOnMissing(ctx, acct, err, id, remote.Metadata)
	}
	return next, ignoreNotFound(err)
}

// alertOnMissing raises an alert about something paid that was sold for this application
// but is not in its database, which then was restored to an earlier moment. It returns
// err, or why the alert could not be raised.
func (c *Cashier) alertOnMissing(ctx context.Context, acct account, err error, object string, metadata map[string]string) error {
	if _, foreign := ids.Parse(ids.Checkout, metadata[metaCheckout]); foreign != nil || !errors.Is(err, payments.ErrUnknown) ||
		metadata[metaApp] != acct.scope.AppID.Format(ids.Application) {
		return err
	}
	alert := billing.Alert{Kind: billing.SaleMissing, ObjectID: object}
	c.logAlerts(acct, []billing.Alert{alert})
	return cmp.Or(c.options.Store.Payments(acct.scope).Raise(ctx, alert, false, c.nowAt(acct.ClockOffset)), err)
}

func (c *Cashier) refreshSession(ctx context.Context, acct account, job queue.Job) (next int64, err error) {
	id, now := job.Object, c.nowAt(acct.ClockOffset)
	session, err := c.session(ctx, acct, id, now)
	if err != nil {
		return c.afterUnreadSession(ctx, acct, id, now, err)
	}
	identity := func(ctx context.Context) (string, error) {
		checkout, err := c.checkoutOf(ctx, acct, session)
		return checkout.Identity, err
	}
	err = c.withIdentityLease(ctx, acct.scope, identity, func(ctx context.Context, fence queue.Fence) error {
		// Read again under the lease.
		now := c.nowAt(fence.ClockOffset)
		session, err := c.session(ctx, acct, id, now)
		if err != nil {
			next, err = c.afterUnreadSession(ctx, acct, id, now, err)
			return err
		}
		switch {
		case session.Status == billing.SessionOpen:
			next = delayOverdue(session.ExpiresAt+refreshDelay, now)
		case session.Status == billing.SessionComplete && !session.Paid && !session.Failed && session.SubscriptionID == "":
			next = now + overdueInterval // a bank debit takes days
		}
		return c.applySession(ctx, acct, fence, session)
	})
	if session.Paid { // a subscription's customer is in its own metadata
		err = c.alertOnMissing(ctx, acct, err, id, session.Metadata)
	}
	return next, ignoreNotFound(err)
}

func (c *Cashier) refreshCharge(ctx context.Context, acct account, job queue.Job) (next int64, err error) {
	id, app := job.Object, c.options.Store.Payments(acct.scope)
	charge, err := acct.provider.Charge(ctx, id)
	if err != nil {
		return 0, ignoreNotFound(err)
	}
	identity := func(ctx context.Context) (string, error) {
		return app.IdentityOfCharge(ctx, charge.ID, charge.IntentID)
	}
	err = c.withIdentityLease(ctx, acct.scope, identity, func(ctx context.Context, fence queue.Fence) error {
		charge, err := acct.provider.Charge(ctx, id)
		if err != nil {
			return err
		}
		return app.ApplyCharge(ctx, fence, charge, c.nowAt(fence.ClockOffset))
	})
	return 0, ignoreNotFound(err)
}

// refreshParent refreshes the subscription or charge that an object belongs to.
func (c *Cashier) refreshParent(ctx context.Context, acct account, job queue.Job) (next int64, err error) {
	var chargeID, subscriptionID string
	switch job.Kind {
	case queue.JobInvoice:
		_, subscriptionID, err = acct.provider.Invoice(ctx, job.Object)
	case queue.JobSchedule:
		subscriptionID, err = acct.provider.ScheduledSubscription(ctx, job.Object)
	case queue.JobRefund:
		chargeID, err = acct.provider.ChargeOfRefund(ctx, job.Object)
	case queue.JobDispute:
		chargeID, err = acct.provider.ChargeOfDispute(ctx, job.Object)
	}
	switch {
	case err != nil:
		return 0, ignoreNotFound(err)
	case subscriptionID != "":
		// The subscription has a job of its own for its next refresh.
		_, err = c.refreshSubscriptionWith(ctx, acct, subscriptionID, syncOptions{scheduleRefresh: true})
	case chargeID != "":
		_, err = c.refreshCharge(ctx, acct, acct.job(queue.JobCharge, chargeID, 0))
	}
	return 0, err
}

// forgetCustomer drops the id of a customer that was deleted at the provider.
func (c *Cashier) forgetCustomer(ctx context.Context, acct account, job queue.Job) (next int64, err error) {
	accounts := c.options.Store.PaymentAccounts(acct.scope)
	return 0, errors.Join(accounts.ForgetCustomer(ctx, acct.ID, job.Object), accounts.ForgetCustomer(ctx, acct.latest.ID, job.Object))
}

// renewFree renews a free subscription. The provider takes no part.
func (c *Cashier) renewFree(ctx context.Context, job jobs.Job) (next int64, err error) {
	scope := job.Scope
	app := c.options.Store.Payments(scope)
	id, err := uuid.Parse(job.Object)
	if err != nil {
		return 0, err
	}
	identity := func(ctx context.Context) (string, error) { return app.IdentityOfFree(ctx, ids.ID(id)) }
	err = c.withIdentityLease(ctx, scope, identity, func(ctx context.Context, fence queue.Fence) error {
		renewed, err := app.RenewFree(ctx, fence, ids.ID(id), c.nowAt(fence.ClockOffset))
		if !renewed.Ended() {
			next = renewed.Period.End
		}
		return err
	})
	return next, ignoreNotFound(err)
}

// recordUnconfigured handles jobs of an application without an account: a plan shows
// why it is not synced, all other jobs wait.
func (c *Cashier) recordUnconfigured(ctx context.Context, scope tenancy.Scope, job queue.Job, cause error) error {
	if job.Kind != queue.JobPlan || !fault.Is(cause, fault.PaymentsNotConfigured) {
		return cause
	}
	return errors.Join(cause, c.recordPlanError(ctx, scope, job, cause))
}
