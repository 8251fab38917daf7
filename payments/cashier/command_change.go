package cashier

import (
	"cmp"
	"context"
	"errors"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/payments/stripe"
	"purser/store/payments"
	"purser/store/queue"
)

// keepPlan cancels every scheduled or pending change.
func (run *operationRun) keepPlan(ctx context.Context) error {
	if err := run.clearChanges(ctx, true); err != nil {
		return err
	}
	return run.complete(ctx)
}

// upgrade updates the subscription to the new price, after everything by which another
// change could still be paid is cancelled.
func (run *operationRun) upgrade(ctx context.Context) error {
	if run.latest.ReplacedAt != 0 && run.mayHaveCharged() {
		if done, err := run.completeIfApplied(ctx); done || err != nil {
			return err
		}
	}
	if err := run.recheckUpgrade(ctx); err != nil {
		return err
	}
	if err := run.clearChanges(ctx, true); err != nil {
		return err
	}
	price := run.rec.Parameters.Change.PriceID
	sameTerms := run.rec.Parameters.Change.SameTerms
	if sameTerms {
		if err := run.activatePrice(ctx, price); err != nil {
			return err
		}
		run.remote = nil // the renewal may have been charged since it was read
	}
	err := run.stepOn(ctx, billing.StepUpgrade,
		func(s stripe.Subscription) bool {
			return s.PriceID == price || s.Pending != nil && s.Pending.PriceID == price
		},
		func(ctx context.Context, key string, s stripe.Subscription) error {
			// Once the other plan is charged there is no invoice to void or to replace: the
			// customer would pay for two periods.
			if voids := run.rec.Parameters.Change.VoidsPriceID; voids != "" && s.PriceID == voids {
				return errors.Join(errSuperseded, errChangedSince())
			}
			if sameTerms && s.UnpaidRenewal() == "" {
				return errors.Join(errSuperseded, errChangedSince())
			}
			return run.provider.Upgrade(ctx, key, s, price)
		})
	if stripe.Is(err, stripe.NoPaymentMethod) || stripe.Is(err, stripe.CannotWait) {
		return run.fallBackToCheckout(ctx)
	}
	if err != nil {
		return err
	}
	return run.complete(ctx)
}

// fallBackToCheckout sells the target in a checkout session because there is no card
// to charge: the customer has none, or pays by bank debit, for which Stripe holds no
// pending update.
func (run *operationRun) fallBackToCheckout(ctx context.Context) error {
	upgrade, err := run.app.Change(ctx, run.rec.ChangeID)
	if err != nil {
		return err
	}
	bought := billing.Change{
		ID: ids.New(), Kind: billing.Checkout, Replaces: cmp.Or(upgrade.SubscriptionID, upgrade.Replaces), Target: upgrade.Target,
		State: billing.ChangeRequested, RequestedAt: run.now,
	}
	op := run.rec.Operation.AtStep(billing.StepSession)
	op.Parameters.Change.Command, op.Parameters.Change.ExpiresAt = billing.CommandReplace, sessionExpiry(run.now)
	if err := run.app.PutChange(ctx, run.fence, op, bought); err != nil {
		return err
	}
	run.rec.Operation, run.rec.ChangeID = op, bought.ID
	return run.replace(ctx)
}

// downgrade puts the subscription under a schedule that changes its price at the
// renewal. These are two calls; after the first one the schedule changes nothing yet.
func (run *operationRun) downgrade(ctx context.Context) error {
	if err := run.clearChanges(ctx, true); err != nil {
		return err
	}
	price := run.rec.Parameters.Change.PriceID
	running, err := run.subscription(ctx)
	if err != nil {
		return err
	}
	// The phases of a schedule include the current price too.
	if err := run.activatePrice(ctx, running.PriceID); err != nil {
		return err
	}
	err = run.stepOn(ctx, billing.StepSchedule,
		func(s stripe.Subscription) bool { return s.ScheduleID != "" },
		func(ctx context.Context, key string, _ stripe.Subscription) error {
			_, err := run.provider.CreateSchedule(ctx, key, run.rec.Parameters.SubscriptionID())
			return err
		})
	if err != nil {
		return err
	}
	err = run.stepOn(ctx, billing.StepPhases,
		func(s stripe.Subscription) bool { return s.Next != nil && s.Next.PriceID == price },
		func(ctx context.Context, key string, s stripe.Subscription) error {
			return run.provider.SetPhases(ctx, key, s.ScheduleID, price)
		})
	if err != nil {
		return err
	}
	return run.complete(ctx)
}

