package payments

import (
	"bytes"
	"context"
	"errors"
	"reflect"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/queue"
)

const subscriptionColumns = `
	s.id, w.identity, s.provider_id, s.connection_id, s.status, s.begun, s.extra, s.period_start, s.period_end, s.anchor, s.terms, s.sale,
	s.cancel_at_period_end, s.scheduled, s.pending, s.created_at, s.ended_at`

const fromSubscriptions = `
	FROM subscriptions s JOIN wallets w ON w.app_id = $1 AND w.id = s.wallet_id`

var touchWallet = pg.Declare("touch wallet", `
	UPDATE wallets SET version = version + $3 WHERE app_id = $1 AND id = $2`)

var (
	selectSubscription = pg.Declare("select subscription", `
		SELECT`+subscriptionColumns+fromSubscriptions+`
		WHERE s.app_id = $1 AND s.id = $2`)

	selectSubscriptionByProvider = pg.Declare("select subscription by provider", `
		SELECT`+subscriptionColumns+fromSubscriptions+`
		WHERE s.app_id = $1 AND s.provider_id = $2`)

	selectLiveSubscription = pg.Declare("select live subscription", `
		SELECT`+subscriptionColumns+fromSubscriptions+`
		WHERE s.app_id = $1 AND w.identity = $2 AND s.status IN `+ledger.LiveStatuses)

	// The first condition on the status is that of the partial index.
	selectIncompleteSubscription = pg.Declare("select incomplete subscription", `
		SELECT`+subscriptionColumns+fromSubscriptions+`
		WHERE s.app_id = $1 AND w.identity = $2 AND s.status IN ('incomplete', 'canceled') AND s.status = 'incomplete' AND NOT s.extra
		ORDER BY s.id DESC LIMIT 1`)

	putSubscription = pg.Declare("put subscription", pg.Insert("subscriptions", `id, org_id, wallet_id, status, period_start, period_end, terms, connection_id, provider_id,
			begun, extra, anchor, plan_id, sale, cancel_at_period_end, scheduled, pending, created_at, ended_at`)+`
		ON CONFLICT (app_id, id) DO UPDATE SET
			status = excluded.status, period_start = excluded.period_start, period_end = excluded.period_end, terms = excluded.terms,
			begun = excluded.begun, extra = excluded.extra, anchor = excluded.anchor, plan_id = excluded.plan_id, sale = excluded.sale,
			cancel_at_period_end = excluded.cancel_at_period_end, scheduled = excluded.scheduled, pending = excluded.pending,
			ended_at = excluded.ended_at
		WHERE subscriptions.wallet_id = excluded.wallet_id`)
)

func readSubscription(row pgx.CollectableRow) (billing.Subscription, error) {
	var s billing.Subscription
	var providerID *string
	var terms, sale, scheduled, pending []byte
	var ended *int64
	var connection *ids.ID
	err := row.Scan(&s.ID, &s.Identity, &providerID, &connection, &s.Status, &s.Begun, &s.Duplicate, &s.Period.Start, &s.Period.End, &s.Anchor, &terms, &sale,
		&s.CancelAtPeriodEnd, &scheduled, &pending, &s.CreatedAt, &ended)
	if err != nil {
		return s, err
	}
	s.ProviderID, s.ConnectionID, s.EndedAt = pg.OrZero(providerID), pg.OrZero(connection), pg.OrZero(ended)
	if s.Terms, err = ledger.DecodeSale(terms, sale); err != nil {
		return s, err
	}
	if s.Scheduled, err = decodeScheduled(scheduled); err != nil {
		return s, err
	}
	s.Pending, err = decodePending(pending)
	return s, err
}

// Subscription reads the identity's subscription: the live one, or else an incomplete
// one.
func (a App) Subscription(ctx context.Context, identity string) (billing.Subscription, error) {
	return pg.Return(ctx, a.snapshot, func(ctx context.Context, tx appTx) (billing.Subscription, error) {
		return tx.subscription(ctx, identity)
	})
}

// SubscriptionOfWallet is as Subscription, whatever the wallet's identity is by now.
func (a App) SubscriptionOfWallet(ctx context.Context, id ids.ID) (billing.Subscription, error) {
	return pg.Return(ctx, a.snapshot, func(ctx context.Context, tx appTx) (billing.Subscription, error) {
		w, err := pg.Find(ctx, tx, ledger.SelectWalletByID, ledger.ReadWallet, fault.New(fault.WalletNotFound), id)
		if err != nil {
			return billing.Subscription{}, err
		}
		return tx.subscription(ctx, w.Identity)
	})
}

func (tx appTx) subscription(ctx context.Context, identity string) (billing.Subscription, error) {
	s, err := pg.Find(ctx, tx, selectLiveSubscription, readSubscription, ErrUnknown, identity)
	if errors.Is(err, ErrUnknown) {
		return pg.Find(ctx, tx, selectIncompleteSubscription, readSubscription, fault.New(fault.SubscriptionNotFound), identity)
	}
	return s, err
}

// liveSubscription is the identity's live subscription, or nil.
func (tx appTx) liveSubscription(ctx context.Context, identity string) (*billing.Subscription, error) {
	return optionalRow(pg.Find(ctx, tx, selectLiveSubscription, readSubscription, ErrUnknown, identity))
}

// subscriptionByID is the stored subscription, or nil.
func (tx appTx) subscriptionByID(ctx context.Context, id ids.ID) (*billing.Subscription, error) {
	return optionalRow(pg.Find(ctx, tx, selectSubscription, readSubscription, ErrUnknown, id))
}

