package store

import (
	"context"
	"errors"

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
	ID        ids.ID
	WalletID  ids.ID
	CreditKey string
	Delta     metering.Delta
	Reason    string
	By        ids.ID // a user
	Now       int64
}

var (
	insertAdjustment = pg.Declare("insert adjustment", `
		INSERT INTO adjustments (app_id, entry_id, org_id, reason, user_id) VALUES ($1, $2, $3, $4, $5)`)

	selectAdjustment = pg.Declare("select adjustment", `
		SELECT reason FROM adjustments WHERE app_id = $1 AND entry_id = $2`)
)

// Adjust corrects a balance: the entry, its reason and the audit row are one
// transaction. It cannot take more than the balance: only a reversed payment creates
// debt. A second adjustment with the same id changes nothing.
func (a App) Adjust(ctx context.Context, requested Adjustment) (err error) {
	if requested.Delta.Amount == 0 {
		return fault.Newf(fault.InvalidRequest, "The amount must be greater than zero.")
	}
	if requested.Reason == "" {
		return fault.Newf(fault.InvalidRequest, "Enter a reason for the adjustment.")
	}
	var identity string
	err = a.transactInTurn(ctx, func(ctx context.Context, tx appTx) error {
		identity, err = tx.adjust(ctx, requested)
		return err
	})
	if identity != "" {
		a.app.WalletChanged(identity)
	}
	if pg.SQLState(err) == pg.UniqueViolation || errors.Is(err, pg.ErrCommitUnknown) {
		return a.adjusted(ctx, requested.ID, err)
	}
	return err
}

func (tx appTx) adjust(ctx context.Context, requested Adjustment) (identity string, err error) {
	row, err := tx.LockWalletByID(ctx, requested.WalletID)
	if err != nil {
		return "", err
	}
	credit, err := tx.Credit(ctx, requested.CreditKey)
	if err != nil {
		return "", err
	}
	entry, err := tx.Post(ctx, &row, ledger.Posting{
		ID: requested.ID, Kind: metering.EntryAdjustment, Credit: credit, Delta: requested.Delta, Reason: requested.Reason, Now: requested.Now,
		Change: requested.change,
	})
	if err != nil {
		return row.Identity, err
	}
	if err := tx.Exec(ctx, insertAdjustment, 1, requested.ID, tx.Scope.OrgID, requested.Reason, requested.By); err != nil {
		return row.Identity, err
	}
	signed := requested.Delta.Amount.Credits()
	if requested.Delta.Out {
		signed = "-" + signed
	}
	return row.Identity, tx.Audit(ctx, "balance.adjust", requested.WalletID.Format(ids.Wallet), nil, audit.Fields{
		"credit":      credit.Key,
		"change":      signed,
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

// adjusted checks whether an adjustment was committed, after an error that may have
// come after the commit.
func (a App) adjusted(ctx context.Context, id ids.ID, cause error) error {
	reasons, err := pg.ListAll(ctx, a.app, selectAdjustment, pgx.RowTo[string], id)
	if err == nil && len(reasons) == 1 {
		return nil
	}
	return cause
}
