package rollups

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering/rollup"
	"purser/store/internal/pg"
)

// partEvents is how many events have their labels added up at once: each has up to nine.
const partEvents = 5_000

var (
	anyProperties = pg.Declare("find properties", `
		SELECT 1 FROM event_properties WHERE app_id = $1 LIMIT 1`)

	endsOfParts = pg.Declare("select ends of parts of events", `
		SELECT tx_id FROM (
			SELECT u.tx_id, row_number() OVER (ORDER BY u.tx_id) AS number
			FROM usage_events u WHERE u.app_id = $1 AND u.tx_id >= $2 AND u.tx_id < $3) numbered
		WHERE number % $4 = 0 ORDER BY tx_id`)

	sumEntities = pg.Declare("sum events by entity", `
		SELECT e.name, e.value, e.day, p.feature_id, p.credit_id, e.events, e.deduplicated, e.quantity::text, e.included::text, e.charged::text
		FROM (
			SELECT 'entity' AS name, u.entity_id AS value, u.price_number, u.created_at - u.created_at % 86400000 AS day, `+addedUp+`
			FROM usage_events u
			WHERE u.app_id = $1 AND u.tx_id >= $2 AND u.tx_id < $3 AND u.entity_id IS NOT NULL
			GROUP BY 1, 2, 3, 4) e
		CROSS JOIN LATERAL (SELECT feature_id, credit_id FROM prices WHERE app_id = $1 AND number = e.price_number LIMIT 1) p`)

	// Each event looks its properties up: a join could read those of all events.
	sumProperties = pg.Declare("sum events by property", `
		SELECT e.name, e.value, e.day, p.feature_id, p.credit_id, e.events, e.deduplicated, e.quantity::text, e.included::text, e.charged::text
		FROM (
			SELECT 'property:' || x.key AS name, x.value AS value, u.price_number, u.created_at - u.created_at % 86400000 AS day, `+addedUp+`
			FROM usage_events u
			CROSS JOIN LATERAL (SELECT o.properties FROM event_properties o WHERE o.app_id = $1 AND o.wallet_id = u.wallet_id AND o.seq = u.seq LIMIT 1) l
			CROSS JOIN LATERAL jsonb_each_text(l.properties) AS x (key, value)
			WHERE u.app_id = $1 AND u.tx_id >= $2 AND u.tx_id < $3
			GROUP BY 1, 2, 3, 4) e
		CROSS JOIN LATERAL (SELECT feature_id, credit_id FROM prices WHERE app_id = $1 AND number = e.price_number LIMIT 1) p`)

	selectValues = pg.Declare("select values of dimensions", `
		SELECT day, name, value FROM usage_values WHERE app_id = $1 AND day = ANY ($2)`)

	addValues = pg.Declare("add values of dimensions", `
		INSERT INTO usage_values (app_id, day, name, value, org_id)
		SELECT s.app_id, v.day, v.name, v.value, s.org_id
		FROM app_state s CROSS JOIN unnest($2::bigint[], $3::text[], $4::text[]) AS v (day, name, value)
		WHERE s.app_id = $1`)

	addToDimensions = pg.Declare("add usage by dimension", `
		INSERT INTO usage_dimensions (app_id, name, day, feature_id, credit_id, value, org_id, events, deduplicated, quantity, included, charged_nanocredits)
		SELECT s.app_id, e.name, e.day, e.feature_id, e.credit_id, e.value, s.org_id, e.events, e.deduplicated, e.quantity, e.included, e.charged
		FROM app_state s CROSS JOIN unnest(@names::text[], @values::text[], @days::bigint[], @feature_ids::uuid[], @credit_ids::uuid[],
			@events::bigint[], @deduplicated::bigint[], @quantities::text[]::numeric[], @included::text[]::numeric[], @charged::text[]::numeric[])
			AS e (name, value, day, feature_id, credit_id, events, deduplicated, quantity, included, charged)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, name, day, feature_id, credit_id, value) DO UPDATE SET `+addedTo("usage_dimensions"))
)

