package rollups

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering/rollup"
	"purser/store/internal/pg"
)

var (
	// Values are in the order of their hashes, which have one length however long they are.
	sumDimension = pg.Declare("sum usage by dimension", `
		SELECT b.bucket, b.feature_id, b.credit_id, b.value, b.hash, b.events, b.deduplicated, b.quantity, b.included, b.charged
		FROM (
			SELECT width_bucket(t.day, $4::bigint[]) AS bucket, CASE WHEN $6::boolean THEN t.feature_id END AS feature_id, t.credit_id, t.value,
				encode(substring(sha256(convert_to(t.value, 'UTF8')) FOR 16), 'hex')::uuid AS hash,
				sum(t.events)::bigint AS events, sum(t.deduplicated)::bigint AS deduplicated, sum(t.quantity)::text AS quantity,
				sum(t.included)::text AS included, sum(t.charged_nanocredits)::text AS charged
			FROM usage_dimensions t
			WHERE t.app_id = $1 AND t.name = $7 AND t.day >= $2 AND t.day < $3 AND ($5::uuid IS NULL OR t.feature_id = $5)
			GROUP BY 1, 2, 3, 4
		) b
		WHERE (b.bucket, coalesce(b.feature_id, '00000000-0000-0000-0000-000000000000'), b.credit_id, b.hash) > ($8::int, $9::uuid, $10::uuid, $11::uuid)
		ORDER BY b.bucket, b.feature_id, b.credit_id, b.hash LIMIT $12`)

	// It goes from name to name along the index.
	listDimensions = pg.Declare("list dimensions", `
		WITH RECURSIVE names AS (
			(SELECT t.name FROM usage_dimensions t WHERE t.app_id = $1 ORDER BY t.name LIMIT 1)
			UNION ALL
			SELECT (SELECT t.name FROM usage_dimensions t WHERE t.app_id = $1 AND t.name > n.name ORDER BY t.name LIMIT 1)
			FROM names n WHERE n.name IS NOT NULL
		)
		SELECT n.name FROM names n WHERE n.name IS NOT NULL LIMIT $2`)
)

// DimensionUsage reads the sums of q.Dimension, at most limit rows that follow one: its
// bucket, feature, credit and hash. The zero row is before all others.
func (a App) DimensionUsage(ctx context.Context, q Query, after Row, limit int) (Usage, error) {
	return a.usage(ctx, q, func(ctx context.Context, tx *pg.Tx, feature *ids.ID, _ settled) ([]Row, error) {
		args := q.args(feature)
		bucket := 0
		if after.Start >= q.Buckets.From() {
			bucket = q.Buckets.Find(after.Start) + 1
			args[0] = after.Start
		}
		return pg.Collect(ctx, tx, sumDimension, func(row pgx.CollectableRow) (Row, error) {
			var r sumRow
			var value string
			var hash ids.ID
			err := row.Scan(&r.bucket, &r.feature, &r.credit, &value, &hash, &r.events, &r.deduplicated, &r.quantity, &r.included, &r.charged)
			found, err := r.row(q.Buckets, err)
			found.Value, found.ValueHash = value, hash
			return found, err
		}, append(args, string(q.Dimension), bucket, after.FeatureID, after.CreditID, after.ValueHash, limit)...)
	})
}

// Dimensions lists what usage was split by, at most limit of them.
func (a App) Dimensions(ctx context.Context, limit int) (list []rollup.Dimension, err error) {
	return pg.ListAll(ctx, a.app, listDimensions, pgx.RowTo[rollup.Dimension], limit)
}
