package verify

import (
	"context"
	"math"
	"slices"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

var (
	verifyReadEvents = pg.Declare("verify read events", `
		SELECT `+pg.Prefixed("e", verifiedEventColumns)+`
		FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS t (wallet_id, after, upto) CROSS JOIN LATERAL (
			(SELECT `+verifiedEventColumns+`
			FROM usage_events WHERE app_id = $1 AND wallet_id = t.wallet_id AND seq > t.after AND seq <= t.upto
			ORDER BY seq LIMIT $5)
			UNION ALL
			SELECT `+verifiedEventColumns+`
			FROM (
				SELECT`+pg.PackedColumns+`
				FROM `+pg.PackedBlock+`
				WHERE p.app_id = $1 AND p.wallet_id = t.wallet_id AND p.last_seq > t.after AND p.first_seq <= t.upto AND u.seq > t.after AND u.seq <= t.upto
				ORDER BY u.seq LIMIT $5
			) packed) e`)

	verifyReadJournal = pg.Declare("verify read journal", `
		SELECT e.wallet_id, e.seq, e.org_id, e.id, e.kind, e.credit_id, e.size, e.out, e.balance_after, e.debt_after,
			e.idempotency_key, e.created_at, e.source_kind, e.source_id,
			e.kind <> 'adjustment' OR EXISTS (SELECT 1 FROM adjustments a WHERE a.app_id = $1 AND a.entry_id = e.id),
			e.source_id IS NULL OR EXISTS (SELECT 1 FROM payment_credits p
				WHERE p.app_id = $1 AND p.source_kind = e.source_kind AND p.source_id = e.source_id AND p.credit_id = e.credit_id),
			v.amount_nanocredits, v.whole, v.price_number, v.quantity, v.allowance_start, v.allowance_end, v.period_start
		FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS t (wallet_id, after, upto) CROSS JOIN LATERAL (
			SELECT wallet_id, seq, org_id, id, kind, credit_id, abs(delta_nanocredits) AS size, delta_nanocredits < 0 AS out,
				balance_after, debt_after, idempotency_key, created_at, source_kind, source_id
			FROM journal WHERE app_id = $1 AND wallet_id = t.wallet_id AND seq > t.after AND seq <= t.upto
			ORDER BY seq LIMIT $5) e LEFT JOIN LATERAL (
			SELECT r.amount_nanocredits, r.whole, u.price_number, u.quantity, u.allowance_start, u.allowance_end, u.period_start
			FROM reversals r JOIN usage_events u ON u.app_id = $1 AND u.event_id = r.event_id AND u.tx_id = r.tx_id AND u.wallet_id = e.wallet_id
			WHERE r.app_id = $1 AND r.entry_id = e.id AND e.kind = 'reversal'
			UNION ALL
			SELECT r.amount_nanocredits, r.whole, x.price_number, x.quantity, x.allowance_start, x.allowance_end, x.period_start
			FROM reversals r CROSS JOIN LATERAL (
				SELECT`+pg.PackedColumns+`
				FROM `+pg.PackedBlock+`
				WHERE p.app_id = $1 AND p.wallet_id = e.wallet_id AND p.first_tx <= r.tx_id AND p.last_tx >= r.tx_id AND u.tx_id = r.tx_id LIMIT 1) x
			WHERE r.app_id = $1 AND r.entry_id = e.id AND e.kind = 'reversal' AND x.event_id = r.event_id) v ON true`)

	verifyReadSealedCounters = pg.Declare("verify read sealed counters", `
		SELECT c.wallet_id, c.feature_id, c.period_start, c.period_end, c.used
		FROM unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[]) AS t (wallet_id, feature_id, period_start, period_end)
		CROSS JOIN LATERAL (
			SELECT wallet_id, feature_id, period_start, period_end, used
			FROM sealed_counters WHERE app_id = $1 AND wallet_id = t.wallet_id AND feature_id = t.feature_id
			  AND period_start = t.period_start AND period_end = t.period_end
			LIMIT 1) c`)
)

// readEntries reads the entries of the ranges, and sorts both kinds into one order.
func (b *verifyWork) readEntries(ctx context.Context) error {
	var wallets []ids.ID
	var after, upto []int64
	for _, r := range b.ranges {
		wallets, after = append(wallets, r.wallet), append(after, r.proof.seq)
		if r.proof.done {
			upto = append(upto, math.MaxInt64) // also what should not be there
		} else {
			upto = append(upto, r.proof.seq+b.pass.options.Batch)
		}
	}
	b.entriesOf = make(map[ids.ID][]verifiedEntry, len(wallets))
	prices := b.pass.catalog
	missing := false
	err := b.rows(ctx, verifyReadEvents, func(r *wire.Row) {
		var e verifiedEntry
		e.readEvent(r, b.pass.app.app.Scope.OrgID)
		if _, known := prices.prices[e.priceNumber]; !known || !prices.keys[e.keyID] {
			missing = true
		}
		b.entriesOf[e.wallet] = append(b.entriesOf[e.wallet], e)
	}, wallets, after, upto, 4*b.pass.options.Batch)
	if err != nil {
		return err
	}
	journal := false
	err = b.rows(ctx, verifyReadJournal, func(r *wire.Row) {
		var e verifiedEntry
		e.readJournal(r)
		b.checkSource(&e, r.Bool(), r.Bool())
		e.readReversal(r)
		if _, known := prices.prices[e.priceNumber]; e.reversed.set && !known {
			missing = true
		}
		b.entriesOf[e.wallet] = append(b.entriesOf[e.wallet], e)
		journal = true
	}, wallets, after, upto, 4*b.pass.options.Batch)
	if err != nil {
		return err
	}
	// A price or a key is older than the first event that names it, so one that was
	// made since the pass began is in this snapshot.
	if missing {
		if err := b.pass.catalog.load(ctx, b.tx); err != nil {
			return err
		}
	}
	for _, entries := range b.entriesOf {
		if journal || len(entries) > 1 {
			slices.SortStableFunc(entries, func(a, b verifiedEntry) int { return compareSeq(&a, &b) })
		}
	}
	return nil
}

func compareSeq(a, b *verifiedEntry) int {
	switch {
	case a.seq < b.seq:
		return -1
	case a.seq > b.seq:
		return 1
	}
	return 0
}

// checkSource holds an entry to the row that it comes from.
func (b *verifyWork) checkSource(e *verifiedEntry, adjusted, paid bool) {
	proof := b.proofs[e.wallet]
	if !adjusted {
		proof.differs(ruleSource, "%s of %s has no record of who adjusted the balance and why", entryName(e), deltaText(e.delta))
	}
	if !paid {
		proof.differs(ruleSource, "%s of %s comes from %s %s, which brought no such credits", entryName(e), deltaText(e.delta), e.sourceKind.value, e.sourceID.value)
	}
}

// counterKeys are arrays of counters to ask for.
type counterKeys struct {
	wallets, features []ids.ID
	starts, ends      []int64
}

func (k *counterKeys) add(wallet ids.ID, key metering.CounterKey) {
	k.wallets, k.features = append(k.wallets, wallet), append(k.features, key.FeatureID)
	k.starts, k.ends = append(k.starts, key.Period.Start), append(k.ends, key.Period.End)
}

// readOpenCounters loads what the sealed events add up to, for the counters that
// the entries of this batch go on with.
func (b *verifyWork) readOpenCounters(ctx context.Context) error {
	var keys counterKeys
	for _, r := range b.ranges {
		if !r.proof.known || r.proof.fromStart {
			continue
		}
		asked := make(map[metering.CounterKey]bool)
		for _, e := range b.entriesOf[r.wallet] {
			price, known := b.pass.catalog.prices[e.priceNumber]
			if !known || !e.counts() {
				continue
			}
			key := metering.CounterKey{FeatureID: price.feature, Period: e.allowancePeriod()}
			if _, open := r.proof.counters[key]; !open && !asked[key] {
				asked[key] = true
				keys.add(r.wallet, key)
			}
		}
	}
	if len(keys.wallets) == 0 {
		return nil
	}
	return b.readCounterRows(ctx, verifyReadSealedCounters, func(wallet ids.ID, key metering.CounterKey, used int64) {
		b.proofs[wallet].counters[key] = used
	}, keys.wallets, keys.features, keys.starts, keys.ends)
}

func (b *verifyWork) readCounterRows(ctx context.Context, s pg.Statement, take func(ids.ID, metering.CounterKey, int64), args ...any) error {
	return b.rows(ctx, s, func(r *wire.Row) {
		wallet, feature := r.ID(), r.ID()
		period := metering.Period{Start: r.Int8(), End: r.Int8()}
		take(wallet, metering.CounterKey{FeatureID: feature, Period: period}, r.Int8())
	}, args...)
}