// activatePrice reactivates a price that was archived after its plan was edited: the
// provider accepts no inactive price in a request, not even the subscription's own. It
// is archived again after PriceArchiveDelay, and every use moves that time, so a
// checkout session that sells the price expires first.
func (run *operationRun) activatePrice(ctx context.Context, id string) error {
	until := run.now + billing.PriceArchiveDelay
	if err := run.app.DelayArchive(ctx, id, until); err != nil {
		return err
	}
	price, err := run.provider.Price(ctx, id)
	if err == nil {
		err = run.activateProduct(ctx, price.ProductID)
	}
	if err != nil || price.Active {
		return err
	}
	// Enqueued first, so that a crash leaves no price active for ever.
	if err := run.c.options.Store.Queue(run.scope).Enqueue(ctx, run.job(queue.JobArchive, id, until)); err != nil {
		return err
	}
	return run.provider.SetPriceActive(ctx, "psr:offer:"+ids.New().String(), id, true)
}

// activateProduct reactivates a product that an earlier release deactivated with its
// plan.
func (run *operationRun) activateProduct(ctx context.Context, id string) error {
	product, err := run.provider.Product(ctx, id)
	if err != nil || product.Active {
		return err
	}
	product.Active = true
	return run.provider.UpdateProduct(ctx, "psr:offer:"+ids.New().String(), product)
}

// setCancelFlag sets or clears cancel_at_period_end. A schedule has to be released
// first.
func (run *operationRun) setCancelFlag(ctx context.Context) error {
	if err := run.clearChanges(ctx, run.rec.Parameters.Cancel.VoidPending); err != nil {
		return err
	}
	atPeriodEnd := run.rec.Parameters.Cancels()
	if atPeriodEnd {
		if ended, err := run.cancelUnpaid(ctx); ended || err != nil {
			return err
		}
	}
	err := run.stepOn(ctx, billing.StepFlag,
		func(s stripe.Subscription) bool {
			if atPeriodEnd {
				return s.EndsWithPeriod()
			}
			return !s.CancelAtPeriodEnd && s.CancelAt == 0
		},
		func(ctx context.Context, key string, s stripe.Subscription) error {
			return run.provider.SetCancel(ctx, key, s, atPeriodEnd)
		})
	if err != nil {
		return err
	}
	if atPeriodEnd {
		return run.completeCancellation(ctx)
	}
	return run.complete(ctx)
}

// changeLocal expires the checkout sessions in which another subscription could be
// bought, then changes the free subscription.
func (run *operationRun) changeLocal(ctx context.Context) error {
	if err := run.expireSessions(ctx); err != nil {
		return err
	}
	sub, err := run.currentSubscription(ctx)
	if err != nil {
		return err
	}
	switch run.localChange() {
	case billing.LocalKeep:
		sub = sub.ClearChanges()
	case billing.LocalCancel:
		underWay := sub.Pending != nil && sub.Pending.PaymentURL == ""
		sub = sub.Cancel(billing.CancelOrder{
			CancelAtPeriodEnd: run.rec.Parameters.Cancels(), ReleaseScheduled: true, VoidPending: !underWay,
		})
	case billing.LocalSchedule:
		target, err := run.recheckFree(ctx, sub)
		if err != nil {
			return err
		}
		sub = sub.ClearChanges().Schedule(target)
	}
	return run.finishWith(ctx, payments.Completion{Subscription: &sub, Answer: &sub})
}

// recheckFree loads the terms to schedule. The operation may have waited for hours: a
// plan that is no longer free would be given away.
func (run *operationRun) recheckFree(ctx context.Context, sub billing.Subscription) (billing.Terms, error) {
	plan, err := run.c.options.Store.App(run.scope).Plan(ctx, run.rec.Parameters.PlanKey())
	if err != nil {
		return billing.Terms{}, err
	}
	order, err := billing.DecideChange(&sub, plan)
	if err == nil && order.Kind != billing.Downgrade {
		err = fault.Newf(fault.OperationInProgress, "The price of this plan has changed. Send the request again with a new idempotency key.")
	}
	if err != nil {
		return billing.Terms{}, errors.Join(errSuperseded, err)
	}
	return order.Target, nil
}

