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

// keep calls off whatever would change the plan.
func (t *talk) keep(ctx context.Context) error {
	if err := t.callOff(ctx, true); err != nil {
		return err
	}
	return t.close(ctx)
}

// upgrade asks for the new price, after everything by which another wish could
// still be paid is gone.
func (t *talk) upgrade(ctx context.Context) error {
	if err := t.stillUpgrade(ctx); err != nil {
		return err
	}
	if err := t.callOff(ctx, true); err != nil {
		return err
	}
	price := t.rec.Parameters[paramPrice]
	stays := t.rec.Parameters[paramStays] == flag(true)
	if stays {
		if err := t.offer(ctx, price); err != nil {
			return err
		}
		t.seen = nil // the renewal may have been charged since the first read
	}
	err := t.take(ctx, billing.StepUpgrade,
		func(ctx context.Context) (bool, error) {
			s, err := t.subscription(ctx)
			return s.PriceID == price || s.Pending != nil && s.Pending.PriceID == price, err
		},
		func(ctx context.Context, key string) error {
			s, err := t.subscription(ctx)
			if err != nil {
				return err
			}
			// Once the other plan is charged there is no bill to replace: the customer would
			// pay for two periods.
			if stays && unpaidRenewal(s) == "" {
				return errors.Join(errOvertaken, errChangedSince())
			}
			return t.provider.Upgrade(ctx, key, s, price)
		})
	if stripe.Is(err, stripe.NoPaymentMethod) || stripe.Is(err, stripe.CannotWait) {
		return t.replaceInstead(ctx)
	}
	if err != nil {
		return err
	}
	return t.close(ctx)
}

// givenUp reports whether the op had failed, and its caller asks for it again. What
// it was decided by may be over.
func (t *talk) givenUp() bool { return t.rec.Error != "" }

// stillUpgrade decides again about an upgrade that was given up. On a dearer plan it
// would cut a paid period short; once it was cancelled, it would charge for what
// is to end.
func (t *talk) stillUpgrade(ctx context.Context) error {
	if !t.givenUp() {
		return nil
	}
	is, err := t.c.hearSubscription(ctx, t.account, t.fence, t.rec.Parameters[paramSubscription], hearing{watched: true})
	if err != nil {
		return err
	}
	plan, err := t.app.Plan(ctx, t.rec.Parameters[paramPlan])
	if err != nil {
		return err
	}
	order, err := billing.DecideChange(&is, plan)
	switch {
	case fault.Is(err, fault.AlreadyOnPlan):
		return nil // it was paid after all, and is only to be answered
	case err == nil && (order.Kind == billing.Upgrade || order.Kind == billing.Keep):
		return nil
	case err == nil:
		err = errChangedSince()
	}
	return errors.Join(errOvertaken, err)
}

// replaceInstead sells the target on a page, because there is no card to charge: the
// customer has none, or pays by bank debit, for which no update waits.
func (t *talk) replaceInstead(ctx context.Context) error {
	upgrade, err := t.app.Change(ctx, t.rec.ChangeID)
	if err != nil {
		return err
	}
	bought := billing.Change{
		ID: ids.New(), Kind: billing.Checkout, Replaces: cmp.Or(upgrade.SubscriptionID, upgrade.Replaces), Target: upgrade.Target,
		State: billing.ChangeRequested, RequestedAt: t.now,
	}
	op := t.rec.Operation.To(billing.StepSession)
	op.Parameters[paramAct] = string(actReplace)
	setExpiry(op, t.now)
	if err := t.app.PutChange(ctx, t.fence, op, bought); err != nil {
		return err
	}
	t.rec.Operation, t.rec.ChangeID = op, bought.ID
	return t.replace(ctx)
}

