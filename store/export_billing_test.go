package store

import (
	"context"

	"purser/fault"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// What the tests of this package write of subscriptions past the ways that production
// has. Tests of other packages have storetest.

var (
	upsertSubscription = pg.Declare("upsert subscription", `
	INSERT INTO subscriptions (app_id, id, org_id, wallet_id, status, period_start, period_end, terms)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
	ON CONFLICT (app_id, id) DO UPDATE SET
		status = excluded.status, period_start = excluded.period_start, period_end = excluded.period_end, terms = excluded.terms
	WHERE subscriptions.wallet_id = excluded.wallet_id`)

	moveVersion = pg.Declare("move version of wallet", `
	UPDATE wallets SET version = version + 1 WHERE app_id = $1 AND id = $2`)
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
		if err := tx.Exec(ctx, moveVersion, 1, locked[0].ID); err != nil {
			return err
		}
		if !s.Status.InUse() {
			return tx.Refer(ctx, s.ID, metering.Terms{})
		}
		return tx.Refer(ctx, s.ID, s.Terms)
	})
}
