package ledger

import "purser/store/internal/pg"

const (
	recordedColumns = `
		SELECT e.tx_id, e.event_id, e.wallet_id, e.price_number, e.quantity, e.created_at, e.occurred_at,
			e.period_start, e.period_end, e.deduplicated_from, e.amount_nanocredits, e.quoted_nanocredits, e.entity_id, p.feature_id, p.pricing_mode, x.properties`

	pricesAndProperties = ` CROSS JOIN LATERAL (
			SELECT feature_id, pricing_mode FROM prices WHERE app_id = $1 AND number = e.price_number
			LIMIT 1) p LEFT JOIN LATERAL (
			SELECT properties::text AS properties FROM event_properties WHERE app_id = $1 AND wallet_id = e.wallet_id AND seq = e.seq
			LIMIT 1) x ON true`
)

var (
	// ReadEvents reads recorded events by their ids, those that are not packed.
	ReadEvents = pg.Declare("read events", recordedColumns+`
		FROM unnest($2::bytea[]) AS t (event_id) CROSS JOIN LATERAL (
			SELECT tx_id, event_id, wallet_id, price_number, quantity, created_at, occurred_at,
				period_start, period_end, deduplicated_from, amount_nanocredits, quoted_nanocredits, entity_id, seq
			FROM usage_events WHERE app_id = $1 AND event_id = t.event_id
			LIMIT 1) e`+pricesAndProperties)

	// ReadPacked reads packed events by their ids, with the columns of ReadEvents.
	ReadPacked = pg.Declare("read packed events", recordedColumns+`
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (`+pg.PackedByID+`) e`+pricesAndProperties)

	// SelectPackedBefore reads the time before which ids may be packed. It is part of the
	// catalog: a run of packing advances the epoch.
	SelectPackedBefore = pg.Declare("select time of packed events", `
		SELECT coalesce(max(r.before), 0) FROM packed_runs r WHERE r.app_id = $1`)
)
