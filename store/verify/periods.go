package verify

import (
	"context"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

var (
	// A subscription without a sale was put there by a program, and its earlier periods
	// are kept nowhere.
	verifyReadPeriods = pg.Declare("verify read periods", `
		SELECT p.wallet_id, p.period_start, p.period_end, p.unsold
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT wallet_id, period_start, period_end, false AS unsold
			FROM provider_payments WHERE app_id = $1 AND wallet_id = t.id AND period_start IS NOT NULL
			UNION ALL
			SELECT wallet_id, period_start, period_end, sale IS NULL
			FROM subscriptions WHERE app_id = $1 AND wallet_id = t.id AND status IN `+ledger.LiveStatuses+`
			UNION ALL
			SELECT wallet_id, period_start, period_end, sale IS NULL
			FROM subscriptions WHERE app_id = $1 AND wallet_id = t.id AND status IN ('incomplete', 'canceled')) p`)

	verifyCountBilled = pg.Declare("verify count billed periods", `
		SELECT t.id, b.billed
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT count(*) AS billed FROM billed_periods WHERE app_id = $1 AND wallet_id = t.id) b`)

	verifyUnbilled = pg.Declare("verify unexplained billed periods", `
		SELECT b.feature_id, b.period_start, b.period_end, b.entity_id, b.tx_id
		FROM billed_periods b
		WHERE b.app_id = $1 AND b.wallet_id = $2
		  AND NOT EXISTS (SELECT 1 FROM usage_events e JOIN prices p ON p.app_id = $1 AND p.number = e.price_number
			WHERE e.app_id = $1 AND e.wallet_id = $2 AND e.tx_id = b.tx_id AND e.deduplicated_from IS NULL
			  AND p.feature_id = b.feature_id AND e.period_start = b.period_start AND e.period_end = b.period_end
			  AND coalesce(e.entity_id, '') = b.entity_id)
		  AND NOT EXISTS (SELECT 1 FROM (
				SELECT`+pg.PackedColumns+`
				FROM `+pg.PackedBlock+`
				WHERE p.app_id = $1 AND p.wallet_id = $2 AND p.first_tx <= b.tx_id AND p.last_tx >= b.tx_id AND u.tx_id = b.tx_id
			) e JOIN prices c ON c.app_id = $1 AND c.number = e.price_number
			WHERE e.deduplicated_from IS NULL AND c.feature_id = b.feature_id AND e.period_start = b.period_start AND e.period_end = b.period_end
			  AND coalesce(e.entity_id, '') = b.entity_id)
		LIMIT $3`)
)

// checkBilled holds every event with a deduplication period to the row that says
// which event was charged for it.
func (b *verifyWork) checkBilled(ctx context.Context) error {
	type billedKey struct {
		wallet ids.ID
		metering.BilledKey
	}
	var keys counterKeys
	var entities []string
	var events []*verifiedEntry
	for _, r := range b.ranges {
		entries := b.entriesOf[r.wallet]
		for i := range entries {
			e := &entries[i]
			price, known := b.pass.catalog.prices[e.priceNumber]
			if !e.event || !known || !e.periodStart.set {
				continue
			}
			keys.add(r.wallet, metering.CounterKey{FeatureID: price.feature, Period: e.period()})
			entities = append(entities, e.entityID.value)
			events = append(events, e)
		}
	}
	if len(events) == 0 {
		return nil
	}
	billed := make(map[billedKey]ids.ID, len(events))
	err := b.rows(ctx, ledger.ReadBilled, func(r *wire.Row) {
		key := billedKey{wallet: r.ID()}
		key.FeatureID = r.ID()
		key.Period = metering.Period{Start: r.Int8(), End: r.Int8()}
		key.EntityID = r.Text()
		billed[key] = r.ID()
	}, keys.wallets, keys.features, keys.starts, keys.ends, entities)
	if err != nil {
		return err
	}
	reversed, err := b.fullReversals(ctx, events)
	if err != nil {
		return err
	}
	for i, e := range events {
		by, found := billed[billedKey{e.wallet, metering.BilledKey{FeatureID: keys.features[i], EntityID: entities[i], Period: e.period()}}]
		want, proof := e.id, b.proofs[e.wallet]
		if !e.original.IsZero() {
			want = e.original
		}
		returned, isReversed := reversed[want]
		proof.misbilled = proof.misbilled || (by != want) != isReversed
		switch {
		case isReversed && by == want:
			proof.differs(ruleBilled, "%s: its period is still billed by %s, which was fully reversed", entryName(e), want.Format(ids.Transaction))
		case isReversed && e.seq > returned:
			proof.differs(ruleDuplicate, "%s was deduplicated after entry %d had reversed the charge of %s", entryName(e), returned, want.Format(ids.Transaction))
		case isReversed:
		case !found:
			proof.differs(ruleBilled, "%s: nothing is billed for its feature, entity %q and period %s, expected %s", entryName(e), entities[i], periodText(e), want.Format(ids.Transaction))
		case by != want:
			proof.differs(ruleBilled, "%s: its period was billed by %s, expected %s", entryName(e), by.Format(ids.Transaction), want.Format(ids.Transaction))
		}
	}
	return nil
}

// checkPeriods explains the periods that come from no calendar: those of the
// wallet's subscriptions, past and present.
func (b *verifyWork) checkPeriods(ctx context.Context) error {
	type explained struct {
		wallet ids.ID
		metering.Period
	}
	type claim struct {
		event  *verifiedEntry
		rule   string
		period metering.Period
	}
	var claims []claim
	var wallets []ids.ID
	for _, r := range b.ranges {
		entries, before := b.entriesOf[r.wallet], len(claims)
		for i := range entries {
			e := &entries[i]
			price, known := b.pass.catalog.prices[e.priceNumber]
			if !e.event || !known {
				continue
			}
			if e.limit.set && e.allowancePeriod() != metering.MonthOf(e.occurred()) {
				claims = append(claims, claim{e, ruleLimitPeriod, e.allowancePeriod()})
			}
			if b.pass.catalog.features[price.feature].deduplication == metering.DeduplicateBilling && r.proof.billing == nil && e.periodStart.set {
				claims = append(claims, claim{e, rulePeriod, e.period()})
			}
		}
		if len(claims) > before {
			wallets = append(wallets, r.wallet)
		}
	}
	if len(claims) == 0 {
		return nil
	}
	periods, unsold := make(map[explained]bool), make(map[ids.ID]bool)
	err := b.rows(ctx, verifyReadPeriods, func(r *wire.Row) {
		wallet := r.ID()
		periods[explained{wallet, metering.Period{Start: r.Int8(), End: r.Int8()}}] = true
		unsold[wallet] = unsold[wallet] || r.Bool()
	}, wallets)
	if err != nil {
		return err
	}
	for _, c := range claims {
		if !periods[explained{c.event.wallet, c.period}] && !unsold[c.event.wallet] {
			b.proofs[c.event.wallet].differs(c.rule, "%s happened at %d and counts from %d to %d, which is no month and no period that the customer had a subscription for",
				entryName(c.event), c.event.occurred(), c.period.Start, c.period.End)
		}
	}
	return nil
}

// countBilled finds billed periods that no event explains. When every charged event
// was found to have its own, there are others only when there are more.
func (b *verifyWork) countBilled(ctx context.Context, wallets []ids.ID) error {
	var more []ids.ID
	err := b.rows(ctx, verifyCountBilled, func(r *wire.Row) {
		wallet, billed := r.ID(), r.Int8()
		if billed != b.proofs[wallet].billed || b.proofs[wallet].misbilled {
			more = append(more, wallet)
		}
	}, wallets)
	if err != nil {
		return err
	}
	for _, wallet := range more {
		err := b.rows(ctx, verifyUnbilled, func(r *wire.Row) {
			feature := b.pass.catalog.features[r.ID()].key
			start, end := r.Int8(), r.Int8()
			b.proofs[wallet].differs(ruleBilled, "%s, entity %q, %d to %d is billed by %s, which is no such event of the wallet",
				feature, r.Text(), start, end, r.ID().Format(ids.Transaction))
		}, wallet, maxDifferences)
		if err != nil {
			return err
		}
	}
	return nil
}