// downgrade puts the subscription under a schedule that changes its price with
// the renewal. These are two calls; in between there is a schedule that changes
// nothing.
func (t *talk) downgrade(ctx context.Context) error {
	if err := t.callOff(ctx, true); err != nil {
		return err
	}
	price := t.rec.Parameters[paramPrice]
	running, err := t.subscription(ctx)
	if err != nil {
		return err
	}
	// The phases of a schedule name the present price too.
	if err := t.offer(ctx, running.PriceID); err != nil {
		return err
	}
	err = t.take(ctx, billing.StepSchedule,
		func(ctx context.Context) (bool, error) {
			s, err := t.subscription(ctx)
			return s.ScheduleID != "", err
		},
		func(ctx context.Context, key string) error {
			_, err := t.provider.CreateSchedule(ctx, key, t.rec.Parameters[paramSubscription])
			return err
		})
	if err != nil {
		return err
	}
	err = t.take(ctx, billing.StepPhases,
		func(ctx context.Context) (bool, error) {
			s, err := t.subscription(ctx)
			return s.Next != nil && s.Next.PriceID == price, err
		},
		func(ctx context.Context, key string) error {
			s, err := t.subscription(ctx)
			if err != nil {
				return err
			}
			return t.provider.SetPhases(ctx, key, s.ScheduleID, price)
		})
	if err != nil {
		return err
	}
	return t.close(ctx)
}

// offer puts a price on sale again that was archived after its plan was edited: the
// provider takes no other in a request, not even the one that a subscription has. It
// is archived again later, as after an edit: a page that sells it, which a change without
// a card opens, closes before that, also when another change had offered it first.
func (t *talk) offer(ctx context.Context, id string) error {
	until := t.now + billing.PriceArchiveDelay
	if err := t.app.DelayArchive(ctx, id, until); err != nil {
		return err
	}
	price, err := t.provider.Price(ctx, id)
	if err != nil || price.Active {
		return err
	}
	// First, so that a crash leaves nothing on sale.
	if err := t.app.Enqueue(ctx, t.work(store.JobArchive, id, until)); err != nil {
		return err
	}
	return t.provider.SetPriceActive(ctx, "psr:offer:"+ids.New().String(), id, true)
}

// flag makes the subscription end with its period, or go on. A schedule has to
// let go of it first.
func (t *talk) flag(ctx context.Context) error {
	if err := t.callOff(ctx, t.rec.Parameters[paramVoid] != ""); err != nil {
		return err
	}
	atPeriodEnd := t.rec.Parameters[paramFlag] == flag(true)
	if atPeriodEnd {
		if ended, err := t.endUnpaid(ctx); ended || err != nil {
			return err
		}
	}
	err := t.take(ctx, billing.StepFlag,
		func(ctx context.Context) (bool, error) {
			s, err := t.subscription(ctx)
			return (s.CancelAtPeriodEnd || s.CancelAt != 0) == atPeriodEnd, err
		},
		func(ctx context.Context, key string) error {
			s, err := t.subscription(ctx)
			if err != nil {
				return err
			}
			return t.provider.SetCancel(ctx, key, s, atPeriodEnd)
		})
	if err != nil {
		return err
	}
	if atPeriodEnd {
		return t.closeLast(ctx)
	}
	return t.close(ctx)
}

// local closes the pages on which another subscription could be bought, and then
// changes the free one that runs here.
func (t *talk) local(ctx context.Context) error {
	if err := t.closePages(ctx); err != nil {
		return err
	}
	is, err := t.current(ctx)
	if err != nil {
		return err
	}
	switch t.rec.Parameters[paramThen] {
	case thenStay:
		is = is.Stay()
	case thenCancel:
		underWay := is.Pending != nil && is.Pending.PaymentURL == ""
		is = is.Cancel(billing.CancelOrder{
			CancelAtPeriodEnd: t.rec.Parameters[paramFlag] == flag(true), ReleaseScheduled: true, VoidPending: !underWay,
		})
	case thenQueue:
		target, err := t.stillFree(ctx, is)
		if err != nil {
			return err
		}
		is = is.Stay().Queue(target)
	}
	op := t.rec.Operation
	op.State = billing.OperationDone
	return t.app.CompleteOperation(ctx, t.fence, store.Completion{Operation: op, Subscription: &is, Answer: &is})
}

// stillFree is what the subscription is to be queued for. The op may have waited
// for hours, and a plan that costs something by now would be given away.
func (t *talk) stillFree(ctx context.Context, is billing.Subscription) (billing.Terms, error) {
	plan, err := t.app.Plan(ctx, t.rec.Parameters[paramPlan])
	if err != nil {
		return billing.Terms{}, err
	}
	order, err := billing.DecideChange(&is, plan)
	if err == nil && order.Kind != billing.Downgrade {
		err = fault.Newf(fault.OperationInProgress, "The price of this plan has changed. Send the request again with a new idempotency key.")
	}
	if err != nil {
		return billing.Terms{}, errors.Join(errOvertaken, err)
	}
	return order.Target, nil
}

