package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
)

// verifyCheck is one thing that must hold about rows beside the entries. Its
// statement gives the wallet, the customer and a detail for each place where it
// does not. $2 is the wallets to look at, NULL for all, and $3 how many places
// are listed.
type verifyCheck struct {
	holds     string
	statement statement
}

var verifyChecks = []verifyCheck{
	{"what payments brought, less what was taken back, stands in the journal", declare("verify payments", `
		WITH posted AS (
			SELECT j.wallet_id, j.source_kind, j.source_id, j.credit_id, sum(j.delta_nanocredits) AS total
			FROM journal j
			WHERE j.app_id = $1 AND j.kind IN ('grant', 'top-up', 'refund', 'dispute') AND ($2::uuid[] IS NULL OR j.wallet_id = ANY ($2))
			GROUP BY j.wallet_id, j.source_kind, j.source_id, j.credit_id
		),
		brought AS (
			SELECT p.wallet_id, c.source_kind, c.source_id, c.credit_id, c.amount_nanocredits - c.taken_back_nanocredits AS total
			FROM provider_payments p
			JOIN payment_credits c ON c.app_id = $1 AND c.source_kind = p.source_kind AND c.source_id = p.source_id
			WHERE p.app_id = $1 AND ($2::uuid[] IS NULL OR p.wallet_id = ANY ($2))
		)
		SELECT w.id, w.identity, coalesce(j.source_kind || ' ' || j.source_id, b.source_kind || ' ' || b.source_id, 'no payment')
			|| ' brought ' || coalesce(b.total, 0) || ' nanocredits, but its entries add up to ' || coalesce(j.total, 0)
		FROM posted j FULL JOIN brought b ON b.wallet_id = j.wallet_id AND b.source_kind = j.source_kind AND b.source_id = j.source_id
			AND b.credit_id = j.credit_id
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = coalesce(j.wallet_id, b.wallet_id)
		WHERE b.total IS NULL OR j.total IS NULL OR b.total <> j.total
		LIMIT $3`)},
}

// check runs the checks for the wallets that were read, each in its own snapshot.
func (p *verifyPass) check(ctx context.Context) error {
	if p.options.all() {
		if err := p.checkOwners(ctx); err != nil {
			return err
		}
		return p.checkWallets(ctx, nil)
	}
	for wallets := range slices.Chunk(p.walked, verifyWallets) {
		if err := p.checkWallets(ctx, wallets); err != nil {
			return err
		}
	}
	return nil
}

func (p *verifyPass) checkWallets(ctx context.Context, wallets []ids.ID) error {
	for _, check := range verifyChecks {
		var found []Difference
		err := p.read(ctx, func(ctx context.Context, tx appTx) (err error) {
			found, err = collect(ctx, tx, check.statement, readDifference(check.holds), wallets, maxDifferences+1)
			return err
		})
		if err != nil {
			return err
		}
		for _, d := range found {
			p.report(d)
		}
		if err := pauseFor(ctx, p.options.Pause); err != nil {
			return err
		}
	}
	return nil
}

func readDifference(rule string) pgx.RowToFunc[Difference] {
	return func(row pgx.CollectableRow) (Difference, error) {
		d := Difference{Check: rule}
		var wallet *ids.ID
		var identity *string
		err := row.Scan(&wallet, &identity, &d.Detail)
		d.WalletID, d.Identity = orZero(wallet), orZero(identity)
		return d, err
	}
}
