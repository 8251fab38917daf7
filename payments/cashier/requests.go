package cashier

import (
	"cmp"
	"context"
	"errors"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/store/payments"
	"purser/tenancy"
)

// Change moves the identity to another plan: at once, after payment, or at the
// renewal, depending on the prices.
func (c *Cashier) Change(ctx context.Context, scope tenancy.Scope, r billing.ChangeRequest, idempotencyKey string) (billing.Subscription, error) {
	changed, err := c.runForSubscription(ctx, scope, request{
		kind: billing.OperationChange, identity: r.Identity, planKey: r.PlanKey, idempotencyKey: idempotencyKey, fingerprint: r.Fingerprint(),
		decide: func(s payments.CustomerState, op billing.Operation, _ buyer, now int64) (payments.Decision, error) {
			order, err := billing.DecideChange(s.Subscription, s.Plan, s.Changes...)
			if err != nil {
				return payments.Decision{}, err
			}
			if err := checkSettled(s); err != nil {
				return payments.Decision{}, err
			}
			if err := order.CheckRoom(s.Balances); err != nil {
				return payments.Decision{}, err
			}
			if r.Confirmed != nil && *r.Confirmed != previewOf(s, now).Version() {
				return payments.Decision{}, fault.Newf(fault.RevisionConflict, "This change no longer has the effect you confirmed. Preview it again.")
			}
			decision := decideChange(s, r.Identity, order, op, now)
			for _, p := range decision.Settled {
				if err := billing.CheckRoom(s.Balances, p.Credits); err != nil {
					return payments.Decision{}, err
				}
			}
			return decision, nil
		},
	})
	if fault.Is(err, fault.PlanNotSynced) { // without an account, it never will be
		err = cmp.Or(c.checkAccount(ctx, scope), err)
	}
	return changed, err
}

// Cancel sets or clears cancellation at the end of the period.
func (c *Cashier) Cancel(ctx context.Context, scope tenancy.Scope, r billing.CancelRequest, idempotencyKey string) (billing.Subscription, error) {
	return c.runForSubscription(ctx, scope, request{
		kind: billing.OperationCancel, identity: r.Identity, idempotencyKey: idempotencyKey, fingerprint: r.Fingerprint(),
		decide: func(s payments.CustomerState, op billing.Operation, _ buyer, now int64) (payments.Decision, error) {
			order, err := billing.DecideCancel(s.Subscription, r.CancelAtPeriodEnd)
			if err != nil {
				return payments.Decision{}, err
			}
			return decideCancel(s, order, op, now), checkSettled(s)
		},
	})
}

// checkSettled refuses a request beside an upgrade that the provider may still be
// charging: read now, the subscription looks as if nothing had been sent.
func checkSettled(s payments.CustomerState) error {
	if s.Unsettled {
		return fault.Newf(fault.OperationInProgress, "Whether an earlier upgrade of this identity was charged is not known yet. Send that request again with its idempotency key, or this one in a few minutes.")
	}
	return nil
}

// runForSubscription runs a request whose result is a subscription.
func (c *Cashier) runForSubscription(ctx context.Context, scope tenancy.Scope, r request) (billing.Subscription, error) {
	rec, err := c.runRequest(ctx, scope, r)
	if err != nil {
		return billing.Subscription{}, err
	}
	if rec.Answer == nil {
		return billing.Subscription{}, errors.New("cashier: a completed operation has no answer")
	}
	return *rec.Answer, nil
}

// currentSubscription is the identity's subscription, or nil.
func (c *Cashier) currentSubscription(ctx context.Context, scope tenancy.Scope, identity string) (*billing.Subscription, error) {
	s, err := c.options.Store.Payments(scope).Subscription(ctx, identity)
	if fault.Is(err, fault.SubscriptionNotFound) {
		return nil, nil
	}
	return &s, err
}

