package rollups

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store/internal/pg"
)

// Query says which sums are read. Amounts of different credits cannot be added, so every
// row is of one credit.
type Query struct {
	Buckets    rollup.Buckets
	FeatureKey string // all when empty
	Identity   string // all when empty
	ByFeature  bool
	ByKey      bool // not for an identity: sums by customer have no API key

	// Dimension splits by entity or property, read by DimensionUsage. Its sums are of all
	// customers and keys.
	Dimension rollup.Dimension
}

// Row is the usage of one group in one bucket.
type Row struct {
	Start     int64 // of the bucket
	FeatureID ids.ID
	CreditID  ids.ID
	KeyID     ids.ID
	WalletID  ids.ID // of WalletUsage
	Value     string // of DimensionUsage and LargestValues
	ValueHash ids.ID // of the value; its order
	rollup.Sums
}

// Usage is what a query found, with the names of what its rows refer to.
type Usage struct {
	Until      int64 // sums are final before this time
	Rows       []Row // by bucket, then by the ids of the group
	Features   map[ids.ID]Named
	Credits    map[ids.ID]Named
	Keys       map[ids.ID]Named
	Identities map[ids.ID]string // of WalletUsage
}

// Named is how a feature, a credit or an API key is called.
type Named struct{ Key, Name, Unit string }

const (
	// sumColumns are read by readSums.
	sumColumns = `sum(t.events)::bigint AS events, sum(t.deduplicated)::bigint AS deduplicated, sum(t.quantity)::text AS quantity, sum(t.included)::text AS included, sum(t.charged_nanocredits)::text AS charged`

	// A page has the groups that follow one, in their order. They are added up first: asked
	// for an order, Postgres would sort what it adds up, which takes half as long again.
	pageOfSums = `
		SELECT b.bucket, b.feature_id, b.credit_id, b.key_id, b.events, b.deduplicated, b.quantity, b.included, b.charged
		FROM (`
	followingSums = `
		) b
		WHERE (b.bucket, coalesce(b.feature_id, '00000000-0000-0000-0000-000000000000'), b.credit_id, coalesce(b.key_id, '00000000-0000-0000-0000-000000000000'))
			> (@after_bucket::int, @after_feature::uuid, @after_credit::uuid, @after_key::uuid)
		ORDER BY b.bucket, b.feature_id, b.credit_id, b.key_id LIMIT @limit`
)

