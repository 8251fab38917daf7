package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

// MaxReason is the maximum length of an adjustment's reason, in characters.
const MaxReason = 500

// Adjustment is a manual correction of a balance. Its id is created with the form, so
// that a form sent twice corrects once.
type Adjustment struct {
	ID          ids.ID
	WalletID    ids.ID
	CreditKey   string
	Delta       metering.Delta
	Reason      string
	By          ids.ID // a user
	Now         int64
	ClockOffset int64 // when Now was read
}

var (
	insertAdjustment = pg.Declare("insert adjustment", `
		INSERT INTO adjustments (app_id, entry_id, org_id, reason, user_id) VALUES ($1, $2, $3, $4, $5)`)

	selectAdjustment = pg.Declare("select adjustment", `
		SELECT j.wallet_id = $3 AND c.key = $4 AND j.delta_nanocredits = $5 AND a.reason = $6
		FROM adjustments a
		JOIN journal j ON j.app_id = $1 AND j.id = a.entry_id
		JOIN credits c ON c.app_id = $1 AND c.id = j.credit_id
		WHERE a.app_id = $1 AND a.entry_id = $2`)
)

// Adjust corrects a balance: the entry, its reason and the audit row are one
// transaction. It cannot take more than the balance: only a reversed payment creates
// debt. A second adjustment with the same id changes nothing; a different one is refused.
func (a App) Adjust(ctx context.Context, requested Adjustment) (err error) {
	if requested.Delta.Amount == 0 {
		return fault.Newf(fault.InvalidRequest, "The amount must be greater than zero.")
	}
	if requested.Reason == "" {
		return fault.Newf(fault.InvalidRequest, "Enter a reason for the adjustment.")
	}
	var identity string
	err = pg.RetryKeyed(ctx, a.transactInTurn, func(ctx context.Context, tx appTx) error {
		identity, err = tx.adjust(ctx, requested)
		return err
	})
	if identity != "" {
		a.app.WalletChanged(identity)
	}
	return err
}

func (tx appTx) adjust(ctx context.Context, requested Adjustment) (identity string, err error) {
	row, err := tx.LockWalletByID(ctx, requested.WalletID)
	if err != nil {
		return "", err
	}
	same, err := pg.Collect(ctx, tx, selectAdjustment, pgx.RowTo[bool], requested.ID, requested.WalletID, requested.CreditKey, pg.Delta(requested.Delta), requested.Reason)
	if err == nil && len(same) == 1 && !same[0] {
		err = fault.Newf(fault.IdempotencyConflict, "This form was sent before, with other values. Open it again to adjust once more.")
	}
	if err != nil || len(same) == 1 {
		return row.Identity, err
	}
	credit, err := tx.Credit(ctx, requested.CreditKey)
	if err != nil {
		return "", err
	}
	entry, err := tx.Post(ctx, &row, ledger.Posting{
		ID: requested.ID, Kind: metering.EntryAdjustment, Credit: credit, Delta: requested.Delta, Reason: requested.Reason, Now: requested.Now,
		ClockOffset: requested.ClockOffset, Change: requested.change,
	})
	if err != nil {
		return row.Identity, err
	}
	if err := tx.Exec(ctx, insertAdjustment, 1, requested.ID, tx.Scope.OrgID, requested.Reason, requested.By); err != nil {
		return row.Identity, err
	}
	return row.Identity, tx.Audit(ctx, "balance.adjust", requested.WalletID.Format(ids.Wallet), nil, audit.Fields{
		"credit":      credit.Key,
		"change":      requested.Delta.Credits(),
		"balance":     entry.BalanceAfter.Credits(),
		"reason":      requested.Reason,
		"transaction": requested.ID.Format(ids.Transaction),
	})
}

func (requested Adjustment) change(b metering.Balance) (metering.Balance, error) {
	if !requested.Delta.Out {
		return b.Receive(requested.Delta.Amount)
	}
	after, ok := b.Spend(requested.Delta.Amount)
	if !ok {
		return b, fault.Newf(fault.InsufficientBalance, "The balance is %s. You can't remove more than that.", b.Amount.Credits())
	}
	return after, nil
}
