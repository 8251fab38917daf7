package verify

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

const ruleOwner = "every event, counter and billed period belongs to a wallet"

// ownedTable is a table whose rows belong to wallets.
type ownedTable struct {
	rows      string
	statement pg.Statement
}

// ownedTables are the tables of wallets. Those of the hot path have no foreign key to
// their wallet: it would be looked up with every charge.
var ownedTables = []ownedTable{
	{"events", pg.Declare("verify owners of events", ownersIn("usage_events", "wallets"))},
	{"packed events", pg.Declare("verify owners of packed events", ownersIn("packed_events", "wallets"))},
	{"allowance counters", pg.Declare("verify owners of allowance counters", ownersIn("counters", "wallets"))},
	{"billed periods", pg.Declare("verify owners of billed periods", ownersIn("billed_periods", "wallets"))},
	{"properties of events", pg.Declare("verify owners of properties", ownersIn("event_properties", "wallets"))},
	{"hours of usage", pg.Declare("verify owners of usage", ownersIn("usage_hours", "wallets"))},
	{"debts", pg.Declare("verify owners of debts", ownersIn("debtors", "wallets"))},
	{"sealed entries", pg.Declare("verify owners of sealed entries", ownersIn("wallet_seals", "wallets"))},
	{"seals", pg.Declare("verify owners of seals", ownersIn("sealed_wallets", "wallets"))},
	{"pending seals", pg.Declare("verify owners of pending seals", ownersIn("pending_seals", "wallets"))},
	{"changes of identity", pg.Declare("verify owners of changes of identity", ownersIn("identity_changes", "wallets"))},
	{"journal entries", pg.Declare("verify owners of journal entries", ownersIn("journal", "wallets"))},
	{"payments", pg.Declare("verify owners of payments", ownersIn("provider_payments", "wallets"))},
	{"top-ups", pg.Declare("verify owners of top-ups", ownersIn("topups", "wallets"))},
	{"rows of the feed", pg.Declare("verify owners of notifications", ownersIn("notifications", "wallets"))},
	{"alert marks", pg.Declare("verify owners of alert marks", ownersIn("alert_marks", "wallets"))},
	{"subscription changes", pg.Declare("verify owners of subscription changes", ownersIn("subscription_changes", "wallets"))},
}

// ownersIn goes from wallet to wallet along the index, however many rows a wallet
// has, and gives the next ones with whether the wallet exists.
func ownersIn(table, owners string) string {
	return `
		WITH RECURSIVE owners AS (
			(SELECT e.wallet_id AS id FROM ` + table + ` e WHERE e.app_id = $1 AND e.wallet_id > $2 ORDER BY e.wallet_id LIMIT 1)
			UNION ALL
			SELECT (SELECT e.wallet_id FROM ` + table + ` e WHERE e.app_id = $1 AND e.wallet_id > o.id ORDER BY e.wallet_id LIMIT 1)
			FROM owners o WHERE o.id IS NOT NULL
		)
		SELECT o.id, EXISTS (SELECT 1 FROM ` + owners + ` w WHERE w.app_id = $1 AND w.id = o.id)
		FROM owners o WHERE o.id IS NOT NULL LIMIT $3`
}

// owner is a wallet that rows name.
type owner struct {
	ID     ids.ID
	Exists bool
}

// checkOwners finds rows of wallets that do not exist.
func (p *verifyPass) checkOwners(ctx context.Context) error {
	for _, table := range ownedTables {
		for after, more := (ids.ID{}), true; more; {
			owners, err := list(ctx, p, table.statement, pgx.RowToStructByPos[owner], after, p.options.Page)
			if finished, err := p.finished(ctx, ruleOwner, err); err != nil {
				return err
			} else if !finished {
				break
			}
			for _, o := range owners {
				after = o.ID
				if !o.Exists {
					p.report(Difference{Check: ruleOwner, WalletID: o.ID, Detail: "there are " + table.rows + " of this wallet, but no wallet"})
				}
			}
			more = int64(len(owners)) == p.options.Page
			if err := pauseFor(ctx, p.options.Pause); err != nil {
				return err
			}
		}
	}
	return nil
}
