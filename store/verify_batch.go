package store

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
)

// Every read of a batch looks its keys up one by one inside LATERAL, so the work is
// that of the wallets at hand whatever the planner knows about the tables.

var (
	// The page is scanned as a whole, and shows the wallets that moved since their
	// seal, or all of them, and always the last one it looked at.
	verifyWalletPage = declare("verify wallet page", `
		WITH page AS (
			SELECT w.id, w.last_seq, coalesce((SELECT s.seq FROM wallet_seals s WHERE s.app_id = $1 AND s.wallet_id = w.id), 0) AS sealed
			FROM wallets w WHERE w.app_id = $1 AND w.id > $2
			ORDER BY w.id LIMIT $3
		)
		SELECT id, last_seq, sealed, (SELECT count(*) FROM page)
		FROM page
		WHERE $4::boolean OR last_seq <> sealed OR id = (SELECT id FROM page ORDER BY id DESC LIMIT 1)
		ORDER BY id`)

	verifySince = declare("verify since", `
		SELECT wallet_id, min(seq)
		FROM (
			SELECT wallet_id, seq FROM journal WHERE app_id = $1 AND id >= $2
			UNION ALL
			SELECT wallet_id, seq FROM usage_events WHERE app_id = $1 AND tx_id >= $2
		) made
		GROUP BY wallet_id`)

	verifyReadWallets = declare("verify read wallets", `
		SELECT w.id, w.identity, w.org_id, w.billing_interval, w.billing_anchor, w.charged, w.last_seq,
			s.seq, s.seal, s.sealed_at, s.billed, s.credit_ids, s.amounts, s.debts
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT id, identity, org_id, billing_interval, billing_anchor, charged, last_seq
			FROM wallets WHERE app_id = $1 AND id = t.id
			LIMIT 1) w LEFT JOIN LATERAL (
			SELECT seq, seal, sealed_at, billed, credit_ids, amounts, debts
			FROM wallet_seals WHERE app_id = $1 AND wallet_id = w.id
			LIMIT 1) s ON true`)

	verifyReadEvents = declare("verify read events", `
		SELECT `+prefixed("e", verifiedEventColumns)+`
		FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS t (wallet_id, after, upto) CROSS JOIN LATERAL (
			SELECT `+verifiedEventColumns+`
			FROM usage_events WHERE app_id = $1 AND wallet_id = t.wallet_id AND seq > t.after AND seq <= t.upto
			ORDER BY seq LIMIT $5) e`)

	verifyReadJournal = declare("verify read journal", `
		SELECT e.wallet_id, e.seq, e.org_id, e.id, e.kind, e.credit_id, e.size, e.out, e.balance_after, e.debt_after,
			e.idempotency_key, e.created_at, e.source_kind, e.source_id,
			e.kind <> 'adjustment' OR EXISTS (SELECT 1 FROM adjustments a WHERE a.app_id = $1 AND a.entry_id = e.id),
			e.source_id IS NULL OR EXISTS (SELECT 1 FROM payment_credits p
				WHERE p.app_id = $1 AND p.source_kind = e.source_kind AND p.source_id = e.source_id AND p.credit_id = e.credit_id)
		FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS t (wallet_id, after, upto) CROSS JOIN LATERAL (
			SELECT wallet_id, seq, org_id, id, kind, credit_id, abs(delta_nanocredits) AS size, delta_nanocredits < 0 AS out,
				balance_after, debt_after, idempotency_key, created_at, source_kind, source_id
			FROM journal WHERE app_id = $1 AND wallet_id = t.wallet_id AND seq > t.after AND seq <= t.upto
			ORDER BY seq LIMIT $5) e`)

	verifyReadBalances = declare("verify read balances", `
		SELECT b.wallet_id, b.credit_id, b.org_id, b.amount_nanocredits, b.debt_nanocredits,
			EXISTS (SELECT 1 FROM debtors d WHERE d.app_id = $1 AND d.wallet_id = b.wallet_id AND d.credit_id = b.credit_id)
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT wallet_id, credit_id, org_id, amount_nanocredits, debt_nanocredits
			FROM balances WHERE app_id = $1 AND wallet_id = t.id) b`)

	verifyReadSealedCounters = declare("verify read sealed counters", `
		SELECT c.wallet_id, c.feature_id, c.period_start, c.period_end, c.used
		FROM unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[]) AS t (wallet_id, feature_id, period_start, period_end)
		CROSS JOIN LATERAL (
			SELECT wallet_id, feature_id, period_start, period_end, used
			FROM sealed_counters WHERE app_id = $1 AND wallet_id = t.wallet_id AND feature_id = t.feature_id
			  AND period_start = t.period_start AND period_end = t.period_end
			LIMIT 1) c`)

	verifyReadCounters = declare("verify read counters", `
		SELECT c.wallet_id, c.feature_id, c.period_start, c.period_end, c.used
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT wallet_id, feature_id, period_start, period_end, used
			FROM counters WHERE app_id = $1 AND wallet_id = t.id) c`)

	// A subscription without a sale was put there by a program, and its earlier periods
	// are kept nowhere.
	verifyReadPeriods = declare("verify read periods", `
		SELECT p.wallet_id, p.period_start, p.period_end, p.unsold
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT wallet_id, period_start, period_end, false AS unsold
			FROM provider_payments WHERE app_id = $1 AND wallet_id = t.id AND period_start IS NOT NULL
			UNION ALL
			SELECT wallet_id, period_start, period_end, sale IS NULL
			FROM subscriptions WHERE app_id = $1 AND wallet_id = t.id AND status IN `+liveStatuses+`
			UNION ALL
			SELECT wallet_id, period_start, period_end, sale IS NULL
			FROM subscriptions WHERE app_id = $1 AND wallet_id = t.id AND status IN ('incomplete', 'canceled')) p`)

	verifyCountBilled = declare("verify count billed periods", `
		SELECT t.id, b.billed
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT count(*) AS billed FROM billed_periods WHERE app_id = $1 AND wallet_id = t.id) b`)

	verifyUnbilled = declare("verify unexplained billed periods", `
		SELECT b.feature_id, b.period_start, b.period_end, b.entity_id, b.tx_id
		FROM billed_periods b
		WHERE b.app_id = $1 AND b.wallet_id = $2
		  AND NOT EXISTS (SELECT 1 FROM usage_events e JOIN prices p ON p.app_id = $1 AND p.number = e.price_number
			WHERE e.app_id = $1 AND e.wallet_id = $2 AND e.tx_id = b.tx_id AND e.deduplicated_from IS NULL
			  AND p.feature_id = b.feature_id AND e.period_start = b.period_start AND e.period_end = b.period_end
			  AND coalesce(e.entity_id, '') = b.entity_id)
		LIMIT $3`)
)