var (
	selectUntil = pg.Declare("select settled usage", `
		SELECT until, days_until, values_until, revenue_until FROM usage_progress WHERE app_id = $1`)

	// Days that were added up are read as such, and the rest by hour (rollup.Parts): an
	// offset of 0 keeps Postgres from joining whole tables. What is left of a group is zero
	// when all its hours are taken off.
	sumTotals = pg.Declare("sum usage", pageOfSums+`
		SELECT width_bucket(t.at, @starts::bigint[]) AS bucket, CASE WHEN @by_feature::boolean THEN t.feature_id END AS feature_id, t.credit_id,
			CASE WHEN @by_key::boolean THEN t.key_id END AS key_id, `+sumColumns+`
		FROM (
			SELECT d.day + 43200000 AS at, d.feature_id, d.credit_id, d.key_id, d.events, d.deduplicated, d.quantity, d.included, d.charged_nanocredits
			FROM unnest(@days_from::bigint[], @days_to::bigint[]) AS r (first, last) CROSS JOIN LATERAL (
				SELECT x.day, x.feature_id, x.credit_id, x.key_id, x.events, x.deduplicated, x.quantity, x.included, x.charged_nanocredits
				FROM usage_total_days x WHERE x.app_id = $1 AND x.day >= r.first AND x.day < r.last OFFSET 0) d
			UNION ALL
			SELECT h.hour, h.feature_id, h.credit_id, h.key_id, h.events, h.deduplicated, h.quantity, h.included, h.charged_nanocredits
			FROM unnest(@hours_from::bigint[], @hours_to::bigint[]) AS r (first, last) CROSS JOIN LATERAL (
				SELECT x.hour, x.feature_id, x.credit_id, x.key_id, x.events, x.deduplicated, x.quantity, x.included, x.charged_nanocredits
				FROM usage_totals x WHERE x.app_id = $1 AND x.hour >= r.first AND x.hour < r.last OFFSET 0) h
			UNION ALL
			SELECT l.hour - l.hour % 86400000 + 43200000, l.feature_id, l.credit_id, l.key_id, -l.events, -l.deduplicated, -l.quantity, -l.included, -l.charged_nanocredits
			FROM unnest(@less_from::bigint[], @less_to::bigint[]) AS r (first, last) CROSS JOIN LATERAL (
				SELECT x.hour, x.feature_id, x.credit_id, x.key_id, x.events, x.deduplicated, x.quantity, x.included, x.charged_nanocredits
				FROM usage_totals x WHERE x.app_id = $1 AND x.hour >= r.first AND x.hour < r.last OFFSET 0) l
		) t
		WHERE @feature::uuid IS NULL OR t.feature_id = @feature
		GROUP BY 1, 2, 3, 4
		HAVING sum(t.events) <> 0`+followingSums)

	sumWallet = pg.Declare("sum usage of a wallet", pageOfSums+`
		SELECT width_bucket(t.hour, @starts::bigint[]) AS bucket, CASE WHEN @by_feature::boolean THEN t.feature_id END AS feature_id, t.credit_id, NULL::uuid AS key_id, `+sumColumns+`
		FROM usage_hours t
		WHERE t.app_id = $1 AND t.wallet_id = @wallet AND t.hour >= @from AND t.hour < @end AND (@feature::uuid IS NULL OR t.feature_id = @feature)
		GROUP BY 1, 2, 3`+followingSums)

	// The months say who was active; each month is read in the order of wallets, as far
	// as the page needs.
	activeWallets = pg.Declare("list wallets with usage", `
		SELECT DISTINCT a.wallet_id
		FROM unnest($2::bigint[]) AS m (month) CROSS JOIN LATERAL (
			SELECT u.wallet_id FROM usage_months u WHERE u.app_id = $1 AND u.month = m.month AND u.wallet_id >= $3
			GROUP BY u.wallet_id ORDER BY u.wallet_id LIMIT $4
		) a
		ORDER BY a.wallet_id LIMIT $4`)

	sumWallets = pg.Declare("sum usage by wallet", `
		SELECT w.wallet_id, b.bucket, b.feature_id, b.credit_id, b.events, b.deduplicated, b.quantity, b.included, b.charged
		FROM unnest($7::uuid[]) AS w (wallet_id) CROSS JOIN LATERAL (
			SELECT width_bucket(t.hour, $4::bigint[]) AS bucket, CASE WHEN $6::boolean THEN t.feature_id END AS feature_id, t.credit_id, `+sumColumns+`
			FROM usage_hours t
			WHERE t.app_id = $1 AND t.wallet_id = w.wallet_id AND t.hour >= $2 AND t.hour < $3 AND ($5::uuid IS NULL OR t.feature_id = $5)
			GROUP BY 1, 2, 3
		) b
		WHERE (w.wallet_id, b.bucket, coalesce(b.feature_id, '00000000-0000-0000-0000-000000000000'), b.credit_id) > ($8::uuid, $9::int, $10::uuid, $11::uuid)
		ORDER BY 1, 2, 3, 4 LIMIT $12`)

	selectFeatureID = pg.Declare("select id of a feature", `
		SELECT id FROM features WHERE app_id = $1 AND key = $2`)

	selectWalletID = pg.Declare("select id of a wallet", `
		SELECT id FROM wallets WHERE app_id = $1 AND identity = $2`)

	nameFeatures = pg.Declare("name features", `
		SELECT id, key, name, unit FROM features WHERE app_id = $1 AND id = ANY ($2)`)

	nameCredits = pg.Declare("name credits", `
		SELECT id, key, name, unit FROM credits WHERE app_id = $1 AND id = ANY ($2)`)

	nameKeys = pg.Declare("name keys", `
		SELECT id, last_four, name, '' FROM api_keys WHERE app_id = $1 AND id = ANY ($2)`)

	nameWallets = pg.Declare("name wallets", `
		SELECT id, identity FROM wallets WHERE app_id = $1 AND id = ANY ($2)`)
)

