package payments

import (
	"context"

	"purser/billing"
	"purser/ids"
	"purser/metering"
	"purser/notify"
	"purser/store/internal/ledger"
)

// announceTopUp announces a top-up that will not be paid. A paid one is announced with its
// journal entry.
func (tx appTx) announceTopUp(ctx context.Context, w *ledger.Wallet, before billing.TopUpStatus, t billing.TopUp, now int64) error {
	kinds := map[billing.TopUpStatus]notify.Type{billing.TopUpFailed: notify.TopUpFailed, billing.TopUpExpired: notify.TopUpExpired}
	kind, announced := kinds[t.Status]
	if !announced || t.Status == before {
		return nil
	}
	return tx.Notify(ctx, notify.New(kind, w.ID, notify.TopUpData{
		ID: t.ID.Format(ids.Checkout), Status: string(t.Status), CreditKey: t.Credit.CreditKey, Amount: t.Credit.Amount.String(),
		AmountCents: t.AmountCents, Currency: t.Currency,
	}, now))
}

// announceLost announces that a dispute is closed and lost: its credits were taken back when
// it was opened, so there is no entry. A won one is announced with the entry that returns them.
func (tx appTx) announceLost(ctx context.Context, w *ledger.Wallet, p billing.Payment, now int64) error {
	for _, credited := range p.Credits {
		held, err := tx.Balance(ctx, w.ID, metering.Credit{ID: credited.CreditID, Key: credited.CreditKey})
		if err != nil {
			return err
		}
		err = tx.Notify(ctx, notify.New(notify.DisputeClosed, w.ID, notify.EntryData{
			CreditKey: credited.CreditKey, Delta: "0", Balance: held.Amount.String(), Debt: held.Debt.String(), Outcome: notify.DisputeLost,
			Source: &notify.SourceData{Kind: string(p.Source.Kind), ID: p.Source.ID},
		}, now))
		if err != nil {
			return err
		}
	}
	return nil
}

// announceSync announces that the provider has a plan, or rejected it.
func (tx appTx) announceSync(ctx context.Context, before, p billing.Plan) error {
	kinds := map[billing.SyncStatus]notify.Type{billing.SyncDone: notify.PlanSynced, billing.SyncFailed: notify.PlanSyncFailed}
	kind, announced := kinds[p.Sync.Status]
	if !announced || p.Sync.Status == before.Sync.Status && p.Sync.Error == before.Sync.Error {
		return nil
	}
	now, err := tx.AppTime(ctx)
	if err != nil {
		return err
	}
	return tx.Notify(ctx, notify.New(kind, ids.ID{}, notify.PlanData{
		ID: p.ID.Format(ids.Plan), Key: p.Key, SyncStatus: string(p.Sync.Status), SyncError: p.Sync.Error,
	}, now))
}

var subscriptionTypes = map[billing.Transition]notify.Type{
	billing.Started: notify.SubscriptionStarted, billing.Renewed: notify.SubscriptionRenewed, billing.Updated: notify.SubscriptionUpdated,
	billing.PaymentFailed: notify.SubscriptionPaymentFailed, billing.Ended: notify.SubscriptionEnded,
}

// announceSubscription announces what happened to a subscription.
func (tx appTx) announceSubscription(ctx context.Context, w *ledger.Wallet, before *billing.Subscription, s billing.Subscription) error {
	kind, announced := subscriptionTypes[s.TransitionFrom(before)]
	if !announced {
		return nil
	}
	now, err := tx.AppTime(ctx)
	if err != nil {
		return err
	}
	return tx.Notify(ctx, notify.New(kind, w.ID, notify.SubscriptionData{
		ID: s.ID.Format(ids.Subscription), Status: string(s.Status), PlanKey: s.Terms.PlanKey,
		PeriodStart: s.Period.Start, PeriodEnd: s.Period.End, CancelAtPeriodEnd: s.CancelAtPeriodEnd,
	}, now))
}
