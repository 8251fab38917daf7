package verify

import (
	"context"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

const ruleReversals = "the reversals of an event never exceed its charge"

var (
	// The entry, the reversal and the event are compared; that an entry has its reversal
	// is found out when it is read.
	verifyReversals = pg.Declare("verify reversals", `
		SELECT w.id, w.identity, 'the reversals of ' || coalesce('transaction ' || u.tx_id, 'a missing event') || ' return ' || r.returned || ' of a charge of '
			|| coalesce(u.amount_nanocredits, 0) || ' nanocredits (' || r.wholes || ' of them in full), and their entries say ' || r.posted
		FROM (
			SELECT x.wallet_id, x.tx_id, x.event_id, sum(x.amount_nanocredits) AS returned, count(*) FILTER (WHERE x.whole) AS wholes,
				coalesce(sum(j.delta_nanocredits) FILTER (WHERE j.kind = 'reversal' AND j.wallet_id = x.wallet_id), 0) AS posted
			FROM reversals x LEFT JOIN journal j ON j.app_id = $1 AND j.id = x.entry_id
			WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+`
			GROUP BY x.wallet_id, x.tx_id, x.event_id
		) r
		LEFT JOIN LATERAL (
			SELECT tx_id, amount_nanocredits FROM usage_events WHERE app_id = $1 AND event_id = r.event_id AND tx_id = r.tx_id AND wallet_id = r.wallet_id
				AND deduplicated_from IS NULL
			UNION ALL
			SELECT x.tx_id, x.amount_nanocredits FROM (
				SELECT`+pg.PackedColumns+`
				FROM `+pg.PackedBlock+`
				WHERE p.app_id = $1 AND p.wallet_id = r.wallet_id AND p.first_tx <= r.tx_id AND p.last_tx >= r.tx_id AND u.tx_id = r.tx_id LIMIT 1) x
			WHERE x.event_id = r.event_id AND x.deduplicated_from IS NULL
		) u ON true
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = r.wallet_id
		WHERE u.tx_id IS NULL OR r.returned > u.amount_nanocredits OR r.posted <> r.returned
		  OR r.wholes <> (r.returned = u.amount_nanocredits)::int
		LIMIT $3`)

	verifyFullReversals = pg.Declare("verify full reversals", `
		SELECT r.tx_id, j.seq
		FROM unnest($2::uuid[], $3::uuid[]) AS t (wallet_id, tx_id) CROSS JOIN LATERAL (
			SELECT tx_id, entry_id FROM reversals WHERE app_id = $1 AND wallet_id = t.wallet_id AND tx_id = t.tx_id AND whole
			LIMIT 1) r
		JOIN journal j ON j.app_id = $1 AND j.id = r.entry_id`)
)

// readReversal reads what a reversal returned, and the event as far as its counters
// depend on it.
func (e *verifiedEntry) readReversal(r *wire.Row) {
	e.reversed = optionalAmount(r)
	e.whole = r.Bool()
	e.priceNumber, e.quantity = r.Int8(), r.Int8()
	e.limitStart, e.limitEnd, e.periodStart = optionalInt(r), optionalInt(r), optionalInt(r)
}

// counts reports whether the entry moves a counter: an event with an allowance, or the
// full reversal of one.
func (e *verifiedEntry) counts() bool {
	if e.event {
		return e.limit.set
	}
	return e.whole && e.limitStart.set
}

// takeReversal holds a reversal to its record, and takes what a full one returns from
// the counters.
func (p *walletProof) takeReversal(e *verifiedEntry, catalog *verifyCatalog) {
	if !e.reversed.set || e.reversed.value != e.delta.Amount {
		p.differs(ruleSource, "%s of %s has no record of which event of the wallet it reverses", entryName(e), deltaText(e.delta))
		return
	}
	price, known := catalog.prices[e.priceNumber]
	if !known || price.credit != e.credit {
		p.differs(ruleSource, "%s returns %s, but its event was charged in %s", entryName(e), catalog.credit(e.credit), catalog.credit(price.credit))
		return
	}
	if !e.whole {
		return
	}
	if e.periodStart.set {
		p.billed--
	}
	if !e.counts() {
		return
	}
	key := metering.CounterKey{FeatureID: price.feature, Period: e.allowancePeriod()}
	if before, met := p.counters[key]; met || p.known {
		p.counters[key] = before - e.quantity
		p.touched[key] = true
	}
}

// fullReversals finds which of the charged events behind these were fully reversed, and
// by which entry of the wallet.
func (b *verifyWork) fullReversals(ctx context.Context, events []*verifiedEntry) (map[ids.ID]int64, error) {
	wallets, transactions := make([]ids.ID, len(events)), make([]ids.ID, len(events))
	for i, e := range events {
		wallets[i], transactions[i] = e.wallet, e.id
		if !e.original.IsZero() {
			transactions[i] = e.original
		}
	}
	reversed := make(map[ids.ID]int64)
	err := b.rows(ctx, verifyFullReversals, func(r *wire.Row) {
		transaction := r.ID()
		reversed[transaction] = r.Int8()
	}, wallets, transactions)
	return reversed, err
}
