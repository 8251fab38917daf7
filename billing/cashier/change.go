package cashier

import (
	"context"
	"errors"
	"strings"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
)

// Change puts the identity on another plan: at once, once paid, or with the
// renewal, as the plans' prices have it.
func (c *Cashier) Change(ctx context.Context, scope tenancy.Scope, r billing.ChangeRequest, idempotencyKey string) (billing.Subscription, error) {
	return c.answer(ctx, scope, request{
		kind: billing.OperationChange, identity: r.Identity, planKey: r.PlanKey, idempotencyKey: idempotencyKey, fingerprint: r.Fingerprint(),
		decide: func(s store.CustomerState, op billing.Operation, _ buyer, now int64) (store.Decision, error) {
			order, err := billing.DecideChange(s.Subscription, s.Plan, s.Changes...)
			if err != nil {
				return store.Decision{}, err
			}
			if err := order.CheckRoom(s.Balances); err != nil {
				return store.Decision{}, err
			}
			intent := intendChange(s, r.Identity, order, op, now)
			for _, p := range intent.Settled {
				if err := billing.CheckRoom(s.Balances, p.Credits); err != nil {
					return store.Decision{}, err
				}
			}
			return intent, nil
		},
	})
}

// Cancel makes the identity's subscription end with its period, or go on.
func (c *Cashier) Cancel(ctx context.Context, scope tenancy.Scope, r billing.CancelRequest, idempotencyKey string) (billing.Subscription, error) {
	return c.answer(ctx, scope, request{
		kind: billing.OperationCancel, identity: r.Identity, idempotencyKey: idempotencyKey, fingerprint: r.Fingerprint(),
		decide: func(s store.CustomerState, op billing.Operation, _ buyer, now int64) (store.Decision, error) {
			order, err := billing.DecideCancel(s.Subscription, r.CancelAtPeriodEnd)
			if err != nil {
				return store.Decision{}, err
			}
			return intendCancel(s, order, op, now), nil
		},
	})
}

// answer performs a request whose answer is a subscription.
func (c *Cashier) answer(ctx context.Context, scope tenancy.Scope, r request) (billing.Subscription, error) {
	rec, err := c.perform(ctx, scope, r)
	if err != nil {
		return billing.Subscription{}, err
	}
	if rec.Answer == nil {
		return billing.Subscription{}, errors.New("cashier: a request was carried out and has no answer")
	}
	return *rec.Answer, nil
}

// current is the identity's subscription; nil when it has none.
func (c *Cashier) current(ctx context.Context, scope tenancy.Scope, identity string) (*billing.Subscription, error) {
	s, err := c.options.Store.App(scope).Subscription(ctx, identity)
	if fault.Is(err, fault.SubscriptionNotFound) {
		return nil, nil
	}
	return &s, err
}

// intendChange is what the order comes to, frozen.
func intendChange(s store.CustomerState, identity string, order billing.ChangeOrder, op billing.Operation, now int64) store.Decision {
	if order.Kind == billing.StartFree {
		started, settled := billing.StartFreeSubscription(ids.New(), identity, order.Target, s.Payments, now)
		return local(op, started, settled)
	}
	current := *s.Subscription
	op.Parameters[paramSessions] = openPages(s.Changes, now)
	op.Parameters[paramPlan] = order.Target.PlanKey
	op.Parameters[paramPrice] = order.Target.PriceID
	if current.Local() && order.Kind != billing.Checkout {
		if order.Kind == billing.Keep {
			return intendLocal(op, thenStay, current.Stay())
		}
		return intendLocal(op, thenQueue, current.Queue(order.Target))
	}
	op.Parameters[paramSubscription] = current.ProviderID
	intent := store.Decision{Operation: op}
	switch order.Kind {
	case billing.Keep:
		op.Parameters[paramAct] = string(actKeep)
		return intent
	case billing.Upgrade:
		op.Parameters[paramAct] = string(actUpgrade)
		if order.Stays {
			op.Parameters[paramStays] = flag(true)
		}
	case billing.Downgrade:
		op.Parameters[paramAct] = string(actDowngrade)
	case billing.Checkout:
		op.Parameters[paramAct] = string(actReplace)
		setExpiry(op, now)
	}
	intent.Change = &billing.Change{
		ID: ids.New(), Kind: order.Kind, SubscriptionID: current.ID, Target: order.Target, State: billing.ChangeRequested, RequestedAt: now,
	}
	if order.Kind == billing.Checkout {
		intent.Change.SubscriptionID, intent.Change.Replaces = ids.ID{}, current.ID
	}
	return intent
}

func intendCancel(s store.CustomerState, order billing.CancelOrder, op billing.Operation, now int64) store.Decision {
	current := *s.Subscription
	if order.VoidPending {
		op.Parameters[paramSessions] = openPages(s.Changes, now)
	}
	op.Parameters[paramFlag] = flag(order.CancelAtPeriodEnd)
	if current.Local() {
		return intendLocal(op, thenCancel, current.Cancel(order))
	}
	op.Parameters[paramAct], op.Parameters[paramSubscription] = string(actFlag), current.ProviderID
	if order.VoidPending {
		op.Parameters[paramVoid] = "true"
	}
	return store.Decision{Operation: op}
}

// intendLocal is for a free subscription that runs here. When no page has to be
// closed first, it is done with this.
func intendLocal(op billing.Operation, then string, after billing.Subscription) store.Decision {
	if op.Parameters[paramSessions] == "" {
		return local(op, after, nil)
	}
	op.Parameters[paramAct], op.Parameters[paramThen] = string(actLocal), then
	return store.Decision{Operation: op}
}

// local is an intent that is done as soon as it is stored.
func local(op billing.Operation, is billing.Subscription, settled []billing.Payment) store.Decision {
	op.State = billing.OperationDone
	return store.Decision{Operation: op, Subscription: &is, Settled: settled, Answer: &is}
}

// expiredPageGrace is how long after its expiry a checkout page is still closed before
// another purchase: the node's clock may be hours ahead of the provider's.
const expiredPageGrace = int64(24 * time.Hour / time.Millisecond)

// openPages lists the checkout pages of the identity that can still be paid, or whose
// debit may be under way.
func openPages(changes []billing.Change, now int64) string {
	var open []string
	for _, change := range changes {
		expired := change.ExpiresAt != 0 && now >= change.ExpiresAt+expiredPageGrace
		if change.Kind == billing.Checkout && change.SessionID != "" && !expired {
			open = append(open, change.SessionID)
		}
	}
	return strings.Join(open, " ")
}

func flag(on bool) string {
	if on {
		return "true"
	}
	return "false"
}
