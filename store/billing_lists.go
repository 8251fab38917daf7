package store

import (
	"context"

	"purser/billing"
)

var (
	listFailingWork = declare("list failing work", `
		SELECT `+workColumns+`
		FROM work_queue WHERE app_id = $1 AND tries > 0 ORDER BY due_at, kind, object LIMIT $2`)

	listPaymentsOfWallet = declare("list payments of wallet", `
		SELECT`+paymentColumns+`
		FROM provider_payments WHERE app_id = $1 AND wallet_id = $2 ORDER BY created_at DESC, source_id LIMIT $3`)
)

// FailingWork lists what was tried and has failed, the next to be tried first.
func (a App) FailingWork(ctx context.Context, most int) (list []Work, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		list, err = collect(ctx, tx, listFailingWork, readWork, most)
		return err
	})
	return list, err
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
