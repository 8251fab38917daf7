package cashier

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"purser/billing"
	"purser/billing/stripe"
	"purser/fault"
	"purser/ids"
	"purser/store"
)

// keepPlan calls off whatever would change the plan.
func (run *operationRun) keepPlan(ctx context.Context) error {
	if err := run.clearChanges(ctx, true); err != nil {
		return err
	}
	return run.complete(ctx)
}

// upgrade asks for the new price, after everything by which another wish could
// still be paid is gone.
func (run *operationRun) upgrade(ctx context.Context) error {
	if err := run.recheckUpgrade(ctx); err != nil {
		return err
	}
	if err := run.clearChanges(ctx, true); err != nil {
		return err
	}
	price := run.rec.Parameters[paramPrice]
	sameTerms := run.rec.Parameters[paramSameTerms] == "true"
	if sameTerms {
		if err := run.activatePrice(ctx, price); err != nil {
			return err
		}
		run.remote = nil // the renewal may have been charged since the first read
	}
	err := run.step(ctx, billing.StepUpgrade,
		func(ctx context.Context) (bool, error) {
			s, err := run.subscription(ctx)
			return s.PriceID == price || s.Pending != nil && s.Pending.PriceID == price, err
		},
		func(ctx context.Context, key string) error {
			s, err := run.subscription(ctx)
			if err != nil {
				return err
			}
			// Once the other plan is charged there is no bill to replace: the customer would
			// pay for two periods.
			if sameTerms && unpaidRenewal(s) == "" {
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

// hasFailed reports whether the op had failed, and its caller asks for it again. What
// it was decided by may be over.
func (run *operationRun) hasFailed() bool { return run.rec.Error != "" }

// recheckUpgrade decides again about an upgrade that was given up. On a dearer plan it
// would cut a paid period short; once it was cancelled, it would charge for what
// is to end.
func (run *operationRun) recheckUpgrade(ctx context.Context) error {
	if !run.hasFailed() {
		return nil
	}
	sub, err := run.c.syncSubscription(ctx, run.account, run.fence, run.rec.Parameters[paramSubscription], syncOptions{scheduleRefresh: true})
	if err != nil {
		return err
	}
	plan, err := run.app.Plan(ctx, run.rec.Parameters[paramPlan])
	if err != nil {
		return err
	}
	order, err := billing.DecideChange(&sub, plan)
	switch {
	case fault.Is(err, fault.AlreadyOnPlan):
		return nil // it was paid after all, and is only to be answered
	case err == nil && (order.Kind == billing.Upgrade || order.Kind == billing.Keep):
		return nil
	case err == nil:
		err = errChangedSince()
	}
	return errors.Join(errSuperseded, err)
}

// fallBackToCheckout sells the target on a page, because there is no card to charge: the
// customer has none, or pays by bank debit, for which no update waits.
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
	op.Parameters[paramCommand] = string(commandReplace)
	setExpiry(op, run.now)
	if err := run.app.PutChange(ctx, run.fence, op, bought); err != nil {
		return err
	}
	run.rec.Operation, run.rec.ChangeID = op, bought.ID
	return run.replace(ctx)
}

// downgrade puts the subscription under a schedule that changes its price with
// the renewal. These are two calls; in between there is a schedule that changes
// nothing.
func (run *operationRun) downgrade(ctx context.Context) error {
	if err := run.clearChanges(ctx, true); err != nil {
		return err
	}
	price := run.rec.Parameters[paramPrice]
	running, err := run.subscription(ctx)
	if err != nil {
		return err
	}
	// The phases of a schedule name the present price too.
	if err := run.activatePrice(ctx, running.PriceID); err != nil {
		return err
	}
	err = run.step(ctx, billing.StepSchedule,
		func(ctx context.Context) (bool, error) {
			s, err := run.subscription(ctx)
			return s.ScheduleID != "", err
		},
		func(ctx context.Context, key string) error {
			_, err := run.provider.CreateSchedule(ctx, key, run.rec.Parameters[paramSubscription])
			return err
		})
	if err != nil {
		return err
	}
	err = run.step(ctx, billing.StepPhases,
		func(ctx context.Context) (bool, error) {
			s, err := run.subscription(ctx)
			return s.Next != nil && s.Next.PriceID == price, err
		},
		func(ctx context.Context, key string) error {
			s, err := run.subscription(ctx)
			if err != nil {
				return err
			}
			return run.provider.SetPhases(ctx, key, s.ScheduleID, price)
		})
	if err != nil {
		return err
	}
	return run.complete(ctx)
}

// activatePrice puts a price on sale again that was archived after its plan was edited: the
// provider takes no other in a request, not even the one that a subscription has. It
// is archived again later, as after an edit: a page that sells it, which a change without
// a card opens, closes before that, also when another change had offered it first.
func (run *operationRun) activatePrice(ctx context.Context, id string) error {
	until := run.now + billing.PriceArchiveDelay
	if err := run.app.DelayArchive(ctx, id, until); err != nil {
		return err
	}
	price, err := run.provider.Price(ctx, id)
	if err != nil || price.Active {
		return err
	}
	// First, so that a crash leaves nothing on sale.
	if err := run.app.Enqueue(ctx, run.job(store.JobArchive, id, until)); err != nil {
		return err
	}
	return run.provider.SetPriceActive(ctx, "psr:offer:"+ids.New().String(), id, true)
}

// setCancelFlag makes the subscription end with its period, or go on. A schedule has to
// let go of it first.
func (run *operationRun) setCancelFlag(ctx context.Context) error {
	if err := run.clearChanges(ctx, run.rec.Parameters[paramVoid] != ""); err != nil {
		return err
	}
	atPeriodEnd := run.rec.Parameters[paramFlag] == "true"
	if atPeriodEnd {
		if ended, err := run.cancelUnpaid(ctx); ended || err != nil {
			return err
		}
	}
	err := run.step(ctx, billing.StepFlag,
		func(ctx context.Context) (bool, error) {
			s, err := run.subscription(ctx)
			return (s.CancelAtPeriodEnd || s.CancelAt != 0) == atPeriodEnd, err
		},
		func(ctx context.Context, key string) error {
			s, err := run.subscription(ctx)
			if err != nil {
				return err
			}
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

// changeLocal closes the pages on which another subscription could be bought, and then
// changes the free one that runs here.
func (run *operationRun) changeLocal(ctx context.Context) error {
	if err := run.expireSessions(ctx); err != nil {
		return err
	}
	sub, err := run.currentSubscription(ctx)
	if err != nil {
		return err
	}
	switch run.rec.Parameters[paramLocalChange] {
	case localKeep:
		sub = sub.ClearChanges()
	case localCancel:
		underWay := sub.Pending != nil && sub.Pending.PaymentURL == ""
		sub = sub.Cancel(billing.CancelOrder{
			CancelAtPeriodEnd: run.rec.Parameters[paramFlag] == "true", ReleaseScheduled: true, VoidPending: !underWay,
		})
	case localSchedule:
		target, err := run.recheckFree(ctx, sub)
		if err != nil {
			return err
		}
		sub = sub.ClearChanges().Schedule(target)
	}
	op := run.rec.Operation
	op.State = billing.OperationDone
	return run.app.CompleteOperation(ctx, run.fence, store.Completion{Operation: op, Subscription: &sub, Answer: &sub})
}

// recheckFree is what the subscription is to be queued for. The op may have waited
// for hours, and a plan that costs something by now would be given away.
func (run *operationRun) recheckFree(ctx context.Context, sub billing.Subscription) (billing.Terms, error) {
	plan, err := run.app.Plan(ctx, run.rec.Parameters[paramPlan])
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

// currentSubscription is the identity's subscription. When it has ended meanwhile, what was
// asked of it is over too.
func (run *operationRun) currentSubscription(ctx context.Context) (billing.Subscription, error) {
	sub, err := run.app.Subscription(ctx, run.rec.Identity)
	if fault.Is(err, fault.SubscriptionNotFound) {
		err = errors.Join(errSuperseded, err)
	}
	return sub, err
}

// What becomes of a free subscription.
const (
	localKeep     = "stay"
	localSchedule = "queue"
	localCancel   = "cancel"
)

// clearChanges takes away what would change the subscription: its schedule and, when
// that is wanted too, the upgrade that waits for a payment.
func (run *operationRun) clearChanges(ctx context.Context, pending bool) error {
	err := run.step(ctx, billing.StepRelease,
		func(ctx context.Context) (bool, error) {
			s, err := run.subscription(ctx)
			return s.ScheduleID == "", err
		},
		func(ctx context.Context, key string) error {
			s, err := run.subscription(ctx)
			if err != nil {
				return err
			}
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
	pending := func(ctx context.Context) (bool, error) {
		s, err := run.subscription(ctx)
		return s.Pending == nil, err
	}
	err := run.step(ctx, billing.StepVoid, pending, func(ctx context.Context, key string) error {
		s, err := run.subscription(ctx)
		if err != nil {
			return err
		}
		return run.provider.VoidInvoice(ctx, key, s.PendingInvoice)
	})
	if !stripe.Is(err, stripe.Refused) {
		return err
	}
	// It may have been paid, or have expired, between the look and the call.
	if gone, lookErr := pending(ctx); lookErr != nil || gone {
		return lookErr
	}
	return err
}

// expireSessions expires the checkout pages that the op found open.
func (run *operationRun) expireSessions(ctx context.Context) error {
	for _, id := range strings.Fields(run.rec.Parameters[paramSessions]) {
		if err := run.expireSession(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// isCancellation reports whether the op ends the subscription with its period.
func (run *operationRun) isCancellation() bool {
	a := command(run.rec.Parameters[paramCommand])
	cancels := a == commandCancel || a == commandLocal && run.rec.Parameters[paramLocalChange] == localCancel
	return cancels && run.rec.Parameters[paramFlag] == "true"
}

// expireSession expires one page. One that was paid in the meantime has made a
// subscription, so the request was decided on outdated state. A bank debit that is
// under way cannot be stopped: a cancellation leaves it alone, because the present
// subscription would renew meanwhile; anything else has to wait for its outcome.
func (run *operationRun) expireSession(ctx context.Context, id string) error {
	session, err := run.provider.Session(ctx, id)
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
	case session.Status == billing.SessionComplete && !session.Paid && run.isCancellation():
		return nil
	case session.Status == billing.SessionComplete && !session.Paid:
		return errors.Join(errSuperseded,
			fault.Newf(fault.OperationInProgress, "A bank debit for a checkout of this identity is processing, which takes a few days. Change the plan once it has succeeded or failed."))
	case session.Status == billing.SessionComplete:
		return errors.Join(errSuperseded,
			fault.Newf(fault.OperationInProgress, "A checkout of this identity was just completed. Read the subscription, then try again."))
	}
	return nil
}

// complete hears how the subscription stands now, and closes the op with that.
func (run *operationRun) complete(ctx context.Context) error {
	op := run.rec.Operation
	_, err := run.c.syncSubscription(ctx, run.account, run.fence, run.rec.Parameters[paramSubscription], syncOptions{scheduleRefresh: true, completes: &op})
	return err
}
