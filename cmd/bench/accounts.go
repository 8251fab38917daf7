package main

import (
	"context"
	"fmt"
)

// accounts is whether the books are right after all the load.
type accounts struct {
	Accepted      int64 `json:"acceptedEvents"`
	Stored        int64 `json:"storedEvents"`
	Wallets       int64 `json:"wallets"`
	WrongBalances int64 `json:"wrongBalances"`
}

// audit checks every wallet of the run: its balance must be its deposits
// minus its charges.
func (b *bench) audit(ctx context.Context) (a accounts, err error) {
	for _, t := range b.tenants {
		counts, err := b.harness.postgres.numbers(ctx, t.database, t.auditSQL())
		if err != nil {
			return a, err
		}
		a.Accepted += int64(t.accepted)
		a.Stored += counts[0] - int64(t.stored)
		a.Wallets += counts[1]
		a.WrongBalances += counts[2]
	}
	return a, nil
}

func (t *tenant) auditSQL() string {
	return fmt.Sprintf(`
		WITH charges AS (
			SELECT wallet_id, count(*) AS events, sum(amount_nanocredits) AS amount
			FROM usage_events WHERE app_id = '%[1]s' GROUP BY wallet_id
		), deposits AS (
			SELECT wallet_id, sum(delta_nanocredits) AS amount
			FROM journal WHERE app_id = '%[1]s' GROUP BY wallet_id
		)
		SELECT coalesce(sum(c.events), 0), count(*), count(*) FILTER (WHERE
			coalesce(b.amount_nanocredits - b.debt_nanocredits, 0) <> coalesce(d.amount, 0) - coalesce(c.amount, 0))
		FROM wallets w
		LEFT JOIN balances b ON b.app_id = w.app_id AND b.wallet_id = w.id
		LEFT JOIN deposits d ON d.wallet_id = w.id
		LEFT JOIN charges c ON c.wallet_id = w.id
		WHERE w.app_id = '%[1]s'`, t.app)
}

func (a accounts) fault() error {
	switch {
	case a.Stored != a.Accepted:
		return fmt.Errorf("%d events were accepted, but %d are stored", a.Accepted, a.Stored)
	case a.WrongBalances > 0:
		return fmt.Errorf("%d of %d balances are not deposits minus charges", a.WrongBalances, a.Wallets)
	}
	return nil
}