// currentSubscription is the identity's subscription. When it has ended since, the
// operation is superseded.
func (run *operationRun) currentSubscription(ctx context.Context) (billing.Subscription, error) {
	sub, err := run.app.Subscription(ctx, run.rec.Identity)
	if fault.Is(err, fault.SubscriptionNotFound) {
		err = errors.Join(errSuperseded, err)
	}
	return sub, err
}

// localChange is the change to a free subscription.
func (run *operationRun) localChange() billing.LocalChange {
	if p := run.rec.Parameters.Change; p != nil {
		return p.Local
	}
	return run.rec.Parameters.Cancel.Local
}

// clearChanges releases the schedule and, with pending, voids the upgrade that waits
// for payment and expires open checkout sessions.
func (run *operationRun) clearChanges(ctx context.Context, pending bool) error {
	err := run.stepOn(ctx, billing.StepRelease,
		func(s stripe.Subscription) bool { return s.ScheduleID == "" },
		func(ctx context.Context, key string, s stripe.Subscription) error {
			return run.provider.ReleaseSchedule(ctx, key, s.ScheduleID)
		})
	if err != nil || !pending {
		return err
	}
	if err := run.voidPendingUpdate(ctx); err != nil {
		return err
	}
	return run.expireSessions(ctx)
}

func (run *operationRun) voidPendingUpdate(ctx context.Context) error {
	isVoid := func(s stripe.Subscription) bool { return s.Pending == nil }
	err := run.stepOn(ctx, billing.StepVoid, isVoid, func(ctx context.Context, key string, s stripe.Subscription) error {
		return run.provider.VoidInvoice(ctx, key, s.PendingInvoice)
	})
	if !stripe.Is(err, stripe.Refused) {
		return err
	}
	// It may have been paid, or have expired, between the read and the call.
	if s, readErr := run.subscription(ctx); readErr != nil || isVoid(s) {
		return readErr
	}
	return err
}

// expireSessions expires the checkout sessions that were open when the operation
// began.
func (run *operationRun) expireSessions(ctx context.Context) error {
	for _, id := range run.rec.Parameters.Sessions() {
		if err := run.expireSession(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// expireSession expires one checkout session. One that was paid in the meantime has
// created a subscription, so the request was decided on outdated state. A bank debit
// that is processing cannot be stopped: a cancellation leaves it alone, because the
// current subscription would renew meanwhile; anything else has to wait for its
// outcome.
func (run *operationRun) expireSession(ctx context.Context, id string) error {
	session, err := run.c.session(ctx, run.account, id, run.now)
	if err == nil && session.Status == billing.SessionOpen {
		err = run.step(ctx, billing.StepExpire,
			func(context.Context) (bool, error) { return false, nil },
			func(ctx context.Context, key string) error {
				session, err = run.provider.ExpireSession(ctx, key+":"+id, id)
				return err
			})
	}
	if stripe.Is(err, stripe.Refused) {
		session, err = run.provider.Session(ctx, id)
	}
	if err != nil {
		return err
	}
	if err := run.c.applySession(ctx, run.account, run.fence, session); err != nil {
		return err
	}
	switch {
	case session.Status == billing.SessionComplete && !session.Paid && run.rec.Parameters.Cancels():
		return nil
	case session.Status == billing.SessionComplete && !session.Paid && session.AmountTotal > 0:
		return errors.Join(errSuperseded,
			fault.Newf(fault.OperationInProgress, "A bank debit for a checkout of this identity is processing, which takes a few days. Change the plan once it has succeeded or failed."))
	case session.Status == billing.SessionComplete:
		return errors.Join(errSuperseded,
			fault.Newf(fault.OperationInProgress, "A checkout of this identity was just completed. Read the subscription, then try again."))
	}
	return nil
}

// complete syncs the subscription and completes the operation with it.
func (run *operationRun) complete(ctx context.Context) error {
	rec := run.rec
	_, err := run.c.syncSubscription(ctx, run.account, run.fence, rec.Parameters.SubscriptionID(), syncOptions{scheduleRefresh: true, completes: &rec})
	return err
}