// decideChange turns the order into an operation with all its parameters.
func decideChange(s payments.CustomerState, identity string, order billing.ChangeOrder, op billing.Operation, now int64) payments.Decision {
	if order.Kind == billing.StartFree {
		started, settled := billing.StartFreeSubscription(ids.New(), identity, order.Target, s.Payments, now)
		return completedLocally(op, started, settled)
	}
	current := *s.Subscription
	p := op.Parameters.Change
	*p = billing.ChangeParameters{PlanKey: order.Target.PlanKey, PriceID: order.Target.PriceID, Sessions: openSessions(s.Changes, now)}
	if current.Local() && order.Kind != billing.Checkout {
		p.Command, p.Local = billing.CommandLocal, billing.LocalSchedule
		if order.Kind == billing.Keep {
			p.Local = billing.LocalKeep
			return decideLocal(op, current.ClearChanges())
		}
		return decideLocal(op, current.Schedule(order.Target))
	}
	p.SubscriptionID = current.ProviderID
	decision := payments.Decision{Operation: op}
	switch order.Kind {
	case billing.Keep:
		p.Command = billing.CommandKeep
		return decision
	case billing.Upgrade:
		p.Command, p.SameTerms = billing.CommandUpgrade, order.SameTerms
		if current.Pending != nil {
			p.VoidsPriceID = current.Pending.Target.PriceID
		}
	case billing.Downgrade:
		p.Command = billing.CommandDowngrade
	case billing.Checkout:
		p.Command, p.ExpiresAt = billing.CommandReplace, sessionExpiry(now)
	}
	decision.Change = &billing.Change{
		ID: ids.New(), Kind: order.Kind, SubscriptionID: current.ID, Target: order.Target, State: billing.ChangeRequested, RequestedAt: now,
	}
	if order.Kind == billing.Checkout {
		decision.Change.SubscriptionID, decision.Change.Replaces = ids.ID{}, current.ID
	}
	return decision
}

func decideCancel(s payments.CustomerState, order billing.CancelOrder, op billing.Operation, now int64) payments.Decision {
	current, p := *s.Subscription, op.Parameters.Cancel
	*p = billing.CancelParameters{CancelAtPeriodEnd: order.CancelAtPeriodEnd}
	if order.VoidPending {
		p.Sessions = openSessions(s.Changes, now)
	}
	if current.Local() {
		p.Command, p.Local = billing.CommandLocal, billing.LocalCancel
		return decideLocal(op, current.Cancel(order))
	}
	p.Command, p.SubscriptionID, p.VoidPending = billing.CommandCancel, current.ProviderID, order.VoidPending
	return payments.Decision{Operation: op}
}

// decideLocal changes a free subscription that the provider does not know. Without
// open checkout sessions to expire, it completes in the same transaction.
func decideLocal(op billing.Operation, after billing.Subscription) payments.Decision {
	if len(op.Parameters.Sessions()) == 0 {
		return completedLocally(op, after, nil)
	}
	return payments.Decision{Operation: op}
}

// completedLocally is a decision that needs no provider call.
func completedLocally(op billing.Operation, sub billing.Subscription, settled []billing.Payment) payments.Decision {
	op.State = billing.OperationDone
	return payments.Decision{Operation: op, Subscription: &sub, Settled: settled, Answer: &sub}
}

// expiredSessionGrace is how long after its expiry a checkout session is still expired
// explicitly before another purchase: the node's clock may be hours ahead of the
// provider's.
const expiredSessionGrace = int64(24 * time.Hour / time.Millisecond)

// openSessions lists the identity's checkout sessions that can still be paid or whose
// debit may be processing.
func openSessions(changes []billing.Change, now int64) (open billing.SessionIDs) {
	for _, change := range changes {
		expired := change.ExpiresAt != 0 && now >= change.ExpiresAt+expiredSessionGrace
		if change.Kind == billing.Checkout && change.SessionID != "" && !expired {
			open = append(open, change.SessionID)
		}
	}
	return open
}
