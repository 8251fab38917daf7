package rollups

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store/internal/pg"
)

const (
	// packedDays is how many days one run packs at most, each in a transaction.
	packedDays = 100
	// packedFeatures is how many features are packed at once. Their values are in memory.
	packedFeatures = 50
)

var (
	nextDayOfValues = pg.Declare("find next day of values", `
		SELECT day FROM usage_values WHERE app_id = $1 AND day >= $2 ORDER BY day LIMIT 1`)

	namesOfDay = pg.Declare("list dimensions of a day", `
		SELECT name FROM usage_values WHERE app_id = $1 AND day = $2 GROUP BY name ORDER BY name`)

	featuresOfDay = pg.Declare("list features of a dimension on a day", `
		SELECT feature_id FROM usage_dimensions WHERE app_id = $1 AND name = $2 AND day = $3 GROUP BY feature_id`)

	valuesOfDay = pg.Declare("select values of a day", `
		SELECT d.value, d.feature_id, d.credit_id, d.events, d.deduplicated, d.quantity::text, d.included::text, d.charged_nanocredits::text
		FROM usage_dimensions d WHERE d.app_id = $1 AND d.name = $2 AND d.day = $3 AND d.feature_id = ANY ($4)`)

	addPacks = pg.Declare("add packed values of a day", `
		INSERT INTO usage_value_days (app_id, name, day, feature_id, credit_id, org_id, events, deduplicated, quantity, included, charged_nanocredits, packed)
		SELECT s.app_id, e.name, e.day, e.feature_id, e.credit_id, s.org_id, e.events, e.deduplicated, e.quantity, e.included, e.charged, e.packed
		FROM app_state s CROSS JOIN unnest(@names::text[], @days::bigint[], @feature_ids::uuid[], @credit_ids::uuid[],
			@events::bigint[], @deduplicated::bigint[], @quantities::text[]::numeric[], @included::text[]::numeric[], @charged::text[]::numeric[], @packs::bytea[])
			AS e (name, day, feature_id, credit_id, events, deduplicated, quantity, included, charged, packed)
		WHERE s.app_id = $1`)

	setPacked = pg.Declare("set packed days of usage", `
		UPDATE usage_progress SET values_until = $2 WHERE app_id = $1`)
)

// packDays packs the values of days that are final.
func (a App) packDays(ctx context.Context) error {
	return a.inPortions(ctx, packedDays, func(ctx context.Context, tx *pg.Tx, s settled, end int64) (more bool, err error) {
		if s.Values >= end {
			return false, nil
		}
		days, err := pg.Collect(ctx, tx, nextDayOfValues, pgx.RowTo[int64], s.Values)
		if err != nil {
			return false, err
		}
		if len(days) == 0 || days[0] >= end {
			return false, tx.Exec(ctx, setPacked, 1, end)
		}
		if err := packDay(ctx, tx, days[0]); err != nil {
			return false, err
		}
		return true, tx.Exec(ctx, setPacked, 1, metering.DayOf(days[0]).End)
	})
}

func packDay(ctx context.Context, tx *pg.Tx, day int64) error {
	names, err := pg.Collect(ctx, tx, namesOfDay, pgx.RowTo[string], day)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := packName(ctx, tx, name, day); err != nil {
			return err
		}
	}
	return nil
}

// packName packs the values of each feature, and those of all together.
func packName(ctx context.Context, tx *pg.Tx, name string, day int64) error {
	features, err := pg.Collect(ctx, tx, featuresOfDay, pgx.RowTo[ids.ID], name, day)
	if err != nil {
		return err
	}
	together := packing{}
	for some := range slices.Chunk(features, packedFeatures) {
		packs := packing{}
		read := func(row pgx.CollectableRow) error { return packs.read(row, together) }
		if err := pg.Each(ctx, tx, valuesOfDay, read, name, day, some); err != nil {
			return err
		}
		if err := packs.write(ctx, tx, name, day); err != nil {
			return err
		}
	}
	return together.write(ctx, tx, name, day)
}

// packGroup is the feature, or zero for all together, and the credit of a pack.
type packGroup struct{ feature, credit ids.ID }

// packing adds up the values of a name on a day.
type packing map[packGroup]map[string]rollup.Sums

// read adds a row to its feature, and to all features together.
func (p packing) read(row pgx.CollectableRow, together packing) error {
	var g packGroup
	var value string
	var r sumRow
	if err := row.Scan(&value, &g.feature, &g.credit, &r.events, &r.deduplicated, &r.quantity, &r.included, &r.charged); err != nil {
		return err
	}
	found := r.sums()
	p.add(g, value, found)
	together.add(packGroup{credit: g.credit}, value, found)
	return nil
}

func (p packing) add(g packGroup, value string, s rollup.Sums) {
	if p[g] == nil {
		p[g] = map[string]rollup.Sums{}
	}
	p[g][value] = p[g][value].Add(s)
}

func (p packing) write(ctx context.Context, tx *pg.Tx, name string, day int64) error {
	var c columns
	var names []string
	var packs [][]byte
	for g, values := range p {
		list, all := make([]rollup.ValueSums, 0, len(values)), rollup.Sums{}
		for value, sums := range values {
			list, all = append(list, rollup.ValueSums{Value: value, Sums: sums}), all.Add(sums)
		}
		slices.SortFunc(list, func(a, b rollup.ValueSums) int { return cmp.Compare(a.Value, b.Value) })
		c.add(group{start: day, feature: g.feature, credit: g.credit}, all)
		names, packs = append(names, name), append(packs, rollup.PackValues(list))
	}
	return tx.Exec(ctx, addPacks, int64(len(p)), pg.Named{
		"names": names, "days": c.starts, "feature_ids": c.features, "credit_ids": c.credits, "events": c.events, "deduplicated": c.deduplicated,
		"quantities": c.quantities, "included": c.included, "charged": c.charged, "packs": packs,
	})
}