// dimensionGroup is the key of a stored sum by dimension.
type dimensionGroup struct {
	dimension       rollup.Dimension
	value           string
	day             int64
	feature, credit ids.ID
}

// dimensionSum adds up as rows are read, so it holds the values that have sums of their own
// and no others.
type dimensionSum struct {
	known rollup.Values
	fresh []dimensionGroup // values that were admitted
	sums  map[dimensionGroup]rollup.Sums
}

// addDimensions adds the events with ids from one up to another by entity and property.
// Most events have neither: entities says whether any of these has one.
func addDimensions(ctx context.Context, tx *pg.Tx, from, to ids.ID, events int64, days []int64, entities bool) error {
	properties, err := pg.Collect(ctx, tx, anyProperties, pgx.RowTo[int])
	if err != nil || len(properties) == 0 && !entities {
		return err
	}
	d := dimensionSum{known: rollup.Values{}, sums: map[dimensionGroup]rollup.Sums{}}
	if err := pg.Each(ctx, tx, selectValues, func(row pgx.CollectableRow) error {
		var g dimensionGroup
		err := row.Scan(&g.day, &g.dimension, &g.value)
		d.known.Add(g.day, g.dimension, g.value)
		return err
	}, days); err != nil {
		return err
	}
	var ends []ids.ID
	if events > partEvents {
		if ends, err = pg.Collect(ctx, tx, endsOfParts, pgx.RowTo[ids.ID], from, to, partEvents); err != nil {
			return err
		}
	}
	for _, end := range append(ends, to) {
		if entities {
			if err := pg.Each(ctx, tx, sumEntities, d.read, from, end); err != nil {
				return err
			}
		}
		if len(properties) > 0 {
			if err := pg.Each(ctx, tx, sumProperties, d.read, from, end); err != nil {
				return err
			}
		}
		if err := d.write(ctx, tx); err != nil {
			return err
		}
		from = end
	}
	return nil
}

func (d *dimensionSum) read(row pgx.CollectableRow) error {
	var g dimensionGroup
	var r sumRow
	if err := row.Scan(&g.dimension, &g.value, &g.day, &g.feature, &g.credit, &r.events, &r.deduplicated, &r.quantity, &r.included, &r.charged); err != nil {
		return err
	}
	if d.known.Admit(g.day, g.dimension, g.value) {
		d.fresh = append(d.fresh, g)
	}
	label, counted := d.known.Label(g.day, g.dimension, g.value)
	if !counted {
		return nil
	}
	g.value = label
	d.sums[g] = d.sums[g].Add(r.sums())
	return nil
}

// write adds the sums that were read so far, and forgets them.
func (d *dimensionSum) write(ctx context.Context, tx *pg.Tx) error {
	if len(d.sums) == 0 {
		return nil
	}
	var days []int64
	var names, values []string
	for _, g := range d.fresh {
		days, names, values = append(days, g.day), append(names, string(g.dimension)), append(values, g.value)
	}
	if err := tx.Exec(ctx, addValues, int64(len(d.fresh)), days, names, values); err != nil {
		return err
	}
	var c columns
	names, values = nil, nil
	for g, sum := range d.sums {
		c.add(group{start: g.day, feature: g.feature, credit: g.credit}, sum)
		names, values = append(names, string(g.dimension)), append(values, g.value)
	}
	written := int64(len(d.sums))
	d.fresh, d.sums = nil, map[dimensionGroup]rollup.Sums{}
	return tx.Exec(ctx, addToDimensions, written, pg.Named{
		"names": names, "values": values, "days": c.starts, "feature_ids": c.features, "credit_ids": c.credits, "events": c.events,
		"deduplicated": c.deduplicated, "quantities": c.quantities, "included": c.included, "charged": c.charged,
	})
}