// Usage reads the sums of all customers, or of one: at most limit rows that follow one,
// its bucket, feature, credit and key. The zero row is before all others.
func (a App) Usage(ctx context.Context, q Query, after Row, limit int) (Usage, error) {
	return a.usage(ctx, q, func(ctx context.Context, tx *pg.Tx, feature *ids.ID, settled settled) ([]Row, error) {
		rest := q.Buckets
		if i := rest.Find(after.Start); i > 0 {
			rest.Starts = rest.Starts[i:]
		}
		statement, args := sumTotals, q.totals(rest, settled.Days)
		if q.Identity != "" {
			wallet, err := pg.Find(ctx, tx, selectWalletID, pgx.RowTo[ids.ID], fault.New(fault.WalletNotFound), q.Identity)
			if err != nil {
				return nil, err
			}
			statement, args = sumWallet, pg.Named{"wallet": wallet, "from": rest.From(), "end": rest.End}
		}
		maps.Copy(args, pg.Named{
			"starts": rest.Starts, "feature": feature, "by_feature": q.ByFeature, "limit": limit,
			"after_bucket": rest.Find(after.Start) + 1, "after_feature": after.FeatureID, "after_credit": after.CreditID, "after_key": after.KeyID,
		})
		return pg.Collect(ctx, tx, statement, func(row pgx.CollectableRow) (Row, error) {
			var r sumRow
			err := row.Scan(&r.bucket, &r.feature, &r.credit, &r.key, &r.events, &r.deduplicated, &r.quantity, &r.included, &r.charged)
			return r.row(rest, err)
		}, args)
	})
}

// usage reads rows in a snapshot, and the names of what they refer to. feature is the one
// that is asked for, or nil for all.
func (a App) usage(ctx context.Context, q Query, rows func(ctx context.Context, tx *pg.Tx, feature *ids.ID, settled settled) ([]Row, error)) (Usage, error) {
	return pg.Return(ctx, a.read, func(ctx context.Context, tx *pg.Tx) (u Usage, err error) {
		settled, err := readSettled(ctx, tx)
		if err != nil {
			return u, err
		}
		u = Usage{Until: settled.Until}
		feature, err := q.feature(ctx, tx)
		if err != nil {
			return u, err
		}
		if u.Rows, err = rows(ctx, tx, feature, settled); err != nil {
			return u, err
		}
		err = u.name(ctx, tx)
		return u, err
	})
}

// WalletUsage reads the sums of each customer that was active, in the order of wallet ids
// from that of a row on: at most limit rows that follow it, of a number of customers. It
// returns the customer after these, or zero at the end.
func (a App) WalletUsage(ctx context.Context, q Query, after Row, customers, limit int) (u Usage, next ids.ID, err error) {
	u, err = a.usage(ctx, q, func(ctx context.Context, tx *pg.Tx, feature *ids.ID, _ settled) ([]Row, error) {
		next = ids.ID{}
		wallets, err := pg.Collect(ctx, tx, activeWallets, pgx.RowTo[ids.ID], months(q.Buckets), after.WalletID, customers+1)
		if err != nil {
			return nil, err
		}
		if len(wallets) > customers {
			wallets, next = wallets[:customers], wallets[customers]
		}
		return pg.Collect(ctx, tx, sumWallets, func(row pgx.CollectableRow) (Row, error) {
			var r sumRow
			err := row.Scan(&r.wallet, &r.bucket, &r.feature, &r.credit, &r.events, &r.deduplicated, &r.quantity, &r.included, &r.charged)
			return r.row(q.Buckets, err)
		}, append(q.args(feature), wallets, after.WalletID, q.Buckets.Find(after.Start)+1, after.FeatureID, after.CreditID, limit)...)
	})
	return u, next, err
}

// read runs work in a snapshot. The planner underestimates how many rows pass the
// policies: it would sort them to add them up, which takes twice as long, and sort a whole
// month to find its largest customers.
func (a App) read(ctx context.Context, work func(context.Context, *pg.Tx) error) error {
	return a.app.Snapshot(ctx, func(ctx context.Context, tx *pg.Tx) error {
		if _, err := tx.Conn.Exec(ctx, "SET LOCAL enable_sort = off"); err != nil {
			return fmt.Errorf("store: usage: %w", err)
		}
		return work(ctx, tx)
	})
}

// settled is the times before which sums are final, days are added up, values of days are
// packed, and payments of days are added up; all 0 before the first run.
type settled struct{ Until, Days, Values, Revenue int64 }

func readSettled(ctx context.Context, tx *pg.Tx) (s settled, err error) {
	list, err := pg.Collect(ctx, tx, selectUntil, pgx.RowToStructByPos[settled])
	if err != nil || len(list) == 0 {
		return s, err
	}
	return list[0], nil
}

// feature is the one that is asked for, or nil for all.
func (q Query) feature(ctx context.Context, tx *pg.Tx) (*ids.ID, error) {
	if q.FeatureKey == "" {
		return nil, nil
	}
	id, err := pg.Find(ctx, tx, selectFeatureID, pgx.RowTo[ids.ID], fault.New(fault.FeatureNotFound), q.FeatureKey)
	return &id, err
}

// args are the parameters that statements share.
func (q Query) args(feature *ids.ID) []any {
	return []any{q.Buckets.From(), q.Buckets.End, q.Buckets.Starts, feature, q.ByFeature}
}

