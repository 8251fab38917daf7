package payments

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/queue"
)

// ProviderReport is the state of a subscription at the provider, with what to store
// beside it.
type ProviderReport struct {
	Fence queue.Fence
	// Connection is the account that the subscription is at.
	Connection ids.ID
	Remote     billing.ProviderSubscription
	// CheckoutID is the checkout that the provider's object names in its metadata, which is
	// also the id of its change; zero for none. It identifies the customer when the
	// subscription is reported for the first time.
	CheckoutID ids.ID
	Now        int64
	// Completes is the operation that this ends; its answer is the subscription. A change
	// of it that the provider never had is dropped.
	Completes *OperationRecord
	// NextRefresh returns when to refresh the subscription; zero for no scheduled refresh.
	NextRefresh func(billing.Subscription) int64
}

var (
	selectIdentityOfSubscription = pg.Declare("select identity of subscription", `
		SELECT w.identity`+fromSubscriptions+`
		WHERE s.app_id = $1 AND s.provider_id = $2`)

	selectIdentityOfFree = pg.Declare("select identity of free subscription", `
		SELECT w.identity`+fromSubscriptions+`
		WHERE s.app_id = $1 AND s.id = $2`)
)

// ApplySubscription applies the provider's state of a subscription. The subscription,
// the one that it replaces, its changes, the credits of its payments, follow-up
// operations and alerts are stored in one transaction. It is idempotent.
func (a App) ApplySubscription(ctx context.Context, r ProviderReport) (p billing.Projection, err error) {
	newID := ids.New()
	var identity string
	for range pg.MaxAttempts {
		err = a.fenced(ctx, r.Fence, func(ctx context.Context, tx appTx) error {
			if identity, err = tx.identityOfReport(ctx, r); err != nil {
				return err
			}
			p, err = tx.applyReport(ctx, identity, newID, r)
			return err
		})
		// It is idempotent, so a lost reply to COMMIT is simply retried.
		if !errors.Is(err, pg.ErrCommitUnknown) {
			break
		}
	}
	a.app.WalletChanged(identity)
	return p, err
}

func (tx appTx) identityOfReport(ctx context.Context, r ProviderReport) (string, error) {
	identity, err := pg.Find(ctx, tx, selectIdentityOfSubscription, pgx.RowTo[string], ErrUnknown, r.Remote.ID)
	if errors.Is(err, ErrUnknown) {
		return pg.Find(ctx, tx, selectIdentityOfChange, pgx.RowTo[string], ErrUnknown, r.CheckoutID)
	}
	return identity, err
}

func (tx appTx) applyReport(ctx context.Context, identity string, newID ids.ID, r ProviderReport) (p billing.Projection, err error) {
	locked, err := tx.LockWallets(ctx, identity)
	if err != nil {
		return p, err
	}
	w := &locked[0]
	current, bought, err := tx.loadCurrent(ctx, w, newID, r)
	if err != nil {
		return p, err
	}
	p = billing.Project(current, r.Remote, r.Now)
	if err := tx.writeProjection(ctx, w, current, p, bought, r); err != nil {
		return p, err
	}
	for _, c := range p.Changes { // a dropped purchase no longer replaces a subscription
		if c.State == billing.ChangeDropped {
			if err := tx.showPendingChange(ctx, w, c.Replaces, r.Now); err != nil {
				return p, err
			}
		}
	}
	if r.NextRefresh != nil {
		if at := r.NextRefresh(p.Subscription); at != 0 {
			if err := tx.Enqueue(ctx, queue.Job{Kind: queue.JobSubscription, Object: r.Remote.ID, Connection: r.Connection, DueAt: at}); err != nil {
				return p, err
			}
		}
	}
	if r.Completes == nil {
		return p, tx.ScheduleWake(ctx)
	}
	done := Completion{Operation: r.Completes.Operation, Answer: &p.Subscription}
	done.Operation.State = billing.OperationDone
	own := func(c billing.Change) bool { return c.ID == r.Completes.ChangeID }
	moved := slices.ContainsFunc(p.Changes, own)
	if i := slices.IndexFunc(current.Changes, own); i >= 0 && !moved && current.Changes[i].State == billing.ChangeRequested {
		done.DropChange = r.Completes.ChangeID
	}
	return p, tx.complete(ctx, &done)
}

