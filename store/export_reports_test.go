package store

import (
	"context"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/reports"
)

// What the tests of reports see of their inside.

// The limits that are tested at the limit and one past it.
const (
	RingSize      = reports.RingSize
	KeptFailures  = reports.KeptFailures
	KeptSuccesses = reports.KeptSuccesses

	FailuresPerMinute = reports.FailuresPerMinute
)

// TakeBack takes an amount back from a wallet, as a refund does.
func TakeBack(ctx context.Context, a App, identity, creditKey string, amount metering.Amount, now int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		credit, err := tx.Credit(ctx, creditKey)
		if err != nil {
			return err
		}
		w, err := tx.LockOrCreateWallet(ctx, ids.New(), identity, now)
		if err != nil {
			return err
		}
		_, err = tx.Post(ctx, &w, ledger.Posting{
			ID: ids.New(), Kind: metering.EntryRefund, Credit: credit, Delta: metering.Delta{Amount: amount, Out: true}, Now: now,
			Change: func(b metering.Balance) (metering.Balance, error) {
				after, _ := b.TakeBackUpTo(amount)
				return after, nil
			},
		})
		return err
	})
}