// current is the identity's subscription. When it has ended meanwhile, what was
// asked of it is over too.
func (t *talk) current(ctx context.Context) (billing.Subscription, error) {
	is, err := t.app.Subscription(ctx, t.rec.Identity)
	if fault.Is(err, fault.SubscriptionNotFound) {
		err = errors.Join(errOvertaken, err)
	}
	return is, err
}

// What becomes of a free subscription.
const (
	thenStay   = "stay"
	thenQueue  = "queue"
	thenCancel = "cancel"
)

// callOff takes away what would change the subscription: its schedule and, when
// that is wanted too, the upgrade that waits for a payment.
func (t *talk) callOff(ctx context.Context, pending bool) error {
	err := t.take(ctx, billing.StepRelease,
		func(ctx context.Context) (bool, error) {
			s, err := t.subscription(ctx)
			return s.ScheduleID == "", err
		},
		func(ctx context.Context, key string) error {
			s, err := t.subscription(ctx)
			if err != nil {
				return err
			}
			return t.provider.ReleaseSchedule(ctx, key, s.ScheduleID)
		})
	if err != nil || !pending {
		return err
	}
	if err := t.void(ctx); err != nil {
		return err
	}
	return t.closePages(ctx)
}

func (t *talk) void(ctx context.Context) error {
	pending := func(ctx context.Context) (bool, error) {
		s, err := t.subscription(ctx)
		return s.Pending == nil, err
	}
	err := t.take(ctx, billing.StepVoid, pending, func(ctx context.Context, key string) error {
		s, err := t.subscription(ctx)
		if err != nil {
			return err
		}
		return t.provider.VoidInvoice(ctx, key, s.PendingInvoice)
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

// closePages expires the checkout pages that the op found open.
func (t *talk) closePages(ctx context.Context) error {
	for _, id := range strings.Fields(t.rec.Parameters[paramSessions]) {
		if err := t.closePage(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// cancels reports whether the op ends the subscription with its period.
func (t *talk) cancels() bool {
	a := act(t.rec.Parameters[paramAct])
	cancels := a == actFlag || a == actLocal && t.rec.Parameters[paramThen] == thenCancel
	return cancels && t.rec.Parameters[paramFlag] == flag(true)
}

// closePage expires one page. One that was paid in the meantime has made a
// subscription, so the request was decided on outdated state. A bank debit that is
// under way cannot be stopped: a cancellation leaves it alone, because the present
// subscription would renew meanwhile; anything else has to wait for its outcome.
func (t *talk) closePage(ctx context.Context, id string) error {
	session, err := t.provider.Session(ctx, id)
	if err == nil && session.Status == billing.SessionOpen {
		err = t.take(ctx, billing.StepExpire,
			func(context.Context) (bool, error) { return false, nil },
			func(ctx context.Context, key string) error {
				session, err = t.provider.ExpireSession(ctx, key+":"+id, id)
				return err
			})
	}
	if stripe.Is(err, stripe.Refused) {
		session, err = t.provider.Session(ctx, id)
	}
	if err != nil {
		return err
	}
	if err := t.c.applySession(ctx, t.account, t.fence, session); err != nil {
		return err
	}
	switch {
	case session.Status == billing.SessionComplete && !session.Paid && t.cancels():
		return nil
	case session.Status == billing.SessionComplete && !session.Paid:
		return errors.Join(errOvertaken,
			fault.Newf(fault.OperationInProgress, "A bank debit for a checkout of this identity is processing, which takes a few days. Change the plan once it has succeeded or failed."))
	case session.Status == billing.SessionComplete:
		return errors.Join(errOvertaken,
			fault.Newf(fault.OperationInProgress, "A checkout of this identity was just completed. Read the subscription, then try again."))
	}
	return nil
}

// close hears how the subscription stands now, and closes the op with that.
func (t *talk) close(ctx context.Context) error {
	op := t.rec.Operation
	_, err := t.c.hearSubscription(ctx, t.account, t.fence, t.rec.Parameters[paramSubscription], hearing{watched: true, closes: &op})
	return err
}
