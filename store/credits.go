package store

import (
	"context"

	"purser/fault"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

var (
	insertCredit = pg.Declare("insert credit", pg.Insert("credits", `id, org_id, key, name, unit, revision, created_at`))

	lockCredit = pg.Declare("lock credit", `
		SELECT id, key, name, unit, revision, created_at
		FROM credits WHERE app_id = $1 AND key = $2 FOR NO KEY UPDATE`)

	listCredits = pg.Declare("list credits", `
		SELECT id, key, name, unit, revision, created_at
		FROM credits WHERE app_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`)

	updateCredit = pg.Declare("update credit", `
		UPDATE credits SET name = $3, unit = $4, revision = $5
		WHERE app_id = $1 AND id = $2`)
)

// CreateCredit keeps a new credit, unless its key is taken.
func (a App) CreateCredit(ctx context.Context, c metering.Credit) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		if err := tx.InsertBounded(ctx, ledger.BoundOfCredits, func() error { return tx.insertCredit(ctx, c) }); err != nil {
			return err
		}
		return tx.Audit(ctx, "credit.create", c.Key, nil, factsOfCredit(c))
	})
}

func (tx appTx) insertCredit(ctx context.Context, c metering.Credit) error {
	err := tx.Exec(ctx, insertCredit, 1, pg.Named{
		"id": c.ID, "org_id": tx.Scope.OrgID, "key": c.Key, "name": c.Name, "unit": c.Unit, "revision": c.Revision,
		"created_at": c.CreatedAt,
	})
	if pg.SQLState(err) == pg.UniqueViolation {
		return fault.Newf(fault.AlreadyExists, "A credit with the key %q already exists. Choose another key, or update that credit.", c.Key)
	}
	return err
}

func (tx appTx) updateCredit(ctx context.Context, c metering.Credit) error {
	return tx.Exec(ctx, updateCredit, 1, c.ID, c.Name, c.Unit, c.Revision)
}

func (a App) Credit(ctx context.Context, key string) (metering.Credit, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (metering.Credit, error) { return tx.Credit(ctx, key) })
}

// Credits lists credits, newest first, and reports whether there are more.
func (a App) Credits(ctx context.Context, p Page) (list []metering.Credit, more bool, err error) {
	return pg.PageOf(ctx, a.app, p, listCredits, ledger.ReadCredit)
}

// UpdateCredit applies a patch and gives the credit as it then is.
func (a App) UpdateCredit(ctx context.Context, key string, patch metering.CreditPatch) (metering.Credit, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (c metering.Credit, err error) {
		was, err := pg.Find(ctx, tx, lockCredit, ledger.ReadCredit, fault.New(fault.CreditNotFound), key)
		if err != nil {
			return c, err
		}
		if c, err = was.Patch(patch); err != nil || c == was {
			return c, err
		}
		if err := tx.updateCredit(ctx, c); err != nil {
			return c, err
		}
		return c, tx.Audit(ctx, "credit.update", c.Key, factsOfCredit(was), factsOfCredit(c))
	})
}
