package store

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/ids"
)

// ProviderReport is what the provider says of a subscription, with what follows for us
// beside the subscription itself.
type ProviderReport struct {
	Fence Fence
	// Connection is the account that says it.
	Connection ids.ID
	Remote     billing.ProviderSubscription
	// Bought is the change that the provider's object names as its origin; zero for
	// none. It tells whose the subscription is when it is heard of for the first time.
	Bought ids.ID
	Now    int64
	// Close is the conversation that this ends; its answer is the subscription.
	Close *billing.Operation
	// Watch says when to look at the subscription again; zero for not by itself.
	Watch func(billing.Subscription) int64
}

var (
	selectIdentityOfSubscription = declare("select identity of subscription", `
		SELECT w.identity`+fromSubscriptions+`
		WHERE s.app_id = $1 AND s.provider_id = $2`)

	selectIdentityOfFree = declare("select identity of free subscription", `
		SELECT w.identity`+fromSubscriptions+`
		WHERE s.app_id = $1 AND s.id = $2`)
)

// ApplySubscription takes a subscription to where the provider's word puts it: the
// subscription, the one that it replaces, its changes, the credits of what was
// paid, what has to be asked of the provider and what a person should see are
// stored together or not at all. It may be said again any number of times.
func (a App) ApplySubscription(ctx context.Context, h ProviderReport) (p billing.Projection, err error) {
	fresh := ids.New()
	var identity string
	for range maxAttempts {
		err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
			if err := tx.hold(ctx, h.Fence); err != nil {
				return err
			}
			if identity, err = tx.identityOfHearing(ctx, h); err != nil {
				return err
			}
			p, err = tx.hear(ctx, identity, fresh, h)
			return err
		})
		// Without a reply to COMMIT the word is simply heard once more.
		if !errors.Is(err, errCommitUnknown) {
			break
		}
	}
	a.walletChanged(identity)
	return p, err
}

func (tx appTx) identityOfHearing(ctx context.Context, h ProviderReport) (string, error) {
	identity, err := find(ctx, tx, selectIdentityOfSubscription, pgx.RowTo[string], ErrUnknown, h.Remote.ID)
	if errors.Is(err, ErrUnknown) {
		return find(ctx, tx, selectIdentityOfChange, pgx.RowTo[string], ErrUnknown, h.Bought)
	}
	return identity, err
}

func (tx appTx) hear(ctx context.Context, identity string, fresh ids.ID, h ProviderReport) (p billing.Projection, err error) {
	locked, err := tx.lockWallets(ctx, identity)
	if err != nil {
		return p, err
	}
	w := &locked[0]
	known, bought, err := tx.known(ctx, w, fresh, h)
	if err != nil {
		return p, err
	}
	p = billing.Project(known, h.Remote, h.Now)
	if err := tx.keepProjection(ctx, w, p, bought, h.Now); err != nil {
		return p, err
	}
	for _, c := range p.Changes { // a purchase that came to nothing replaces nothing
		if c.State == billing.ChangeDropped {
			if err := tx.showAwaiting(ctx, w, c.Replaces, h.Now); err != nil {
				return p, err
			}
		}
	}
	if h.Watch != nil {
		if at := h.Watch(p.Subscription); at != 0 {
			if err := tx.enqueue(ctx, Job{Kind: JobSubscription, Object: h.Remote.ID, Connection: h.Connection, DueAt: at}); err != nil {
				return p, err
			}
		}
	}
	if h.Close == nil {
		return p, tx.hint(ctx)
	}
	done := *h.Close
	done.State = billing.OperationDone
	return p, tx.close(ctx, &Completion{Operation: done, Answer: &p.Subscription})
}

// known loads what the provider's word is compared with. A subscription that is
// heard of for the first time begins here, on the terms of the change that bought
// it, which is given too.
func (tx appTx) known(ctx context.Context, w *wallet, fresh ids.ID, h ProviderReport) (k billing.Current, bought *billing.Change, err error) {
	stored, err := optionalRow(find(ctx, tx, selectSubscriptionByProvider, readSubscription, ErrUnknown, h.Remote.ID))
	if err != nil {
		return k, nil, err
	}
	if stored == nil {
		change, err := find(ctx, tx, selectChange, readChange, ErrUnknown, h.Bought)
		if err != nil {
			return k, nil, err
		}
		change.SubscriptionID = fresh
		bought = &change
		k.Subscription = billing.Begin(fresh, w.Identity, h.Remote.ID, change, h.Now)
		k.Subscription.ConnectionID = h.Connection
	} else {
		k.Subscription = *stored
	}
	if k.Changes, err = collect(ctx, tx, selectChangesOf, readChange, w.ID, k.Subscription.ID); err != nil {
		return k, nil, err
	}
	if bought != nil {
		k.Changes = append(k.Changes, *bought)
	}
	if k.Prices, err = tx.pricesNamed(ctx, h.Remote); err != nil {
		return k, nil, err
	}
	payments, err := tx.payments(ctx, selectPayments, w.ID, k.Subscription.ID)
	if err != nil {
		return k, nil, err
	}
	k.Payments = plainPayments(payments)
	if k.Subscription.Ended() {
		if k.ReplacedFrom, err = find(ctx, tx, selectReplacedFrom, pgx.RowTo[int64], ErrUnknown, w.ID, k.Subscription.ID); err != nil {
			return k, nil, err
		}
	}
	rival, err := tx.liveSubscription(ctx, w.Identity)
	if rival != nil && rival.ID != k.Subscription.ID {
		k.Conflicting = rival
	}
	return k, bought, err
}

// keepProjection writes everything that follows from the provider's word.
func (tx appTx) keepProjection(ctx context.Context, w *wallet, p billing.Projection, bought *billing.Change, now int64) error {
	if p.Replaced != nil {
		if err := tx.keepSubscription(ctx, w, *p.Replaced); err != nil {
			return err
		}
	}
	if err := tx.keepSubscription(ctx, w, p.Subscription); err != nil {
		return err
	}
	if err := tx.keepChanges(ctx, withBought(p.Changes, bought)); err != nil {
		return err
	}
	if err := tx.settle(ctx, w, settlement{p.Subscription.ID, p.Subscription.ConnectionID}, p.Settled, now); err != nil {
		return err
	}
	if err := tx.ask(ctx, w.ID, p.Subscription.ConnectionID, p.Actions, now); err != nil {
		return err
	}
	return tx.raise(ctx, w.ID, p.Alerts, now)
}

// withBought adds the change that bought a new subscription to those that moved: it
// now names what it bought, however far it has come. The others are left alone:
// somebody may have changed their mind a thousand times.
func withBought(moved []billing.Change, bought *billing.Change) []billing.Change {
	if bought == nil || slices.ContainsFunc(moved, func(c billing.Change) bool { return c.ID == bought.ID }) {
		return moved
	}
	return append(slices.Clip(moved), *bought)
}

// IdentityOfSubscription finds out whose the provider's subscription is.
func (a App) IdentityOfSubscription(ctx context.Context, providerID string) (string, error) {
	return findOne(ctx, a, selectIdentityOfSubscription, pgx.RowTo[string], ErrUnknown, providerID)
}

// IdentityOfFree finds out whose a free subscription that runs here is.
func (a App) IdentityOfFree(ctx context.Context, subscription ids.ID) (string, error) {
	return findOne(ctx, a, selectIdentityOfFree, pgx.RowTo[string], ErrUnknown, subscription)
}
