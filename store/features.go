package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

const featureColumns = `
	f.id, f.key, f.name, f.unit, f.credit_id, c.key, f.cost_nanocredits, f.quantity_per_unit,
	f.pricing_mode, f.deduplication_period, f.deduplication_locked, f.revision, f.created_at,
	EXISTS (SELECT 1 FROM feature_references r WHERE r.app_id = $1 AND r.feature_id = f.id),
	EXISTS (SELECT 1 FROM feature_references r WHERE r.app_id = $1 AND r.feature_id = f.id AND r.multiplied)`

var (
	insertFeature = pg.Declare("insert feature", pg.Insert("features", `id, org_id, key, name, unit, credit_id, cost_nanocredits,
			quantity_per_unit, pricing_mode, deduplication_period, revision, price_number, created_at`))

	insertPrice = pg.Declare("insert price", pg.Insert("prices", `number, org_id, feature_id, revision, credit_id, cost_nanocredits,
			quantity_per_unit, pricing_mode, created_at`))

	selectFeature = pg.Declare("select feature", `
		SELECT`+featureColumns+`
		FROM features f JOIN credits c ON c.app_id = $1 AND c.id = f.credit_id
		WHERE f.app_id = $1 AND f.key = $2`)

	lockFeature = pg.Declare("lock feature", `
		SELECT f.id FROM features f WHERE f.app_id = $1 AND f.key = $2 FOR NO KEY UPDATE`)

	listFeatures = pg.Declare("list features", `
		SELECT`+featureColumns+`
		FROM features f JOIN credits c ON c.app_id = $1 AND c.id = f.credit_id
		WHERE f.app_id = $1 AND f.id < $2 ORDER BY f.id DESC LIMIT $3`)

	updateFeature = pg.Declare("update feature", `
		UPDATE features SET name = @name, unit = @unit, credit_id = @credit_id, cost_nanocredits = @cost_nanocredits,
			quantity_per_unit = @quantity_per_unit, pricing_mode = @pricing_mode, deduplication_period = @deduplication_period, revision = @revision,
			price_number = @price_number
		WHERE app_id = $1 AND id = @id`)
)

func readFeature(row pgx.CollectableRow) (f metering.Feature, err error) {
	err = row.Scan(&f.ID, &f.Key, &f.Name, &f.Unit, &f.CreditID, &f.CreditKey, (*pg.Amount)(&f.Cost), &f.QuantityPerUnit,
		&f.PricingMode, &f.Deduplication, &f.DeduplicationLocked, &f.Revision, &f.CreatedAt,
		&f.PlanPricingLocked, &f.Multiplied)
	return f, err
}

// CreateFeature keeps a new feature that is priced in the credit it names, and
// gives it with that credit's id.
func (a App) CreateFeature(ctx context.Context, f metering.Feature) (metering.Feature, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (metering.Feature, error) {
		credit, err := tx.Credit(ctx, f.CreditKey)
		if err != nil {
			return f, err
		}
		f.CreditID = credit.ID
		number, err := tx.AdvanceEpoch(ctx)
		if err != nil {
			return f, err
		}
		if err := tx.insertFeature(ctx, f, number); err != nil {
			return f, err
		}
		if err := tx.CheckBound(ctx, ledger.BoundOfFeatures); err != nil {
			return f, err
		}
		return f, tx.Audit(ctx, "feature.create", f.Key, nil, factsOfFeature(f))
	})
}

// insertFeature keeps a new feature and its first price.
func (tx appTx) insertFeature(ctx context.Context, f metering.Feature, number int64) error {
	err := tx.Exec(ctx, insertFeature, 1, pg.Named{
		"id": f.ID, "org_id": tx.Scope.OrgID, "key": f.Key, "name": f.Name, "unit": f.Unit, "credit_id": f.CreditID,
		"cost_nanocredits": pg.Amount(f.Cost), "quantity_per_unit": f.QuantityPerUnit, "pricing_mode": f.PricingMode,
		"deduplication_period": f.Deduplication, "revision": f.Revision, "price_number": number, "created_at": f.CreatedAt,
	})
	if pg.SQLState(err) == pg.UniqueViolation {
		return fault.Newf(fault.AlreadyExists, "A feature with the key %q already exists. Choose another key, or update that feature.", f.Key)
	}
	if err != nil {
		return err
	}
	return tx.insertPrice(ctx, f, number, f.CreatedAt)
}

// updateFeature keeps the new revision of a feature and its price.
func (tx appTx) updateFeature(ctx context.Context, f metering.Feature, number, now int64) error {
	if err := tx.insertPrice(ctx, f, number, now); err != nil {
		return err
	}
	return tx.Exec(ctx, updateFeature, 1, pg.Named{
		"id": f.ID, "name": f.Name, "unit": f.Unit, "credit_id": f.CreditID, "cost_nanocredits": pg.Amount(f.Cost),
		"quantity_per_unit": f.QuantityPerUnit, "pricing_mode": f.PricingMode, "deduplication_period": f.Deduplication,
		"revision": f.Revision, "price_number": number,
	})
}

// insertPrice keeps what a revision of a feature costs, under the number by which
// events name it.
func (tx appTx) insertPrice(ctx context.Context, f metering.Feature, number, now int64) error {
	return tx.Exec(ctx, insertPrice, 1, pg.Named{
		"number": number, "org_id": tx.Scope.OrgID, "feature_id": f.ID, "revision": f.Revision, "credit_id": f.CreditID,
		"cost_nanocredits": pg.Amount(f.Cost), "quantity_per_unit": f.QuantityPerUnit, "pricing_mode": f.PricingMode,
		"created_at": now,
	})
}

func (a App) Feature(ctx context.Context, key string) (metering.Feature, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (metering.Feature, error) { return tx.feature(ctx, key) })
}

func (tx appTx) feature(ctx context.Context, key string) (metering.Feature, error) {
	return pg.Find(ctx, tx, selectFeature, readFeature, fault.New(fault.FeatureNotFound), key)
}

// Features lists features, newest first, and reports whether there are more.
func (a App) Features(ctx context.Context, p Page) (list []metering.Feature, more bool, err error) {
	return pg.PageOf(ctx, a.app, p, listFeatures, readFeature)
}

// UpdateFeature applies a patch and gives the feature as it then is. A patch that
// names another credit has it looked up here.
func (a App) UpdateFeature(ctx context.Context, key string, patch metering.FeaturePatch, now int64) (metering.Feature, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (f metering.Feature, err error) {
		// Locked first and read in a second statement: after a wait for the lock, a
		// join would show the credit of before.
		if _, err := pg.Find(ctx, tx, lockFeature, pgx.RowTo[[16]byte], fault.New(fault.FeatureNotFound), key); err != nil {
			return f, err
		}
		was, err := tx.feature(ctx, key)
		if err != nil {
			return f, err
		}
		if patch.CreditKey != nil {
			credit, err := tx.Credit(ctx, *patch.CreditKey)
			if err != nil {
				return f, err
			}
			patch.CreditID = &credit.ID
		}
		if f, err = was.Patch(patch); err != nil || f == was {
			return f, err
		}
		number, err := tx.AdvanceEpoch(ctx)
		if err != nil {
			return f, err
		}
		if err := tx.updateFeature(ctx, f, number, now); err != nil {
			return f, err
		}
		return f, tx.Audit(ctx, "feature.update", f.Key, factsOfFeature(was), factsOfFeature(f))
	})
}
