package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/tenancy/audit"
)

var (
	listFailingWork = declare("list failing work", `
		SELECT `+workColumns+`
		FROM work_queue WHERE app_id = $1 AND failing_since IS NOT NULL ORDER BY failing_since, kind, object LIMIT $2`)

	retryWork = declare("retry work", `
		UPDATE work_queue SET due_at = $4 WHERE app_id = $1 AND kind = $2 AND object = $3 AND failing_since IS NOT NULL RETURNING last_error`)

	listPaymentsOfWallet = declare("list payments of wallet", `
		SELECT`+paymentColumns+`
		FROM provider_payments WHERE app_id = $1 AND wallet_id = $2 ORDER BY created_at DESC, source_id LIMIT $3`)
)

// FailingWork lists what was tried and has failed, the longest failing first.
func (a App) FailingWork(ctx context.Context, most int) (list []Work, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		list, err = collect(ctx, tx, listFailingWork, readWork, most)
		return err
	})
	return list, err
}

// RetryWork makes failing work due now, also work that was stopped.
func (a App) RetryWork(ctx context.Context, kind WorkKind, object string, now int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		reason, err := find(ctx, tx, retryWork, pgx.RowTo[*string], fault.New(fault.PathNotFound), kind, object, now)
		if err != nil {
			return err
		}
		if err := tx.audit(ctx, "job.retry", string(kind)+" "+object, nil, audit.Facts{"error": orZero(reason)}); err != nil {
			return err
		}
		return tx.hint(ctx)
	})
}

// Payments lists what an identity has paid or was given by a plan, the latest
// first. An identity without a wallet has none.
func (a App) Payments(ctx context.Context, identity string, most int) (list []billing.Payment, err error) {
	err = a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		wallets, err := collect(ctx, tx, selectWallet, readWallet, identity)
		if err != nil || len(wallets) == 0 {
			return err
		}
		stored, err := tx.payments(ctx, listPaymentsOfWallet, wallets[0].ID, most)
		list = plainPayments(stored)
		return err
	})
	return list, err
}
