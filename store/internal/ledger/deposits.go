package ledger

import (
	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

const DepositColumns = `
	j.id, w.identity, j.seq, c.key, j.delta_nanocredits, j.idempotency_key, j.created_at`

// Deposit is credit that came into a wallet: by the caller, from a plan, or paid.
type Deposit struct {
	ID             ids.ID
	Identity       string
	Seq            int64
	CreditKey      string
	Amount         metering.Amount
	IdempotencyKey *string
	CreatedAt      int64
}

func ReadDeposit(row pgx.CollectableRow) (d Deposit, err error) {
	var in pg.Delta
	err = row.Scan(&d.ID, &d.Identity, &d.Seq, &d.CreditKey, &in, &d.IdempotencyKey, &d.CreatedAt)
	d.Amount = in.Amount
	return d, err
}
