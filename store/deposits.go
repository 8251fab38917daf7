package store

import (
	"context"

	"purser/ids"
	"purser/store/internal/pg"
)

// Deposit adds credits to the identity's wallet, made when it is missing. A
// repeated idempotency key gives the first deposit back, whatever else it says.
func (a App) Deposit(ctx context.Context, requested Deposit) (d Deposit, duplicate bool, err error) {
	walletID := ids.New()
	err = pg.RetryKeyed(ctx, a.transactInTurn, func(ctx context.Context, tx appTx) error {
		d, duplicate, err = tx.Deposit(ctx, walletID, requested)
		return err
	})
	a.app.WalletChanged(requested.Identity)
	return d, duplicate, err
}

// Deposits lists what came into a wallet, newest first, and returns where the next page
// begins, or zero at the end. A page that has read very many entries is a partial one.
func (a App) Deposits(ctx context.Context, p DepositPage) ([]Deposit, Position, error) {
	return pg.ReturnBoth(ctx, a.snapshot, func(ctx context.Context, tx appTx) ([]Deposit, Position, error) {
		return tx.Deposits(ctx, p)
	})
}
