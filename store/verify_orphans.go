package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
)

const ruleOwner = "every event, counter and billed period belongs to a wallet"

// ownedTables have no foreign key to their wallet: it would be looked up with every
// charge. Each statement goes from wallet to wallet along the index, whatever number
// of rows a wallet has, and gives the next ones with whether the wallet exists.
var ownedTables = []struct {
	rows      string
	statement statement
}{
	{"events", declare("verify owners of events", `
		WITH RECURSIVE owners AS (
			(SELECT e.wallet_id AS id FROM usage_events e WHERE e.app_id = $1 AND e.wallet_id > $2 ORDER BY e.wallet_id LIMIT 1)
			UNION ALL
			SELECT (SELECT e.wallet_id FROM usage_events e WHERE e.app_id = $1 AND e.wallet_id > o.id ORDER BY e.wallet_id LIMIT 1)
			FROM owners o WHERE o.id IS NOT NULL
		)
		SELECT o.id, EXISTS (SELECT 1 FROM wallets w WHERE w.app_id = $1 AND w.id = o.id)
		FROM owners o WHERE o.id IS NOT NULL LIMIT $3`)},
	{"allowance counters", declare("verify owners of counters", `
		WITH RECURSIVE owners AS (
			(SELECT e.wallet_id AS id FROM counters e WHERE e.app_id = $1 AND e.wallet_id > $2 ORDER BY e.wallet_id LIMIT 1)
			UNION ALL
			SELECT (SELECT e.wallet_id FROM counters e WHERE e.app_id = $1 AND e.wallet_id > o.id ORDER BY e.wallet_id LIMIT 1)
			FROM owners o WHERE o.id IS NOT NULL
		)
		SELECT o.id, EXISTS (SELECT 1 FROM wallets w WHERE w.app_id = $1 AND w.id = o.id)
		FROM owners o WHERE o.id IS NOT NULL LIMIT $3`)},
	{"billed periods", declare("verify owners of billed periods", `
		WITH RECURSIVE owners AS (
			(SELECT e.wallet_id AS id FROM billed_periods e WHERE e.app_id = $1 AND e.wallet_id > $2 ORDER BY e.wallet_id LIMIT 1)
			UNION ALL
			SELECT (SELECT e.wallet_id FROM billed_periods e WHERE e.app_id = $1 AND e.wallet_id > o.id ORDER BY e.wallet_id LIMIT 1)
			FROM owners o WHERE o.id IS NOT NULL
		)
		SELECT o.id, EXISTS (SELECT 1 FROM wallets w WHERE w.app_id = $1 AND w.id = o.id)
		FROM owners o WHERE o.id IS NOT NULL LIMIT $3`)},
	{"sealed entries", declare("verify owners of seals", `
		SELECT s.wallet_id, EXISTS (SELECT 1 FROM wallets w WHERE w.app_id = $1 AND w.id = s.wallet_id)
		FROM wallet_seals s WHERE s.app_id = $1 AND s.wallet_id > $2
		ORDER BY s.wallet_id LIMIT $3`)},
}

// checkOwners finds rows of wallets that do not exist.
func (p *verifyPass) checkOwners(ctx context.Context) error {
	for _, table := range ownedTables {
		for last := (ids.ID{}); ; {
			var orphans []ids.ID
			var seen int
			err := p.read(ctx, func(ctx context.Context, tx appTx) error {
				orphans, seen = nil, 0
				_, err := collect(ctx, tx, table.statement, func(row pgx.CollectableRow) (struct{}, error) {
					var exists bool
					err := row.Scan(&last, &exists)
					if seen++; !exists {
						orphans = append(orphans, last)
					}
					return struct{}{}, err
				}, last, verifyPage)
				return err
			})
			if err != nil {
				return err
			}
			for _, id := range orphans {
				p.report(Difference{Check: ruleOwner, WalletID: id, Detail: "there are " + table.rows + " of this wallet, but no wallet"})
			}
			if seen < verifyPage {
				break
			}
			if err := pauseFor(ctx, p.options.Pause); err != nil {
				return err
			}
		}
	}
	return nil
}
