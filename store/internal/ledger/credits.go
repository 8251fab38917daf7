package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/metering"
	"purser/store/internal/pg"
)

var selectCredit = pg.Declare("select credit", `
		SELECT id, key, name, unit, revision, created_at
		FROM credits WHERE app_id = $1 AND key = $2`)

func ReadCredit(row pgx.CollectableRow) (c metering.Credit, err error) {
	err = row.Scan(&c.ID, &c.Key, &c.Name, &c.Unit, &c.Revision, &c.CreatedAt)
	return c, err
}

func (tx Tx) Credit(ctx context.Context, key string) (metering.Credit, error) {
	return pg.Find(ctx, tx, selectCredit, ReadCredit, fault.New(fault.CreditNotFound), key)
}
