package ledger

import "purser/store/internal/pg"

// What the engine and the verification read of counters and billed periods, by their
// keys.
var (
	ReadCounters = pg.Declare("read counters", `
		SELECT c.wallet_id, c.feature_id, c.period_start, c.period_end, c.used
		FROM unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[]) AS t (wallet_id, feature_id, period_start, period_end)
		CROSS JOIN LATERAL (
			SELECT wallet_id, feature_id, period_start, period_end, used
			FROM counters WHERE app_id = $1 AND wallet_id = t.wallet_id AND feature_id = t.feature_id
			  AND period_start = t.period_start AND period_end = t.period_end
			LIMIT 1) c`)

	ReadBilled = pg.Declare("read billed periods", `
		SELECT b.wallet_id, b.feature_id, b.period_start, b.period_end, b.entity_id, b.tx_id
		FROM unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[])
			AS t (wallet_id, feature_id, period_start, period_end, entity_id)
		CROSS JOIN LATERAL (
			SELECT wallet_id, feature_id, period_start, period_end, entity_id, tx_id
			FROM billed_periods WHERE app_id = $1 AND wallet_id = t.wallet_id AND feature_id = t.feature_id
			  AND period_start = t.period_start AND period_end = t.period_end AND entity_id = t.entity_id
			LIMIT 1) b`)
)
