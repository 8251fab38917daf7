package rollups

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store/internal/pg"
)

var (
	// Reading events is most of the work, so they are read once and added up for all
	// three tables. A deduplicated event adds no quantity.
	sumEvents = pg.Declare("sum events", `
		SELECT e.wallet_id, e.key_id, e.hour, p.feature_id, p.credit_id, e.events, e.deduplicated, e.quantity::text, e.included::text, e.charged::text, e.entities
		FROM (
			SELECT u.wallet_id, u.key_id, u.price_number, u.created_at - u.created_at % 3600000 AS hour, count(u.entity_id) AS entities, `+addedUp+`
			FROM usage_events u WHERE u.app_id = $1 AND u.tx_id >= $2 AND u.tx_id < $3
			GROUP BY 1, 2, 3, 4) e
		CROSS JOIN LATERAL (SELECT feature_id, credit_id FROM prices WHERE app_id = $1 AND number = e.price_number LIMIT 1) p`)

	addHours = pg.Declare("add usage by hour", `
		INSERT INTO usage_hours (app_id, wallet_id, hour, feature_id, credit_id, org_id, events, deduplicated, quantity, included, charged_nanocredits)
		SELECT s.app_id, e.group_id, e.start, e.feature_id, e.credit_id, s.org_id, `+unnestedSums+`
		ON CONFLICT (app_id, wallet_id, hour, feature_id, credit_id) DO UPDATE SET `+addedTo("usage_hours"))

	addTotals = pg.Declare("add usage of all wallets by hour", `
		INSERT INTO usage_totals (app_id, key_id, hour, feature_id, credit_id, org_id, events, deduplicated, quantity, included, charged_nanocredits)
		SELECT s.app_id, e.group_id, e.start, e.feature_id, e.credit_id, s.org_id, `+unnestedSums+`
		ON CONFLICT (app_id, hour, feature_id, credit_id, key_id) DO UPDATE SET `+addedTo("usage_totals"))

	addMonths = pg.Declare("add usage by month", `
		INSERT INTO usage_months (app_id, wallet_id, month, credit_id, org_id, events, charged_nanocredits)
		SELECT s.app_id, e.wallet_id, e.month, e.credit_id, s.org_id, e.events, e.charged
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::bigint[], $4::uuid[], $5::bigint[], $6::text[]::numeric[])
			AS e (wallet_id, month, credit_id, events, charged)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, month, wallet_id, credit_id) DO UPDATE SET
			events = usage_months.events + excluded.events, charged_nanocredits = usage_months.charged_nanocredits + excluded.charged_nanocredits`)
)

// addedUp are the sums of events u.
const addedUp = `count(*) AS events, count(u.deduplicated_from) AS deduplicated, sum(u.amount_nanocredits) AS charged,
				coalesce(sum(u.quantity) FILTER (WHERE u.deduplicated_from IS NULL), 0) AS quantity,
				coalesce(sum(least(u.quantity, greatest(0, u.allowance_limit - u.allowance_used)))
					FILTER (WHERE u.allowance_limit IS NOT NULL AND u.deduplicated_from IS NULL), 0) AS included`

// unnestedSums are the columns and the rows of columns.named.
const unnestedSums = `e.events, e.deduplicated, e.quantity, e.included, e.charged
		FROM app_state s CROSS JOIN unnest(@groups::uuid[], @starts::bigint[], @feature_ids::uuid[], @credit_ids::uuid[],
			@events::bigint[], @deduplicated::bigint[], @quantities::text[]::numeric[], @included::text[]::numeric[], @charged::text[]::numeric[])
			AS e (group_id, start, feature_id, credit_id, events, deduplicated, quantity, included, charged)
		WHERE s.app_id = $1`

func addedTo(table string) string {
	return fmt.Sprintf(`events = %[1]s.events + excluded.events, deduplicated = %[1]s.deduplicated + excluded.deduplicated,
			quantity = %[1]s.quantity + excluded.quantity, included = %[1]s.included + excluded.included,
			charged_nanocredits = %[1]s.charged_nanocredits + excluded.charged_nanocredits`, table)
}

// group is the key of a stored sum. Its id is of a wallet or of an API key; sums by month
// have no feature.
type group struct {
	id              ids.ID
	start           int64
	feature, credit ids.ID
}

type sums map[group]rollup.Sums

func (s sums) add(g group, more rollup.Sums) { s[g] = s[g].Add(more) }

// addEvents adds the events with ids from one up to another.
func addEvents(ctx context.Context, tx *pg.Tx, from, to ids.ID) error {
	events, entities := int64(0), int64(0)
	rows, err := pg.Collect(ctx, tx, sumEvents, func(row pgx.CollectableRow) (Row, error) { return readEvents(row, &entities) }, from, to)
	if err != nil {
		return err
	}
	hours, totals, months, days := sums{}, sums{}, sums{}, map[int64]bool{}
	for _, r := range rows {
		events += r.Events
		days[metering.DayOf(r.Start).Start] = true
		hours.add(group{r.WalletID, r.Start, r.FeatureID, r.CreditID}, r.Sums)
		totals.add(group{r.KeyID, r.Start, r.FeatureID, r.CreditID}, r.Sums)
		months.add(group{id: r.WalletID, start: rollup.MonthOf(r.Start), credit: r.CreditID}, r.Sums)
	}
	if err := tx.Exec(ctx, addHours, int64(len(hours)), hours.columns().named()); err != nil {
		return err
	}
	if err := tx.Exec(ctx, addTotals, int64(len(totals)), totals.columns().named()); err != nil {
		return err
	}
	c := months.columns()
	if err := tx.Exec(ctx, addMonths, int64(len(months)), c.ids, c.starts, c.credits, c.events, c.charged); err != nil {
		return err
	}
	return addDimensions(ctx, tx, from, to, events, slices.Sorted(maps.Keys(days)), entities > 0)
}

// readEvents also counts the events that name an entity.
func readEvents(row pgx.CollectableRow, entities *int64) (Row, error) {
	var r sumRow
	var wallet, key, feature ids.ID
	var hour, named int64
	err := row.Scan(&wallet, &key, &hour, &feature, &r.credit, &r.events, &r.deduplicated, &r.quantity, &r.included, &r.charged, &named)
	*entities += named
	return Row{Start: hour, FeatureID: feature, CreditID: r.credit, KeyID: key, WalletID: wallet, Sums: r.sums()}, err
}

// columns are sums as arrays of one length.
type columns struct {
	ids, features, credits       []ids.ID
	starts, events, deduplicated []int64
	quantities, included         []string
	charged                      []string
}

func (s sums) columns() (c columns) {
	for g, sum := range s {
		c.add(g, sum)
	}
	return c
}

func (c *columns) add(g group, sum rollup.Sums) {
	c.ids, c.starts, c.features, c.credits = append(c.ids, g.id), append(c.starts, g.start), append(c.features, g.feature), append(c.credits, g.credit)
	c.events, c.deduplicated = append(c.events, sum.Events), append(c.deduplicated, sum.Deduplicated)
	c.quantities, c.included = append(c.quantities, sum.Quantity.String()), append(c.included, sum.Included.String())
	c.charged = append(c.charged, sum.Charged.String())
}

func (c columns) named() pg.Named {
	return pg.Named{
		"groups": c.ids, "starts": c.starts, "feature_ids": c.features, "credit_ids": c.credits, "events": c.events,
		"deduplicated": c.deduplicated, "quantities": c.quantities, "included": c.included, "charged": c.charged,
	}
}