// loadCurrent loads the stored state that the provider's is compared with. A
// subscription that is reported for the first time starts from the terms of the change
// that bought it, which is returned too.
func (tx appTx) loadCurrent(ctx context.Context, w *ledger.Wallet, newID ids.ID, r ProviderReport) (current billing.Current, bought *billing.Change, err error) {
	stored, err := optionalRow(pg.Find(ctx, tx, selectSubscriptionByProvider, readSubscription, ErrUnknown, r.Remote.ID))
	if err != nil {
		return current, nil, err
	}
	if stored == nil {
		change, err := pg.Find(ctx, tx, selectChange, readChange, ErrUnknown, r.CheckoutID)
		if err != nil {
			return current, nil, err
		}
		change.SubscriptionID = newID
		bought = &change
		current.Subscription = billing.Begin(newID, w.Identity, r.Remote.ID, change, r.Now)
		current.Subscription.ConnectionID = r.Connection
	} else {
		current.Subscription = *stored
	}
	if current.Changes, err = pg.Collect(ctx, tx, selectChangesOf, readChange, w.ID, current.Subscription.ID); err != nil {
		return current, nil, err
	}
	if bought != nil {
		current.Changes = append(current.Changes, *bought)
	}
	if current.Prices, err = tx.pricesNamed(ctx, r.Remote); err != nil {
		return current, nil, err
	}
	payments, err := tx.payments(ctx, selectPayments, w.ID, current.Subscription.ID)
	if err != nil {
		return current, nil, err
	}
	current.Payments = plainPayments(payments)
	if current.Subscription.Ended() {
		if current.ReplacedFrom, err = pg.Find(ctx, tx, selectReplacedFrom, pgx.RowTo[int64], ErrUnknown, w.ID, current.Subscription.ID); err != nil {
			return current, nil, err
		}
	}
	if stored != nil && stored.InUse() {
		return current, bought, nil // a wallet has one live subscription
	}
	current.Conflicting, err = tx.liveSubscription(ctx, w.Identity)
	return current, bought, err
}

// writeProjection stores everything that follows from the provider's state.
func (tx appTx) writeProjection(ctx context.Context, w *ledger.Wallet, current billing.Current, p billing.Projection, bought *billing.Change, r ProviderReport) error {
	if p.Replaced != nil {
		if err := tx.writeSubscription(ctx, w, current.Conflicting, *p.Replaced); err != nil {
			return err
		}
	}
	before := &current.Subscription
	if bought != nil {
		before = nil
	}
	if err := tx.writeSubscription(ctx, w, before, p.Subscription); err != nil {
		return err
	}
	if err := tx.writeChanges(ctx, withBought(p.Changes, bought)); err != nil {
		return err
	}
	if err := tx.creditPayments(ctx, w, paymentContext{p.Subscription.ID, p.Subscription.ConnectionID, r.Fence.ClockOffset}, p.Settled, r.Now); err != nil {
		return err
	}
	if err := tx.enqueueActions(ctx, w.ID, p.Subscription.ConnectionID, p.Actions, r.Now); err != nil {
		return err
	}
	return tx.raiseAlerts(ctx, w.ID, p.Alerts, r.Now)
}

// withBought adds the change that bought a new subscription to the changed ones,
// because it now names the subscription. The other changes are not rewritten: there may
// be thousands.
func withBought(moved []billing.Change, bought *billing.Change) []billing.Change {
	if bought == nil || slices.ContainsFunc(moved, func(c billing.Change) bool { return c.ID == bought.ID }) {
		return moved
	}
	return append(slices.Clip(moved), *bought)
}

func (a App) IdentityOfSubscription(ctx context.Context, providerID string) (string, error) {
	return pg.FindOne(ctx, a.app, selectIdentityOfSubscription, pgx.RowTo[string], ErrUnknown, providerID)
}

// IdentityOfFree returns the identity of a free subscription, which has no provider
// object.
func (a App) IdentityOfFree(ctx context.Context, subscription ids.ID) (string, error) {
	return pg.FindOne(ctx, a.app, selectIdentityOfFree, pgx.RowTo[string], ErrUnknown, subscription)
}