// verifyWork is one batch of a pass, within one snapshot.
type verifyWork struct {
	pass        *verifyPass
	tx          appTx
	ranges      []verifyRange
	proofs      map[ids.ID]*walletProof
	charged     map[ids.ID]bool
	entriesOf   map[ids.ID][]verifiedEntry
	wallets     int64
	entries     int64
	differences []Difference
}

func (b *verifyWork) report(d Difference) { b.differences = append(b.differences, d) }

func (b *verifyWork) run(ctx context.Context, list []verifyRange) error {
	if err := b.readWallets(ctx, list); err != nil {
		return err
	}
	if err := b.readEntries(ctx); err != nil {
		return err
	}
	if err := b.readOpenCounters(ctx); err != nil {
		return err
	}
	for i := range b.ranges {
		r := &b.ranges[i]
		upto := r.proof.seq + b.pass.options.Batch
		entries := b.entriesOf[r.wallet]
		for i := range entries {
			r.proof.take(&entries[i], &b.pass.catalog, b.pass.app.scope.OrgID)
		}
		if !r.proof.done && r.proof.seq < upto {
			r.proof.differs(ruleSequence, "entries %d to %d are missing", r.proof.seq+1, upto)
			r.proof.seq = upto // or the next batch would be this one again
		}
		r.after = r.proof.seq
		b.entries += int64(len(entries))
		if r.proof.done && (len(entries) > 0 || b.pass.options.all()) {
			b.wallets++
		}
	}
	if err := b.checkBilled(ctx); err != nil {
		return err
	}
	if err := b.checkPeriods(ctx); err != nil {
		return err
	}
	return b.finish(ctx)
}

