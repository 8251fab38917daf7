package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// What the tests of this package read and write of subscriptions and payments past the
// ways that production has. Tests of other packages have storetest.

var (
	upsertSubscription = pg.Declare("upsert subscription", `
	INSERT INTO subscriptions (app_id, id, org_id, wallet_id, status, period_start, period_end, terms)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
	ON CONFLICT (app_id, id) DO UPDATE SET
		status = excluded.status, period_start = excluded.period_start, period_end = excluded.period_end, terms = excluded.terms
	WHERE subscriptions.wallet_id = excluded.wallet_id`)

	listPaymentsOfWallet = pg.Declare("list payments of wallet", `
		SELECT`+paymentColumns+`
		FROM provider_payments WHERE app_id = $1 AND wallet_id = $2 ORDER BY created_at DESC, source_id LIMIT $3`)

	listWebhooks = pg.Declare("list webhooks", `
		SELECT id, event_id, type, object_id, api_version, live, received_at, outcome
		FROM webhook_events WHERE app_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`)
)

// PutSubscription keeps what the engine needs of an identity's subscription. It
// holds the wallet's lock and moves its version, so the next use, on whichever
// node, is decided by it.
func (a App) PutSubscription(ctx context.Context, identity string, s metering.Subscription) error {
	terms, err := ledger.EncodeTerms(s.Terms, nil)
	if err != nil {
		return err
	}
	defer a.app.WalletChanged(identity)
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		locked, err := tx.LockWallets(ctx, identity)
		if err != nil {
			return err
		}
		if len(locked) == 0 {
			return fault.New(fault.WalletNotFound)
		}
		err = tx.Exec(ctx, upsertSubscription, 1, s.ID, a.app.Scope.OrgID, locked[0].ID, s.Status, s.Period.Start, s.Period.End, terms)
		if err != nil {
			return err
		}
		if err := tx.Exec(ctx, touchWallet, 1, locked[0].ID); err != nil {
			return err
		}
		if !s.Status.Live() {
			return tx.Refer(ctx, s.ID, metering.Terms{})
		}
		return tx.Refer(ctx, s.ID, s.Terms)
	})
}

// Payments lists what an identity has paid or was given by a plan, the latest
// first. An identity without a wallet has none.
func (a App) Payments(ctx context.Context, identity string, most int) (list []billing.Payment, err error) {
	err = a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		wallets, err := pg.Collect(ctx, tx, ledger.SelectWallet, ledger.ReadWallet, identity)
		if err != nil || len(wallets) == 0 {
			return err
		}
		stored, err := tx.payments(ctx, listPaymentsOfWallet, wallets[0].ID, most)
		list = plainPayments(stored)
		return err
	})
	return list, err
}

// TopUp reads a purchase of credits.
func (a App) TopUp(ctx context.Context, id ids.ID) (t billing.TopUp, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		t, err = pg.Find(ctx, tx, selectTopUp, readTopUp, ErrUnknown, id)
		return err
	})
	return t, err
}

// ListedEvent is a webhook in a list.
type ListedEvent struct {
	Position ids.ID // to go on from
	WebhookEvent
}

// WebhookEvents lists the webhooks that came, newest first, and reports whether
// there are more.
func (a App) WebhookEvents(ctx context.Context, p Page) (list []ListedEvent, more bool, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		list, err = pg.Collect(ctx, tx, listWebhooks, func(row pgx.CollectableRow) (e ListedEvent, err error) {
			err = row.Scan(&e.Position, &e.ID, &e.Type, &e.Object, &e.APIVersion, &e.Live, &e.ReceivedAt, &e.Outcome)
			return e, err
		}, p.Start(), p.OneMore())
		return err
	})
	list, more = pg.Cut(list, p.Limit)
	return list, more, err
}

// allJobKinds are the kinds of jobs that tests claim.
var allJobKinds = []JobKind{
	JobPlan, JobOperation, JobFree, JobArchive, JobSession, JobSubscription, JobInvoice, JobCharge, JobRefund, JobDispute, JobSchedule, JobCustomer,
	JobEvents, JobReconcile, JobPrune,
}

// DueJobs claims the jobs that are due at a time of the application's clock, with a
// lease that has expired: they can be finished, and claimed again.
func (a App) DueJobs(ctx context.Context, now int64, most int) ([]Job, error) {
	offset, err := a.ClockOffset(ctx)
	if err != nil {
		return nil, err
	}
	batch, err := a.ClaimJobs(ctx, ClaimInput{Kinds: allJobKinds, Now: now - offset, Most: most})
	return batch.Jobs, err
}
