package store

import (
	"cmp"
	"context"
	"math"

	"purser/ids"
	"purser/store/internal/ledger"
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

// DepositPage asks for deposits of one wallet that came before the one with the
// given number; zero asks for the newest.
type DepositPage struct {
	Identity  string
	CreditKey string // all credits when empty
	Before    int64
	Limit     int
}

// Deposits lists what came into a wallet, newest first, and returns where the next page
// begins, or 0 at the end. A page that has read very many entries is a partial one.
func (a App) Deposits(ctx context.Context, p DepositPage) (list []Deposit, next int64, err error) {
	before := cmp.Or(p.Before, math.MaxInt64)
	err = a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		var creditID *ids.ID
		if p.CreditKey != "" {
			credit, err := tx.Credit(ctx, p.CreditKey)
			if err != nil {
				return err
			}
			creditID = &credit.ID
		}
		wallets, err := pg.Collect(ctx, tx, ledger.SelectWallet, ledger.ReadWallet, p.Identity)
		if err != nil || len(wallets) == 0 {
			return err
		}
		list, next, err = tx.Deposits(ctx, wallets[0].ID, creditID, before, p.Limit)
		return err
	})
	return list, next, err
}