// totals are the parameters that only sumTotals has.
func (q Query) totals(b rollup.Buckets, added int64) pg.Named {
	parts := b.Split(added)
	daysFrom, daysTo := bounds(parts.Days)
	hoursFrom, hoursTo := bounds(parts.Hours)
	lessFrom, lessTo := bounds(parts.Less)
	return pg.Named{
		"by_key":    q.ByKey,
		"days_from": daysFrom, "days_to": daysTo, "hours_from": hoursFrom, "hours_to": hoursTo, "less_from": lessFrom, "less_to": lessTo,
	}
}

// bounds are the starts and the ends of periods.
func bounds(list []metering.Period) (from, to []int64) {
	from, to = make([]int64, len(list)), make([]int64, len(list))
	for i, p := range list {
		from[i], to[i] = p.Start, p.End
	}
	return from, to
}

// months are the months of UTC that the buckets have a part of.
func months(b rollup.Buckets) (list []int64) {
	for month := metering.MonthOf(b.From()); month.Start < b.End; month = metering.MonthOf(month.End) {
		list = append(list, month.Start)
	}
	return list
}

// sumRow is a row as it is stored.
type sumRow struct {
	bucket                      int
	feature, key, wallet        *ids.ID
	credit                      ids.ID
	events, deduplicated        int64
	quantity, included, charged pg.Total
}

func (r sumRow) row(b rollup.Buckets, err error) (Row, error) {
	if err != nil {
		return Row{}, err
	}
	return Row{
		Start: b.Starts[r.bucket-1], FeatureID: pg.OrZero(r.feature), CreditID: r.credit, KeyID: pg.OrZero(r.key), WalletID: pg.OrZero(r.wallet),
		Sums: r.sums(),
	}, nil
}

func (r sumRow) sums() rollup.Sums {
	return rollup.Sums{
		Events: r.events, Deduplicated: r.deduplicated,
		Quantity: metering.Total(r.quantity), Included: metering.Total(r.included), Charged: metering.Total(r.charged),
	}
}

// name reads how the features, credits, keys and wallets of the rows are called.
func (u *Usage) name(ctx context.Context, tx *pg.Tx) (err error) {
	if u.Features, err = u.named(ctx, tx, nameFeatures, func(r Row) ids.ID { return r.FeatureID }); err != nil {
		return err
	}
	if u.Credits, err = u.named(ctx, tx, nameCredits, func(r Row) ids.ID { return r.CreditID }); err != nil {
		return err
	}
	if u.Keys, err = u.named(ctx, tx, nameKeys, func(r Row) ids.ID { return r.KeyID }); err != nil {
		return err
	}
	wallets := distinct(u.Rows, func(r Row) ids.ID { return r.WalletID })
	if len(wallets) == 0 {
		return nil
	}
	u.Identities, err = pg.CollectMap(ctx, tx, nameWallets, func(row pgx.CollectableRow) (id ids.ID, identity string, err error) {
		err = row.Scan(&id, &identity)
		return id, identity, err
	}, wallets)
	return err
}

func (u *Usage) named(ctx context.Context, tx *pg.Tx, s pg.Statement, id func(Row) ids.ID) (map[ids.ID]Named, error) {
	wanted := distinct(u.Rows, id)
	if len(wanted) == 0 {
		return nil, nil
	}
	return pg.CollectMap(ctx, tx, s, func(row pgx.CollectableRow) (id ids.ID, n Named, err error) {
		err = row.Scan(&id, &n.Key, &n.Name, &n.Unit)
		return id, n, err
	}, wanted)
}

// Join adds the names of another page of the same query.
func (u *Usage) Join(other Usage) {
	for _, pair := range []struct {
		into *map[ids.ID]Named
		from map[ids.ID]Named
	}{{&u.Features, other.Features}, {&u.Credits, other.Credits}, {&u.Keys, other.Keys}} {
		*pair.into = joined(*pair.into, pair.from)
	}
	u.Identities = joined(u.Identities, other.Identities)
}

func joined[T any](into, from map[ids.ID]T) map[ids.ID]T {
	if into == nil {
		return from
	}
	maps.Copy(into, from)
	return into
}

// distinct lists each id once, without zero.
func distinct(rows []Row, id func(Row) ids.ID) (list []ids.ID) {
	seen := map[ids.ID]bool{{}: true}
	for _, r := range rows {
		if of := id(r); !seen[of] {
			seen[of] = true
			list = append(list, of)
		}
	}
	return list
}
