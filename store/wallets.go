package store

import (
	"context"
	"strconv"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

var setBillingPeriod = pg.Declare("set billing period", `
	UPDATE wallets SET billing_interval = $3, billing_anchor = $4, version = version + $5
	WHERE app_id = $1 AND id = $2`)

// CreateWallet keeps a new, empty wallet, or gives the one that the identity has.
func (a App) CreateWallet(ctx context.Context, id ids.ID, identity string, now int64) (w metering.Wallet, created bool, err error) {
	for range pg.MaxAttempts {
		err = a.transactInTurn(ctx, func(ctx context.Context, tx appTx) error {
			made, err := tx.ExecAny(ctx, ledger.EnsureWallets, []ids.ID{id}, []string{identity}, now)
			if err != nil {
				return err
			}
			created = made == 1
			if w, err = tx.Wallet(ctx, identity); err != nil || !created {
				return err
			}
			return tx.Audit(ctx, "wallet.create", w.ID.Format(ids.Wallet), nil, nil)
		})
		if !fault.Is(err, fault.WalletNotFound) { // it got another identity between the two statements
			break
		}
	}
	return w, created, err
}

// Wallet reads the wallet of an identity, with its balances, as of one moment.
func (a App) Wallet(ctx context.Context, identity string) (metering.Wallet, error) {
	return pg.Return(ctx, a.snapshot, func(ctx context.Context, tx appTx) (metering.Wallet, error) { return tx.Wallet(ctx, identity) })
}

// Wallets lists wallets with their balances, newest first, and reports whether
// there are more.
func (a App) Wallets(ctx context.Context, p Page) ([]metering.Wallet, bool, error) {
	return pg.ReturnBoth(ctx, a.snapshot, func(ctx context.Context, tx appTx) ([]metering.Wallet, bool, error) {
		rows, err := pg.Collect(ctx, tx, ledger.ListWallets, ledger.ReadWallet, p.Start(), p.OneMore())
		if err != nil {
			return nil, false, err
		}
		rows, more := pg.Cut(rows, p.Limit)
		list, err := tx.WithBalances(ctx, rows)
		return list, more, err
	})
}

// SetBillingPeriod sets when the wallet's billing periods start, as long as
// nothing was charged. It holds the wallet's lock, so no use slips in between.
func (a App) SetBillingPeriod(ctx context.Context, identity string, period metering.BillingPeriod) (w metering.Wallet, err error) {
	err = a.transactInTurn(ctx, func(ctx context.Context, tx appTx) error {
		locked, err := tx.LockWallets(ctx, identity)
		if err != nil {
			return err
		}
		if len(locked) == 0 {
			return fault.New(fault.WalletNotFound)
		}
		if _, err = locked[0].SetBillingPeriod(period); err != nil {
			return err
		}
		if err := tx.Exec(ctx, setBillingPeriod, 1, locked[0].ID, period.Interval, period.Anchor, pg.VersionStep()); err != nil {
			return err
		}
		if w, err = tx.Wallet(ctx, identity); err != nil {
			return err
		}
		return tx.Audit(ctx, "wallet.billing-period", w.ID.Format(ids.Wallet), nil, audit.Fields{
			"interval": string(period.Interval), "anchor": strconv.FormatInt(period.Anchor, 10),
		})
	})
	a.app.WalletChanged(identity)
	return w, err
}
