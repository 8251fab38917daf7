package verify

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

var (
	verifyPrices = pg.Declare("verify prices", `
		SELECT number, feature_id, credit_id, pricing_mode, cost_nanocredits, quantity_per_unit
		FROM prices WHERE app_id = $1`)

	verifyFeatures = pg.Declare("verify features", `
		SELECT id, key, deduplication_period, deduplication_locked
		FROM features WHERE app_id = $1`)

	verifyCredits = pg.Declare("verify credits", `
		SELECT id, key FROM credits WHERE app_id = $1`)

	verifyKeys = pg.Declare("verify keys", `
		SELECT id FROM api_keys WHERE app_id = $1`)
)

// verifyCatalog is what events are explained by. It is small beside them, and
// prices never change, so a pass loads it once and again when a new one appears.
type verifyCatalog struct {
	prices   map[int64]verifyPrice
	features map[ids.ID]verifyFeature
	credits  map[ids.ID]string
	keys     map[ids.ID]bool
	used     map[ids.ID]bool // features with an accepted event, as far as the pass has come
}

type verifyPrice struct {
	feature, credit ids.ID
	mode            metering.PricingMode
	cost            metering.Amount
	quantityPerUnit int64
}

type verifyFeature struct {
	key           string
	deduplication metering.Deduplication
	locked        bool
}

func (c *verifyCatalog) load(ctx context.Context, tx appTx) error {
	loaded := verifyCatalog{
		prices: map[int64]verifyPrice{}, features: map[ids.ID]verifyFeature{}, credits: map[ids.ID]string{},
		keys: map[ids.ID]bool{}, used: c.used,
	}
	if loaded.used == nil {
		loaded.used = map[ids.ID]bool{}
	}
	_, err := pg.Collect(ctx, tx, verifyPrices, func(row pgx.CollectableRow) (struct{}, error) {
		var number int64
		var p verifyPrice
		err := row.Scan(&number, &p.feature, &p.credit, &p.mode, (*pg.Amount)(&p.cost), &p.quantityPerUnit)
		loaded.prices[number] = p
		return struct{}{}, err
	})
	if err != nil {
		return err
	}
	_, err = pg.Collect(ctx, tx, verifyFeatures, func(row pgx.CollectableRow) (struct{}, error) {
		var id ids.ID
		var f verifyFeature
		err := row.Scan(&id, &f.key, &f.deduplication, &f.locked)
		loaded.features[id] = f
		return struct{}{}, err
	})
	if err != nil {
		return err
	}
	_, err = pg.Collect(ctx, tx, verifyCredits, func(row pgx.CollectableRow) (struct{}, error) {
		var id ids.ID
		var key string
		err := row.Scan(&id, &key)
		loaded.credits[id] = key
		return struct{}{}, err
	})
	if err != nil {
		return err
	}
	_, err = pg.Collect(ctx, tx, verifyKeys, func(row pgx.CollectableRow) (struct{}, error) {
		var id ids.ID
		err := row.Scan(&id)
		loaded.keys[id] = true
		return struct{}{}, err
	})
	if err != nil {
		return err
	}
	*c = loaded
	return nil
}

// credit is the key of a credit, or its id when there is none.
func (c *verifyCatalog) credit(id ids.ID) string {
	if key, known := c.credits[id]; known {
		return key
	}
	return id.Format(ids.Credit)
}
