package verify

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store/internal/pg"
)

const ruleValues = "packed usage by entity and property is what its rows add up to"

var (
	verifyNextValues = pg.Declare("verify next day of values", `
		SELECT day FROM usage_values WHERE app_id = $1 AND day >= $2 ORDER BY day LIMIT 1`)

	verifyPacks = pg.Declare("verify packed values", `
		SELECT d.name, d.day, d.feature_id, d.credit_id, d.org_id, d.events, d.deduplicated, d.quantity::text, d.included::text, d.charged_nanocredits::text, d.packed
		FROM usage_value_days d
		WHERE d.app_id = $1 AND d.day >= $2 AND d.day < $3`)
)

// checkValues compares the packed days with the rows that they were made of: all of them,
// or those since the last recorded pass and the day before, which may have been packed
// since then.
func (p *verifyPass) checkValues(ctx context.Context) error {
	d := dimensionPass{verifyPass: p}
	from := metering.DayOf(p.usage.fromDay).Start - 24*rollup.Hour
	if p.usage.fromDay == 0 && !p.options.all() {
		return nil // nothing was compared yet: that is for a full pass
	}
	if p.options.all() {
		from = 0
	}
	for from < p.usage.values {
		day, err := p.nextDay(ctx, verifyNextValues, from, p.usage.values-24*rollup.Hour)
		if err != nil {
			return err
		}
		end := day + 24*rollup.Hour // with the days before, which should have none
		if err := p.read(ctx, func(ctx context.Context, tx appTx) error { return d.compareValues(ctx, tx, from, end) }); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// compareValues compares the packs of some days.
func (d *dimensionPass) compareValues(ctx context.Context, tx appTx, from, upto int64) error {
	if err := d.catalog.load(ctx, tx); err != nil {
		return err
	}
	rows, err := d.readStored(ctx, tx, from, upto)
	if err != nil {
		return err
	}
	want := maps.Clone(rows)
	for k, s := range rows {
		k.feature = ids.ID{}
		want[k] = want[k].Add(s)
	}
	packed, err := d.readPacks(ctx, tx, from, upto)
	if err != nil {
		return err
	}
	for _, k := range differing(want, packed) {
		d.report(Difference{Check: ruleValues, Detail: fmt.Sprintf("%s %q on the day %d: packed are %s, the rows make %s", k.dimension, k.value, k.day, sumsText(packed[k]), sumsText(want[k]))})
	}
	return nil
}

// readPacks unpacks days. A pack that cannot be read, or whose columns are not its sum, is
// reported.
func (d *dimensionPass) readPacks(ctx context.Context, tx appTx, from, upto int64) (map[dimensionKey]rollup.Sums, error) {
	packed := map[dimensionKey]rollup.Sums{}
	err := pg.Each(ctx, tx, verifyPacks, func(row pgx.CollectableRow) error {
		var k dimensionKey
		var org ids.ID
		var stored, all rollup.Sums
		var quantity, included, charged string
		var pack []byte
		err := row.Scan(&k.dimension, &k.day, &k.feature, &k.credit, &org, &stored.Events, &stored.Deduplicated, &quantity, &included, &charged, &pack)
		if err != nil {
			return err
		}
		d.checkOrg(org, k.day)
		parseSums(&stored, quantity, included, charged)
		broken := rollup.UnpackValues(pack, func(_ int, v *rollup.ValueSums) {
			k.value = v.Value
			packed[k], all = packed[k].Add(v.Sums), all.Add(v.Sums)
		})
		if broken != nil || all != stored {
			d.report(Difference{Check: ruleValues, Detail: fmt.Sprintf("%s on the day %d: stored are %s, its values make %s", k.dimension, k.day, sumsText(stored), sumsText(all))})
		}
		return nil
	}, from, upto)
	return packed, err
}
