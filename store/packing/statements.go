package packing

import "purser/store/internal/pg"

// packable is what the stored event id of an event u must be: a UUIDv7. The times of ids are
// compared by their range.
const packable = ` length(u.event_id) = 17 AND get_byte(u.event_id, 0) = 0 AND get_byte(u.event_id, 7) >> 4 = 7 AND get_byte(u.event_id, 9) >> 6 = 2`

// recordResult is for metrics. The table is not one of applications: its times are real.
const recordResult = `
	INSERT INTO packing_results (application_id, events, skipped, finished_at) VALUES ($1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
	ON CONFLICT (application_id) DO UPDATE SET events = excluded.events, skipped = excluded.skipped, finished_at = excluded.finished_at`

var (
	lastRun = pg.Declare("packing: last run", `
		SELECT r.run, r.before, r.scanned, r.indexed, r.done, r.events, r.skipped
		FROM packed_runs r WHERE r.app_id = $1 ORDER BY r.run DESC LIMIT 1`)

	selectSettled = pg.Declare("packing: settled usage", `
		SELECT coalesce((SELECT p.until FROM usage_progress p WHERE p.app_id = $1), 0)`)

	insertRun = pg.Declare("packing: insert run", `
		INSERT INTO packed_runs (app_id, run, org_id, before, scanned, indexed, done, last_tx, events, started_at)
		SELECT s.app_id, @run::bigint, s.org_id, @before::bigint, @none::uuid, false, false, @none::uuid, 0, @at::bigint
		FROM app_state s WHERE s.app_id = $1`)

	// The lock keeps two processes from working on one run.
	lockRun = pg.Declare("packing: lock run", `
		SELECT r.scanned, r.indexed, r.done FROM packed_runs r WHERE r.app_id = $1 AND r.run = $2 FOR UPDATE`)

	listIDs = pg.Declare("packing: list ids", `
		SELECT u.event_id, u.wallet_id, u.seq, u.created_at FROM usage_events u
		WHERE u.app_id = $1 AND u.event_id > $2 AND u.event_id < $3 ORDER BY u.event_id LIMIT $4`)

	listIndexed = pg.Declare("packing: list indexed ids", `
		SELECT t.id FROM unnest($2::uuid[]) AS t (id) WHERE EXISTS (`+pg.PackedPlaces+`)`)

	insertIDs = pg.Declare("packing: insert ids", `
		INSERT INTO packed_ids (app_id, run, last_id, org_id, ids, wallet_ids, refs, seqs)
		SELECT s.app_id, @run::bigint, @last_id::uuid, s.org_id, @ids::uuid[], @wallet_ids::uuid[], @refs::smallint[], @seqs::bigint[]
		FROM app_state s WHERE s.app_id = $1`)

	advanceIndex = pg.Declare("packing: advance index", `
		UPDATE packed_runs SET scanned = $3, indexed = $4 WHERE app_id = $1 AND run = $2`)

	listWallets = pg.Declare("packing: list wallets", `
		SELECT w.id, w.identity, w.last_seq,
			coalesce((SELECT s.seq FROM wallet_seals s WHERE s.app_id = $1 AND s.wallet_id = w.id), 0),
			coalesce((SELECT p.last_seq FROM packed_events p WHERE p.app_id = $1 AND p.wallet_id = w.id ORDER BY p.last_seq DESC LIMIT 1), 0)
		FROM wallets w WHERE w.app_id = $1 AND w.id > $2
		ORDER BY w.id LIMIT $3`)

	// The window bounds what is read of a wallet whose ids can't be packed.
	listPackable = pg.Declare("packing: list events of a wallet", `
		SELECT u.seq, u.event_id, u.tx_id
		FROM usage_events u
		WHERE u.app_id = $1 AND u.wallet_id = $2 AND u.seq > $3 AND u.seq <= $4 AND u.created_at < $5 AND u.event_id < $6 AND`+packable+`
		ORDER BY u.seq LIMIT $7`)

	selectNextTime = pg.Declare("packing: select time of the next event", `
		SELECT u.created_at FROM usage_events u WHERE u.app_id = $1 AND u.wallet_id = $2 AND u.seq > $3 ORDER BY u.seq LIMIT 1`)

	// No block is made when one of the events is missing or has another organization.
	insertBlock = pg.Declare("packing: insert block", `
		INSERT INTO packed_events (app_id, org_id, wallet_id, first_seq, last_seq, events, first_tx, last_tx, seqs, tx_ids, event_ids, key_ids, price_numbers,
			quantities, created_ats, amounts, balances_after, occurred_ats, period_starts, period_ends, deduplicated_froms, entity_ids, debts, quoteds, basis_points,
			allowance_limits, allowance_useds, allowance_starts, allowance_ends, allowance_overages)
		SELECT s.app_id, s.org_id, $2::uuid, e.seqs[1], e.seqs[e.events], e.events, e.txs[1], e.txs[e.events], e.seqs, e.tx_ids, e.event_ids, e.key_ids, e.price_numbers,
			e.quantities, e.created_ats, e.amounts, e.balances_after, e.occurred_ats, e.period_starts, e.period_ends, e.deduplicated_froms, e.entity_ids, e.debts, e.quoteds, e.basis_points,
			e.allowance_limits, e.allowance_useds, e.allowance_starts, e.allowance_ends, e.allowance_overages
		FROM app_state s CROSS JOIN LATERAL (
			SELECT count(*)::integer AS events, array_agg(u.seq ORDER BY u.seq) AS seqs, array_agg(u.tx_id ORDER BY u.tx_id) AS txs, array_agg(u.tx_id ORDER BY u.seq) AS tx_ids,
				array_agg(encode(substring(u.event_id FROM 2), 'hex')::uuid ORDER BY u.seq) AS event_ids, array_agg(u.key_id ORDER BY u.seq) AS key_ids,
				array_agg(u.price_number ORDER BY u.seq) AS price_numbers, array_agg(u.quantity ORDER BY u.seq) AS quantities,
				array_agg(u.created_at ORDER BY u.seq) AS created_ats, array_agg(u.amount_nanocredits::numeric ORDER BY u.seq) AS amounts,
				array_agg(u.balance_after::numeric ORDER BY u.seq) AS balances_after,
				CASE WHEN count(u.occurred_at) > 0 THEN array_agg(u.occurred_at ORDER BY u.seq) END AS occurred_ats,
				CASE WHEN count(u.period_start) > 0 THEN array_agg(u.period_start ORDER BY u.seq) END AS period_starts,
				CASE WHEN count(u.period_end) > 0 THEN array_agg(u.period_end ORDER BY u.seq) END AS period_ends,
				CASE WHEN count(u.deduplicated_from) > 0 THEN array_agg(u.deduplicated_from ORDER BY u.seq) END AS deduplicated_froms,
				CASE WHEN count(u.entity_id) > 0 THEN array_agg(u.entity_id ORDER BY u.seq) END AS entity_ids,
				CASE WHEN count(u.debt_after) > 0 THEN array_agg(u.debt_after::numeric ORDER BY u.seq) END AS debts,
				CASE WHEN count(u.quoted_nanocredits) > 0 THEN array_agg(u.quoted_nanocredits::numeric ORDER BY u.seq) END AS quoteds,
				CASE WHEN count(u.basis_points) > 0 THEN array_agg(u.basis_points ORDER BY u.seq) END AS basis_points,
				CASE WHEN count(u.allowance_limit) > 0 THEN array_agg(u.allowance_limit ORDER BY u.seq) END AS allowance_limits,
				CASE WHEN count(u.allowance_used) > 0 THEN array_agg(u.allowance_used ORDER BY u.seq) END AS allowance_useds,
				CASE WHEN count(u.allowance_start) > 0 THEN array_agg(u.allowance_start ORDER BY u.seq) END AS allowance_starts,
				CASE WHEN count(u.allowance_end) > 0 THEN array_agg(u.allowance_end ORDER BY u.seq) END AS allowance_ends,
				CASE WHEN count(u.allowance_overage) > 0 THEN array_agg(u.allowance_overage ORDER BY u.seq) END AS allowance_overages
			FROM usage_events u WHERE u.app_id = $1 AND u.wallet_id = $2 AND u.seq = ANY ($3) AND coalesce(u.org_id, s.org_id) = s.org_id) e
		WHERE s.app_id = $1 AND e.events = cardinality($3::bigint[])`)

	deleteEvents = pg.Declare("packing: delete events", `
		DELETE FROM usage_events WHERE app_id = $1 AND wallet_id = $2 AND seq = ANY ($3)`)

	countMoved = pg.Declare("packing: count moved events", `
		UPDATE packed_runs SET events = events + $3, last_tx = greatest(last_tx, $4::uuid) WHERE app_id = $1 AND run = $2`)

	finishRun = pg.Declare("packing: finish run", `
		UPDATE packed_runs SET done = true, skipped = $3 WHERE app_id = $1 AND run = $2`)

	sumMoved = pg.Declare("packing: sum of moved events", `
		SELECT coalesce(sum(r.events), 0)::bigint FROM packed_runs r WHERE r.app_id = $1`)

	// Its ids are listed: only wallets that were skipped are left. They are not listed a second
	// time under one number: a duplicate is looked up in one block of ids of each run.
	reopenRun = pg.Declare("packing: reopen run", `
		UPDATE packed_runs SET done = false WHERE app_id = $1 AND run = $2`)
)
