package verify

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

var (
	verifyPrices = pg.Declare("verify prices", `
		SELECT number, feature_id, credit_id, pricing_mode, cost_nanocredits, quantity_per_unit
		FROM prices WHERE app_id = $1 AND number > $2`)

	verifyFeatures = pg.Declare("verify features", `
		SELECT id, key, deduplication_period, deduplication_locked
		FROM features WHERE app_id = $1`)

	verifyCredits = pg.Declare("verify credits", `
		SELECT id, key FROM credits WHERE app_id = $1`)

	verifyKeys = pg.Declare("verify keys", `
		SELECT id FROM api_keys WHERE app_id = $1`)
)

// verifyCatalog is what events are explained by. It is small beside them. Prices never
// change and are numbered in the order of their commits, so a pass loads each once.
type verifyCatalog struct {
	prices   map[int64]verifyPrice
	newest   int64 // number of a price that was loaded
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
	loaded := verifyCatalog{prices: c.prices, newest: c.newest, used: c.used}
	if loaded.used == nil {
		loaded.used = map[ids.ID]bool{}
		loaded.prices, loaded.newest = map[int64]verifyPrice{}, math.MinInt64
	}
	err := pg.Each(ctx, tx, verifyPrices, func(row pgx.CollectableRow) error {
		var number int64
		var p verifyPrice
		err := row.Scan(&number, &p.feature, &p.credit, &p.mode, (*pg.Amount)(&p.cost), &p.quantityPerUnit)
		loaded.prices[number] = p
		loaded.newest = max(loaded.newest, number)
		return err
	}, loaded.newest)
	if err != nil {
		return err
	}
	loaded.features, err = pg.CollectMap(ctx, tx, verifyFeatures, func(row pgx.CollectableRow) (id ids.ID, f verifyFeature, err error) {
		err = row.Scan(&id, &f.key, &f.deduplication, &f.locked)
		return id, f, err
	})
	if err != nil {
		return err
	}
	loaded.credits, err = pg.CollectMap(ctx, tx, verifyCredits, func(row pgx.CollectableRow) (id ids.ID, key string, err error) {
		err = row.Scan(&id, &key)
		return id, key, err
	})
	if err != nil {
		return err
	}
	loaded.keys, err = pg.CollectMap(ctx, tx, verifyKeys, func(row pgx.CollectableRow) (id ids.ID, exists bool, err error) {
		err = row.Scan(&id)
		return id, true, err
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