// readWallets begins a proof for each wallet, or carries on the one of the batch
// before, and says how far it is read in this snapshot.
func (b *verifyWork) readWallets(ctx context.Context, list []verifyRange) error {
	known := make(map[ids.ID]verifyRange, len(list))
	var wallets []ids.ID
	for _, r := range list {
		known[r.wallet] = r
		wallets = append(wallets, r.wallet)
	}
	b.proofs, b.charged = make(map[ids.ID]*walletProof, len(list)), make(map[ids.ID]bool, len(list))
	_, err := collect(ctx, b.tx, verifyReadWallets, func(row pgx.CollectableRow) (struct{}, error) {
		w, err := readVerifiedWallet(row)
		if err != nil {
			return struct{}{}, err
		}
		r := known[w.id]
		r.last = w.lastSeq
		switch {
		case r.proof == nil:
			r.proof = b.begin(w, r.after)
		case !r.proof.fromStart && w.seal.seq > r.proof.seq:
			// Another pass has sealed more meanwhile. Sealed counters are as of its seal.
			r.proof = b.begin(w, w.seal.seq)
		default:
			r.proof = r.proof.clone()
		}
		r.proof.report = b.report
		// A wallet that is no longer than two batches is read to its end.
		r.proof.done = w.lastSeq-r.proof.seq <= 2*b.pass.options.Batch
		b.proofs[w.id], b.charged[w.id] = r.proof, w.charged
		b.ranges = append(b.ranges, r)
		return struct{}{}, nil
	}, wallets)
	return err
}

// begin starts a proof after an entry: from nothing, from the wallet's seal, or from
// somewhere before that.
func (b *verifyWork) begin(w verifiedWallet, after int64) *walletProof {
	p := &walletProof{
		wallet: w.id, identity: w.identity, billing: w.billing, report: b.report,
		seq: after, known: after == 0 || after == w.seal.seq, fromStart: after == 0,
		balances: map[ids.ID]metering.Balance{}, counters: map[metering.CounterKey]int64{}, touched: map[metering.CounterKey]bool{},
		sealedSeq: w.seal.seq, stored: w.seal.seal, sealedAt: w.seal.at,
	}
	if w.org != b.pass.app.scope.OrgID {
		p.differs(ruleOrg, "the wallet names the organization %s, expected %s", w.org.Format(ids.Organization), b.pass.app.scope.OrgID.Format(ids.Organization))
	}
	if w.halfBilling {
		p.differs(ruleBilling, "the wallet's billing period has an interval or an anchor, and not both")
	}
	switch {
	case after == 0:
		p.seal = firstSeal(b.pass.app.scope.AppID, w.id, w.identity)
	case p.known:
		p.seal, p.billed = w.seal.seal, w.seal.billed
		for i, credit := range w.seal.credits {
			p.balances[credit] = metering.Balance{CreditID: credit, Amount: metering.Amount(w.seal.amounts[i]), Debt: metering.Amount(w.seal.debts[i])}
		}
	}
	return p
}

// verifiedWallet is a wallet with its seal.
type verifiedWallet struct {
	id, org     ids.ID
	identity    string
	billing     *metering.BillingPeriod
	halfBilling bool
	charged     bool
	lastSeq     int64
	seal        storedSeal
}

type storedSeal struct {
	seq     int64 // zero for none
	seal    journalSeal
	at      int64
	billed  int64
	credits []ids.ID
	amounts []amount
	debts   []amount
}