// optionalRow turns ErrUnknown into nil.
func optionalRow[T any](value T, err error) (*T, error) {
	if errors.Is(err, ErrUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &value, nil
}

// writeSubscription stores a subscription of a locked wallet: the billing columns, the
// engine's columns, the references to its features and the renewal of a free one. It
// increments the wallet's version, so that every node decides the next request by it.
//
// before is what is stored of it, read under the same lock; nil for nothing. When nothing
// differs, nothing is written.
//
// A replaced subscription has to be written first: a wallet has one live subscription.
func (tx appTx) writeSubscription(ctx context.Context, w *ledger.Wallet, before *billing.Subscription, s billing.Subscription) error {
	row, err := encodeSubscription(s)
	if err != nil {
		return err
	}
	if before != nil {
		stored, err := encodeSubscription(*before)
		if err != nil {
			return err
		}
		if row.equal(stored) {
			return tx.scheduleRenewal(ctx, s)
		}
	}
	if err := tx.Exec(ctx, putSubscription, 1, pg.Named{
		"id": s.ID, "org_id": tx.Scope.OrgID, "wallet_id": w.ID, "status": s.Status, "period_start": s.Period.Start,
		"period_end": s.Period.End, "terms": row.lists, "connection_id": pg.OrNull(s.ConnectionID),
		"provider_id": pg.OrNull(s.ProviderID), "begun": s.Begun, "extra": s.Duplicate, "anchor": s.Anchor,
		"plan_id": pg.OrNull(s.Terms.PlanID), "sale": row.sale, "cancel_at_period_end": s.CancelAtPeriodEnd, "scheduled": row.scheduled,
		"pending": row.pending, "created_at": s.CreatedAt, "ended_at": pg.OrNull(s.EndedAt),
	}); err != nil {
		return err
	}
	if err := tx.Exec(ctx, touchWallet, 1, w.ID, pg.VersionStep()); err != nil {
		return err
	}
	if err := tx.announceSubscription(ctx, w, before, s); err != nil {
		return err
	}
	if err := tx.scheduleRenewal(ctx, s); err != nil {
		return err
	}
	return tx.Refer(ctx, s.ID, promisedTerms(s)...)
}

// subscriptionRow is a subscription as its columns hold it.
type subscriptionRow struct {
	billing.Subscription // without terms, which are in the columns below

	planID                          ids.ID
	lists, sale, scheduled, pending []byte
}

func encodeSubscription(s billing.Subscription) (row subscriptionRow, err error) {
	row = subscriptionRow{Subscription: s, planID: s.Terms.PlanID}
	row.Terms, row.Scheduled, row.Pending = billing.Terms{}, nil, nil
	if row.lists, row.sale, err = ledger.EncodeSale(s.Terms); err != nil {
		return row, err
	}
	if row.scheduled, err = encodeScheduled(s.Scheduled); err != nil {
		return row, err
	}
	row.pending, err = encodePending(s.Pending)
	return row, err
}

func (r subscriptionRow) equal(other subscriptionRow) bool {
	return reflect.DeepEqual(r.Subscription, other.Subscription) && r.planID == other.planID &&
		bytes.Equal(r.lists, other.lists) && bytes.Equal(r.sale, other.sale) &&
		bytes.Equal(r.scheduled, other.scheduled) && bytes.Equal(r.pending, other.pending)
}

// promisedTerms are the current, scheduled and pending terms of a subscription. They
// were frozen when requested, so the features that they name keep their prices.
func promisedTerms(s billing.Subscription) (terms []metering.Terms) {
	if s.Ended() || s.Duplicate {
		return nil
	}
	terms = append(terms, s.Terms.Metering())
	if s.Scheduled != nil {
		terms = append(terms, s.Scheduled.Target.Metering())
	}
	if s.Pending != nil {
		terms = append(terms, s.Pending.Target.Metering())
	}
	return terms
}

// scheduleRenewal enqueues the renewal of a free subscription at the end of its period.
// The job is replaced, since the period's end may have moved.
func (tx appTx) scheduleRenewal(ctx context.Context, s billing.Subscription) error {
	if !s.Local() {
		return nil
	}
	if err := tx.DeleteJob(ctx, queue.JobFree, s.ID.String()); err != nil || s.Ended() {
		return err
	}
	return tx.Enqueue(ctx, queue.Job{Kind: queue.JobFree, Object: s.ID.String(), DueAt: s.Period.End})
}

// RenewFree advances a free subscription one step towards the current period, with the
// credits of each period on the way.
func (a App) RenewFree(ctx context.Context, f queue.Fence, subscription ids.ID, now int64) (s billing.Subscription, err error) {
	err = a.fenced(ctx, f, func(ctx context.Context, tx appTx) error {
		if s, err = pg.Find(ctx, tx, selectSubscription, readSubscription, ErrUnknown, subscription); err != nil {
			return err
		}
		locked, err := tx.LockWallets(ctx, s.Identity)
		if err != nil {
			return err
		}
		w := &locked[0]
		// Read again under the wallet's lock.
		if s, err = pg.Find(ctx, tx, selectSubscription, readSubscription, ErrUnknown, subscription); err != nil {
			return err
		}
		if !s.Local() {
			return ErrUnknown
		}
		known, err := tx.payments(ctx, selectPayments, w.ID, s.ID)
		if err != nil {
			return err
		}
		before := s
		var settled []billing.Payment
		s, settled = billing.RenewFree(s, plainPayments(known), now)
		if err := tx.writeSubscription(ctx, w, &before, s); err != nil {
			return err
		}
		if err := tx.creditPayments(ctx, w, paymentContext{subscription: s.ID, clockOffset: f.ClockOffset}, settled, now); err != nil {
			return err
		}
		return tx.ScheduleWake(ctx)
	})
	a.app.WalletChanged(s.Identity)
	return s, err
}
