package ledger

import (
	"context"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

var (
	insertDebtor = pg.Declare("insert debtor", `
		INSERT INTO debtors (app_id, wallet_id, credit_id, org_id) VALUES ($1, $2, $3, $4)
		ON CONFLICT (app_id, wallet_id, credit_id) DO NOTHING`)

	deleteDebtor = pg.Declare("delete debtor", `
		DELETE FROM debtors WHERE app_id = $1 AND wallet_id = $2 AND credit_id = $3`)
)

// updateDebtors maintains the list of debtors. It runs with every balance change that
// can begin or end a debt, which a charge cannot.
func (tx Tx) updateDebtors(ctx context.Context, walletID ids.ID, before, after metering.Balance) (err error) {
	switch {
	case before.Debt == 0 && after.Debt > 0:
		_, err = tx.ExecAny(ctx, insertDebtor, walletID, after.CreditID, tx.Scope.OrgID)
	case before.Debt > 0 && after.Debt == 0:
		_, err = tx.ExecAny(ctx, deleteDebtor, walletID, after.CreditID)
	}
	return err
}
