package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/metering"
)

var (
	insertCredit = declare("insert credit", `
		INSERT INTO credits (app_id, id, org_id, key, name, unit, revision, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`)

	selectCredit = declare("select credit", `
		SELECT id, key, name, unit, revision, created_at
		FROM credits WHERE app_id = $1 AND key = $2`)

	lockCredit = declare("lock credit", `
		SELECT id, key, name, unit, revision, created_at
		FROM credits WHERE app_id = $1 AND key = $2 FOR NO KEY UPDATE`)

	listCredits = declare("list credits", `
		SELECT id, key, name, unit, revision, created_at
		FROM credits WHERE app_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`)

	updateCredit = declare("update credit", `
		UPDATE credits SET name = $3, unit = $4, revision = $5
		WHERE app_id = $1 AND id = $2`)
)

func readCredit(row pgx.CollectableRow) (c metering.Credit, err error) {
	err = row.Scan(&c.ID, &c.Key, &c.Name, &c.Unit, &c.Revision, &c.CreatedAt)
	return c, err
}

// CreateCredit keeps a new credit, unless its key is taken.
func (a App) CreateCredit(ctx context.Context, c metering.Credit) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		err := tx.exec(ctx, insertCredit, 1, c.ID, a.scope.OrgID, c.Key, c.Name, c.Unit, c.Revision, c.CreatedAt)
		if sqlState(err) == uniqueViolation {
			return fault.Newf(fault.AlreadyExists, "A credit with the key %q already exists. Choose another key, or update that credit.", c.Key)
		}
		if err != nil {
			return err
		}
		return tx.audit(ctx, "credit.create", c.Key, nil, factsOfCredit(c))
	})
}

// Credit reads one credit.
func (a App) Credit(ctx context.Context, key string) (c metering.Credit, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		c, err = tx.credit(ctx, key)
		return err
	})
	return c, err
}

func (tx appTx) credit(ctx context.Context, key string) (metering.Credit, error) {
	return find(ctx, tx, selectCredit, readCredit, fault.New(fault.CreditNotFound), key)
}

// Credits lists credits, newest first, and reports whether there are more.
func (a App) Credits(ctx context.Context, p Page) (list []metering.Credit, more bool, err error) {
	return pageOf(ctx, a, p, listCredits, readCredit)
}

// UpdateCredit applies a patch and gives the credit as it then is.
func (a App) UpdateCredit(ctx context.Context, key string, patch metering.CreditPatch) (c metering.Credit, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		was, err := find(ctx, tx, lockCredit, readCredit, fault.New(fault.CreditNotFound), key)
		if err != nil {
			return err
		}
		if c, err = was.Patch(patch); err != nil || c == was {
			return err
		}
		if err := tx.exec(ctx, updateCredit, 1, c.ID, c.Name, c.Unit, c.Revision); err != nil {
			return err
		}
		return tx.audit(ctx, "credit.update", c.Key, factsOfCredit(was), factsOfCredit(c))
	})
	return c, err
}