func readVerifiedWallet(row pgx.CollectableRow) (w verifiedWallet, err error) {
	var interval *metering.Interval
	var anchor, seq, at, billed *int64
	var seal []byte
	err = row.Scan(&w.id, &w.identity, &w.org, &interval, &anchor, &w.charged, &w.lastSeq,
		&seq, &seal, &at, &billed, &w.seal.credits, &w.seal.amounts, &w.seal.debts)
	w.halfBilling = (interval == nil) != (anchor == nil)
	if interval != nil && anchor != nil {
		w.billing = &metering.BillingPeriod{Interval: *interval, Anchor: *anchor}
	}
	w.seal.seq, w.seal.at, w.seal.billed = orZero(seq), orZero(at), orZero(billed)
	copy(w.seal.seal[:], seal)
	return w, err
}

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
	err := b.rows(ctx, verifyReadEvents, func(r *row) {
		var e verifiedEntry
		e.readEvent(r)
		if _, known := prices.prices[e.priceNumber]; !known || !prices.keys[e.keyID] {
			missing = true
		}
		b.entriesOf[e.wallet] = append(b.entriesOf[e.wallet], e)
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
	journal := false
	err = b.rows(ctx, verifyReadJournal, func(r *row) {
		var e verifiedEntry
		e.readJournal(r)
		b.checkSource(&e, r.bool(), r.bool())
		b.entriesOf[e.wallet] = append(b.entriesOf[e.wallet], e)
		journal = true
	}, wallets, after, upto, 4*b.pass.options.Batch)
	if err != nil {
		return err
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

// rows runs a query whose columns are read in Postgres' binary format.
func (b *verifyWork) rows(ctx context.Context, s statement, take func(*row), args ...any) error {
	rows, err := b.tx.conn.Query(ctx, s.sql, b.tx.args(args)...)
	if err != nil {
		return fmt.Errorf("store: %s: %w", s.name, err)
	}
	defer rows.Close()
	for rows.Next() {
		r := row{values: rows.RawValues()}
		take(&r)
		if r.err != nil {
			return fmt.Errorf("store: %s: %w", s.name, r.err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("store: %s: %w", s.name, err)
	}
	return nil
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
			if !e.event || !known || !e.limit.set {
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

func (b *verifyWork) readCounterRows(ctx context.Context, s statement, take func(ids.ID, metering.CounterKey, int64), args ...any) error {
	return b.rows(ctx, s, func(r *row) {
		wallet, feature := r.id(), r.id()
		period := metering.Period{Start: r.int8(), End: r.int8()}
		take(wallet, metering.CounterKey{FeatureID: feature, Period: period}, r.int8())
	}, args...)
}

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
	err := b.rows(ctx, readBilled, func(r *row) {
		key := billedKey{wallet: r.id()}
		key.FeatureID = r.id()
		key.Period = metering.Period{Start: r.int8(), End: r.int8()}
		key.EntityID = r.text()
		billed[key] = r.id()
	}, keys.wallets, keys.features, keys.starts, keys.ends, entities)
	if err != nil {
		return err
	}
	for i, e := range events {
		by, found := billed[billedKey{e.wallet, metering.BilledKey{FeatureID: keys.features[i], EntityID: entities[i], Period: e.period()}}]
		want, proof := e.id, b.proofs[e.wallet]
		if !e.original.IsZero() {
			want = e.original
		}
		proof.misbilled = proof.misbilled || by != want
		switch {
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
	err := b.rows(ctx, verifyReadPeriods, func(r *row) {
		wallet := r.id()
		periods[explained{wallet, metering.Period{Start: r.int8(), End: r.int8()}}] = true
		unsold[wallet] = unsold[wallet] || r.bool()
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

// finish holds the wallets that were read to their end to what is stored beside
// their entries.
func (b *verifyWork) finish(ctx context.Context) error {
	var wallets []ids.ID
	lastSeq := make(map[ids.ID]int64)
	for _, r := range b.ranges {
		if r.proof.done {
			wallets = append(wallets, r.wallet)
			lastSeq[r.wallet] = r.last
		}
	}
	if len(wallets) == 0 {
		return nil
	}
	for _, id := range wallets {
		b.checkEnd(b.proofs[id], lastSeq[id])
	}
	if err := b.checkBalances(ctx, wallets); err != nil {
		return err
	}
	if err := b.checkCounters(ctx, wallets); err != nil {
		return err
	}
	if !b.pass.options.all() {
		return nil
	}
	return b.countBilled(ctx, wallets)
}

func (b *verifyWork) checkEnd(p *walletProof, lastSeq int64) {
	if p.seq != lastSeq {
		p.differs(ruleWallet, "the last entry is number %d, but the wallet says %d", p.seq, lastSeq)
	}
	if last := min(p.seq, lastSeq); last < p.sealedSeq {
		p.differs(ruleSeal, "%d entries were verified and sealed, but the wallet now ends with entry %d", p.sealedSeq, last)
	}
	charged := b.charged[p.wallet]
	if p.accepted && !charged {
		p.differs(ruleWallet, "events were charged, but the wallet is not marked as charged")
	}
	if charged && p.fromStart && !p.accepted {
		p.differs(ruleWallet, "the wallet is marked as charged, but no event was")
	}
}

func (b *verifyWork) checkBalances(ctx context.Context, wallets []ids.ID) error {
	type balanceKey struct{ wallet, credit ids.ID }
	stored := make(map[balanceKey]bool)
	err := b.rows(ctx, verifyReadBalances, func(r *row) {
		wallet, credit, org := r.id(), r.id(), r.id()
		held := metering.Balance{CreditID: credit, Amount: r.amount(), Debt: r.amount()}
		debtor := r.bool()
		proof := b.proofs[wallet]
		stored[balanceKey{wallet, credit}] = true
		if org != b.pass.app.scope.OrgID {
			proof.differs(ruleOrg, "the balance of %s names another organization", b.pass.catalog.credit(credit))
		}
		if held.Amount > 0 && held.Debt > 0 {
			proof.differs(ruleDebt, "the balance of %s is %s beside a debt of %s", b.pass.catalog.credit(credit), held.Amount.Credits(), held.Debt.Credits())
		}
		if (held.Debt > 0) != debtor {
			proof.differs(ruleDebtors, "%s of %s: in debt %t, listed as a debtor %t", balanceText(held), b.pass.catalog.credit(credit), held.Debt > 0, debtor)
		}
		if want, met := proof.balances[credit]; (met || proof.known) && (want.Amount != held.Amount || want.Debt != held.Debt) {
			proof.differs(ruleBalance, "the stored balance of %s is %s, but the entries end at %s", b.pass.catalog.credit(credit), balanceText(held), balanceText(want))
		}
	}, wallets)
	if err != nil {
		return err
	}
	for _, id := range wallets {
		proof := b.proofs[id]
		for credit, want := range proof.balances {
			if !stored[balanceKey{id, credit}] && (want.Amount != 0 || want.Debt != 0) {
				proof.differs(ruleBalance, "no balance of %s is stored, but the entries end at %s", b.pass.catalog.credit(credit), balanceText(want))
			}
		}
	}
	return nil
}

// checkCounters compares the counters that moved with what is stored; all of a
// wallet's when the pass has read all of its entries.
func (b *verifyWork) checkCounters(ctx context.Context, wallets []ids.ID) error {
	stored := make(map[ids.ID]map[metering.CounterKey]int64)
	take := func(wallet ids.ID, key metering.CounterKey, used int64) {
		if stored[wallet] == nil {
			stored[wallet] = make(map[metering.CounterKey]int64)
		}
		stored[wallet][key] = used
	}
	var err error
	if b.pass.options.all() {
		err = b.readCounterRows(ctx, verifyReadCounters, take, wallets)
	} else {
		var keys counterKeys
		for _, id := range wallets {
			for key := range b.proofs[id].counters {
				keys.add(id, key)
			}
		}
		err = b.readCounterRows(ctx, readCounters, take, keys.wallets, keys.features, keys.starts, keys.ends)
	}
	if err != nil {
		return err
	}
	for _, id := range wallets {
		proof := b.proofs[id]
		for key, used := range proof.counters {
			if stored[id][key] != used {
				proof.differs(ruleCounter, "%s from %d to %d: the counter is %d, but the events used %d",
					b.pass.catalog.features[key.FeatureID].key, key.Period.Start, key.Period.End, stored[id][key], used)
			}
		}
		for key, used := range stored[id] {
			if _, met := proof.counters[key]; !met && used != 0 {
				proof.differs(ruleCounter, "%s from %d to %d: the counter is %d, but no event used anything",
					b.pass.catalog.features[key.FeatureID].key, key.Period.Start, key.Period.End, used)
			}
		}
	}
	return nil
}

// countBilled finds billed periods that no event explains. When every charged event
// was found to have its own, there are others only when there are more.
func (b *verifyWork) countBilled(ctx context.Context, wallets []ids.ID) error {
	var more []ids.ID
	err := b.rows(ctx, verifyCountBilled, func(r *row) {
		wallet, billed := r.id(), r.int8()
		if billed != b.proofs[wallet].billed || b.proofs[wallet].misbilled {
			more = append(more, wallet)
		}
	}, wallets)
	if err != nil {
		return err
	}
	for _, wallet := range more {
		err := b.rows(ctx, verifyUnbilled, func(r *row) {
			feature := b.pass.catalog.features[r.id()].key
			start, end := r.int8(), r.int8()
			b.proofs[wallet].differs(ruleBilled, "%s, entity %q, %d to %d is billed by %s, which is no such event of the wallet",
				feature, r.text(), start, end, r.id().Format(ids.Transaction))
		}, wallet, maxDifferences)
		if err != nil {
			return err
		}
	}
	return nil
}
