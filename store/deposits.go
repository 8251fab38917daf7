package store

import (
	"cmp"
	"context"
	"math"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

var selectDepositByKey = pg.Declare("select deposit by idempotency key", `
	SELECT`+ledger.DepositColumns+`
	FROM journal j
	JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
	JOIN credits c ON c.app_id = $1 AND c.id = j.credit_id
	WHERE j.app_id = $1 AND j.idempotency_key = $2`)

// Deposit adds credits to the identity's wallet, made when it is missing. A
// repeated idempotency key gives the first deposit back, whatever else it says.
func (a App) Deposit(ctx context.Context, requested Deposit) (d Deposit, duplicate bool, err error) {
	walletID := ids.New()
	err = pg.RetryKeyed(ctx, a.transactInTurn, func(ctx context.Context, tx appTx) error {
		d, duplicate, err = tx.deposit(ctx, walletID, requested)
		return err
	})
	a.app.WalletChanged(requested.Identity)
	return d, duplicate, err
}

func (tx appTx) deposit(ctx context.Context, walletID ids.ID, requested Deposit) (d Deposit, duplicate bool, err error) {
	earlier, err := pg.Collect(ctx, tx, selectDepositByKey, ledger.ReadDeposit, requested.IdempotencyKey)
	if err != nil {
		return d, false, err
	}
	if len(earlier) == 1 {
		return earlier[0], earlier[0].ID != requested.ID, nil
	}
	credit, err := tx.Credit(ctx, requested.CreditKey)
	if err != nil {
		return d, false, err
	}
	w, err := tx.LockOrMakeWallet(ctx, walletID, requested.Identity, requested.CreatedAt)
	if err != nil {
		return d, false, err
	}
	entry, err := tx.Post(ctx, &w, ledger.Posting{
		ID: requested.ID, Kind: metering.EntryDeposit, Credit: credit, Delta: metering.Delta{Amount: requested.Amount},
		IdempotencyKey: requested.IdempotencyKey, Now: requested.CreatedAt,
		Change: func(b metering.Balance) (metering.Balance, error) { return b.Receive(requested.Amount) },
	})
	if err != nil {
		return d, false, err
	}
	requested.Seq = entry.Seq
	return requested, false, tx.Audit(ctx, "deposit.create", w.ID.Format(ids.Wallet), nil, audit.Fields{
		"deposit": requested.ID.Format(ids.Deposit), "creditKey": requested.CreditKey, "amountNanocredits": requested.Amount.String(),
	})
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
