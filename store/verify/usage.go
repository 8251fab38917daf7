package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

const (
	ruleUsage      = "usage by hour is what the events add up to"
	ruleUsageTotal = "usage of all customers by hour is what the events add up to"
	ruleUsageMonth = "usage by month is what its hours add up to"
	ruleUsageDay   = "usage by day is what its hours add up to"
	ruleRevenueDay = "revenue by day is what its payments add up to"
)

// The sums of the hour that a pass began in, and of later ones, still change. A full pass
// adds up the events that it walks through; a pass over new entries reads the events of the
// hours that no recorded pass has compared.
const (
	// usageWindow is the first window of hours that a pass over new entries reads, and
	// usageEvents how many events make it read shorter ones.
	usageWindow = rollup.Hour
	usageEvents = 20_000
	// usageLead is how much the time in an event's id may differ from its own.
	usageLead = 60_000
)

var (
	// Days were compared as far as hours before they had a time of their own.
	verifyUsageProgress = pg.Declare("verify usage progress", `
		SELECT p.until, p.verified_until, coalesce(nullif(p.days_verified_until, 0), p.verified_until), p.days_until, p.values_until, p.revenue_until, s.clock_offset
		FROM usage_progress p JOIN app_state s ON s.app_id = $1
		WHERE p.app_id = $1`)

	verifyUsageHours = pg.Declare("verify usage by hour", `
		SELECT h.wallet_id, h.hour, h.feature_id, h.credit_id, NULL::uuid, h.org_id, h.events, h.deduplicated, h.quantity::text, h.included::text, h.charged_nanocredits::text
		FROM usage_hours h WHERE h.app_id = $1 AND `+onlyWallets("h.wallet_id")+` AND h.hour < $3`)

	verifyUsageRange = pg.Declare("verify usage in a range of hours", `
		SELECT h.wallet_id, h.hour, h.feature_id, h.credit_id, NULL::uuid, h.org_id, h.events, h.deduplicated, h.quantity::text, h.included::text, h.charged_nanocredits::text
		FROM usage_hours h WHERE h.app_id = $1 AND h.hour >= $2 AND h.hour < $3`)

	verifyUsageTotals = pg.Declare("verify usage of all customers", `
		SELECT NULL::uuid, t.hour, t.feature_id, t.credit_id, t.key_id, t.org_id, t.events, t.deduplicated, t.quantity::text, t.included::text, t.charged_nanocredits::text
		FROM usage_totals t WHERE t.app_id = $1 AND t.hour >= $2 AND t.hour < $3`)

	verifyUsageEvents = pg.Declare("verify events of hours", `
		SELECT wallet_id, key_id, price_number, created_at, quantity, allowance_limit, allowance_used, amount_nanocredits, deduplicated_from
		FROM usage_events WHERE app_id = $1 AND tx_id >= $2 AND tx_id < $3 AND created_at >= $4 AND created_at < $5
		UNION ALL
		SELECT p.wallet_id, u.key_id, u.price_number, u.created_at, u.quantity, u.allowance_limit, u.allowance_used, u.amount_nanocredits, u.deduplicated_from
		FROM `+pg.PackedBlock+`
		WHERE p.app_id = $1 AND p.last_tx >= $2 AND p.first_tx < $3 AND u.tx_id >= $2 AND u.tx_id < $3 AND u.created_at >= $4 AND u.created_at < $5 AND`+pg.PackedSince)

	verifyUsageDays = pg.Declare("verify usage by day", `
		SELECT 'the day ' || coalesce(d.day, h.day) || ' has ' || coalesce(d.events, 0) || ' events and ' || coalesce(d.charged, 0)
			|| ' nanocredits of a feature, its hours have ' || coalesce(h.events, 0) || ' and ' || coalesce(h.charged, 0)
		FROM (
			SELECT x.hour - x.hour % 86400000 AS day, x.feature_id, x.credit_id, x.key_id, x.org_id, sum(x.events)::bigint AS events, sum(x.deduplicated)::bigint AS deduplicated,
				sum(x.quantity) AS quantity, sum(x.included) AS included, sum(x.charged_nanocredits) AS charged
			FROM usage_totals x WHERE x.app_id = $1 AND x.hour >= $2 AND x.hour < $3 GROUP BY 1, 2, 3, 4, 5
		) h FULL JOIN (
			SELECT y.day, y.feature_id, y.credit_id, y.key_id, y.org_id, y.events, y.deduplicated, y.quantity, y.included, y.charged_nanocredits AS charged
			FROM usage_total_days y WHERE y.app_id = $1 AND y.day >= $2 AND y.day < $3
		) d ON d.day = h.day AND d.feature_id = h.feature_id AND d.credit_id = h.credit_id AND d.key_id = h.key_id AND d.org_id = h.org_id
		WHERE (d.events, d.deduplicated, d.quantity, d.included, d.charged) IS DISTINCT FROM (h.events, h.deduplicated, h.quantity, h.included, h.charged)
		LIMIT $4`)

	verifyRevenueDays = pg.Declare("verify revenue by day", `
		SELECT 'the day ' || coalesce(d.day, p.day) || ' has ' || coalesce(d.cents, 0) || ' cents in ' || coalesce(d.currency, p.currency)
			|| ', its payments have ' || coalesce(p.cents, 0)
		FROM (
			SELECT x.created_at - x.created_at % 86400000 AS day, x.currency COLLATE "C" AS currency, x.source_kind = 'session' AS topup, x.org_id, sum(x.amount_cents)::bigint AS cents
			FROM provider_payments x WHERE x.app_id = $1 AND x.created_at >= $2 AND x.created_at < $3 AND NOT x.free GROUP BY 1, 2, 3, 4
		) p FULL JOIN (
			SELECT y.day, y.currency, y.topup, y.org_id, y.amount_cents AS cents
			FROM revenue_days y WHERE y.app_id = $1 AND y.day >= $2 AND y.day < $3
		) d ON d.day = p.day AND d.currency = p.currency AND d.topup = p.topup AND d.org_id = p.org_id
		WHERE d.cents IS DISTINCT FROM p.cents
		LIMIT $4`)

	setUsageVerified = pg.Declare("set verified usage", `
		UPDATE usage_progress SET verified_until = $2, days_verified_until = coalesce(nullif(days_verified_until, 0), verified_until)
		WHERE app_id = $1 AND verified_until < $2`)

	setDaysVerified = pg.Declare("set verified days of usage", `
		UPDATE usage_progress SET days_verified_until = $2 WHERE app_id = $1 AND days_verified_until < $2`)
)

// usageKey is a group of sums. The wallet or the key is zero in sums that are not by it.
type usageKey struct {
	wallet, feature, credit, key ids.ID
	hour                         int64
}

type usageSums map[usageKey]rollup.Sums

func (u usageSums) add(k usageKey, s rollup.Sums) { u[k] = u[k].Add(s) }

// by merges groups.
func (u usageSums) by(reduce func(usageKey) usageKey) usageSums {
	merged := make(usageSums, len(u))
	for k, s := range u {
		merged.add(reduce(k), s)
	}
	return merged
}

func withoutKey(k usageKey) usageKey    { k.key = ids.ID{}; return k }
func withoutWallet(k usageKey) usageKey { k.wallet = ids.ID{}; return k }

// usageState is what a pass compares.
type usageState struct {
	upto    int64 // the hour before which sums are final
	from    int64 // the hour that a pass over new entries begins with
	fromDay int64 // the time whose day it compares first
	days    int64 // before which days are added up
	values  int64 // before which values of days are packed
	revenue int64 // before which payments of days are added up
	offset  int64 // of the application's clock
	all     allUsage
}

// prepareUsage finds out which hours are compared.
func (p *verifyPass) prepareUsage(ctx context.Context, tx appTx) error {
	p.usage = usageState{all: newAllUsage()}
	return pg.Each(ctx, tx, verifyUsageProgress, func(row pgx.CollectableRow) error {
		var until int64
		err := row.Scan(&until, &p.usage.from, &p.usage.fromDay, &p.usage.days, &p.usage.values, &p.usage.revenue, &p.usage.offset)
		p.usage.upto = rollup.HourOf(until)
		return err
	})
}

// takeUsage adds an event of a full pass to the sums of its wallet.
func (p *walletProof) takeUsage(e *verifiedEntry, price verifyPrice) {
	if p.usage == nil || e.createdAt >= p.usageUpto {
		return
	}
	p.usage.add(usageKey{p.wallet, price.feature, price.credit, e.keyID, rollup.HourOf(e.createdAt)}, rollup.Event{
		Quantity: e.quantity, Limited: e.limit.set, Limit: e.limit.value, Used: e.used.value, Amount: e.amount, Deduplicated: !e.original.IsZero(),
	}.Sums())
}

// checkUsage compares the hours of wallets that a full pass has read to their end.
func (b *verifyWork) checkUsage(ctx context.Context, wallets []ids.ID) error {
	want := usageSums{}
	for _, id := range wallets {
		maps.Copy(want, b.proofs[id].usage.by(withoutKey))
	}
	stored, err := b.pass.readUsage(ctx, b.tx, verifyUsageHours, want, b.report, wallets, b.pass.usage.upto)
	if err != nil {
		return err
	}
	b.pass.compareUsage(ruleUsage, "hour", want, stored, func(d Difference) {
		if proof := b.proofs[d.WalletID]; proof != nil {
			d.Identity = proof.identity
		}
		b.report(d)
	})
	return nil
}

// readUsage reads stored sums. What agrees is taken out of the wanted ones, and not kept.
func (p *verifyPass) readUsage(ctx context.Context, tx appTx, s pg.Statement, want usageSums, report func(Difference), args ...any) (usageSums, error) {
	stored := usageSums{}
	err := p.eachUsage(ctx, tx, s, report, func(k usageKey, sums rollup.Sums) {
		if w, known := want[k]; known && w == sums {
			delete(want, k)
		} else {
			stored[k] = sums
		}
	}, args...)
	return stored, err
}

// eachUsage reads stored sums one by one.
func (p *verifyPass) eachUsage(ctx context.Context, tx appTx, s pg.Statement, report func(Difference), take func(usageKey, rollup.Sums), args ...any) error {
	return pg.Each(ctx, tx, s, func(row pgx.CollectableRow) error {
		var k usageKey
		var wallet, key *ids.ID
		var org ids.ID
		var sums rollup.Sums
		var quantity, included, charged string
		err := row.Scan(&wallet, &k.hour, &k.feature, &k.credit, &key, &org, &sums.Events, &sums.Deduplicated, &quantity, &included, &charged)
		k.wallet, k.key = pg.OrZero(wallet), pg.OrZero(key)
		if org != p.app.app.Scope.OrgID && err == nil {
			report(Difference{Check: ruleOrg, WalletID: k.wallet, Detail: fmt.Sprintf("usage of the hour %d names the organization %s", k.hour, org.Format(ids.Organization))})
		}
		parseSums(&sums, quantity, included, charged)
		take(k, sums)
		return err
	}, args...)
}

// parseSums reads stored sums. What is no sum differs from every one.
func parseSums(sums *rollup.Sums, quantity, included, charged string) {
	var ok [3]bool
	sums.Quantity, ok[0] = metering.ParseTotal(quantity)
	sums.Included, ok[1] = metering.ParseTotal(included)
	if sums.Charged, ok[2] = metering.ParseTotal(charged); ok != [3]bool{true, true, true} {
		sums.Events = -1
	}
}

// compareUsage reports the sums that differ, of which readUsage has left no others. They are
// those of hours, or of days.
func (p *verifyPass) compareUsage(rule, unit string, want, stored usageSums, report func(Difference)) {
	keys := map[usageKey]bool{}
	for k := range want {
		keys[k] = true
	}
	for k := range stored {
		keys[k] = true
	}
	for _, k := range slices.SortedFunc(maps.Keys(keys), func(a, b usageKey) int {
		return cmp.Or(cmp.Compare(a.hour, b.hour), bytes.Compare(a.wallet[:], b.wallet[:]), bytes.Compare(a.feature[:], b.feature[:]), bytes.Compare(a.key[:], b.key[:]))
	}) {
		report(Difference{Check: rule, WalletID: k.wallet, Detail: fmt.Sprintf("%s in the %s %d: stored are %s, the events make %s",
			p.catalog.features[k.feature].key, unit, k.hour, sumsText(stored[k]), sumsText(want[k]))})
	}
}

func sumsText(s rollup.Sums) string {
	return fmt.Sprintf("%d events (%d deduplicated), quantity %s (%s included), %s nanocredits", s.Events, s.Deduplicated, s.Quantity, s.Included, s.Charged)
}

// checkUsage ends the comparison of sums with events, and records it.
func (p *verifyPass) checkUsage(ctx context.Context) error {
	var err error
	if p.options.all() {
		if slices.Contains(p.result.Unfinished, ruleChain) {
			return nil // events of some wallets were not read
		}
		err = p.checkAllUsage(ctx)
	} else {
		err = p.checkNewUsage(ctx)
	}
	if finished, err := p.finished(ctx, ruleUsageTotal, err); err != nil || !finished {
		return err
	}
	if err := p.recordUsage(ctx, setUsageVerified, p.usage.upto, ruleUsage, ruleUsageTotal, ruleOrg); err != nil {
		return err
	}
	if _, err := p.finished(ctx, ruleUsageDay, p.checkDays(ctx)); err != nil {
		return err
	}
	if _, err := p.finished(ctx, ruleValues, p.checkValues(ctx)); err != nil {
		return err
	}
	if _, err := p.finished(ctx, ruleDimension, p.checkDimensions(ctx)); err != nil {
		return err
	}
	return p.recordDays(ctx, p.usage.upto)
}

// recordDays records the days before a time as compared.
func (p *verifyPass) recordDays(ctx context.Context, upto int64) error {
	return p.recordUsage(ctx, setDaysVerified, upto, ruleUsageDay, ruleRevenueDay, ruleDimension, ruleValues, ruleOrg)
}

// recordUsage records how far usage was compared, unless one of the rules is broken or was
// not checked everywhere.
func (p *verifyPass) recordUsage(ctx context.Context, s pg.Statement, upto int64, rules ...string) error {
	if !p.options.Record || slices.ContainsFunc(rules, func(rule string) bool {
		return p.found[rule] > 0 || slices.Contains(p.result.Unfinished, rule)
	}) {
		return nil
	}
	return p.app.app.ExecAny(ctx, s, upto)
}

// checkDays compares the days with their hours and payments: all of them, or those since
// the last recorded pass and the day before, which may have been added up since then.
func (p *verifyPass) checkDays(ctx context.Context) error {
	from := int64(0)
	if !p.options.all() {
		if p.usage.fromDay == 0 {
			return nil // nothing was compared yet: that is for a full pass
		}
		from = metering.DayOf(p.usage.fromDay).Start - 24*rollup.Hour
	}
	return p.read(ctx, func(ctx context.Context, tx appTx) error {
		details, err := pg.Collect(ctx, tx, verifyUsageDays, pgx.RowTo[string], from, p.usage.days, maxDifferences)
		for _, detail := range details {
			p.report(Difference{Check: ruleUsageDay, Detail: detail})
		}
		if err != nil {
			return err
		}
		details, err = pg.Collect(ctx, tx, verifyRevenueDays, pgx.RowTo[string], from, p.usage.revenue, maxDifferences)
		for _, detail := range details {
			p.report(Difference{Check: ruleRevenueDay, Detail: detail})
		}
		return err
	})
}

// compareStored compares what a statement reads.
func (p *verifyPass) compareStored(ctx context.Context, tx appTx, rule string, s pg.Statement, want usageSums, from, upto int64) error {
	var found []Difference
	report := func(d Difference) { found = append(found, d) }
	stored, err := p.readUsage(ctx, tx, s, want, report, from, upto)
	if err != nil {
		return err
	}
	p.compareUsage(rule, "hour", want, stored, report)
	for _, d := range found {
		p.report(d)
	}
	return nil
}

// checkNewUsage compares the hours since the last recorded pass.
func (p *verifyPass) checkNewUsage(ctx context.Context) error {
	from, length := p.usage.from, usageWindow
	if from == 0 { // nothing was compared yet: that is for a full pass
		return nil
	}
	for from < p.usage.upto {
		upto := min(p.usage.upto, from+length)
		events, err := pg.Return(ctx, p.read, func(ctx context.Context, tx appTx) (int64, error) { return p.compareHours(ctx, tx, from, upto) })
		if err != nil {
			return err
		}
		if from = upto; events < usageEvents/4 {
			length *= 4
		} else if events > usageEvents {
			length = usageWindow
		}
		if err := pauseFor(ctx, p.options.Pause); err != nil {
			return err
		}
	}
	return nil
}

// compareHours adds up the events of some hours and compares.
func (p *verifyPass) compareHours(ctx context.Context, tx appTx, from, upto int64) (events int64, err error) {
	if err := p.catalog.load(ctx, tx); err != nil {
		return 0, err
	}
	want, totals := usageSums{}, usageSums{}
	b := &verifyWork{pass: p, tx: tx}
	err = b.rows(ctx, verifyUsageEvents, func(r *wire.Row) {
		wallet, key, price, at := r.ID(), r.ID(), p.catalog.prices[r.Int8()], r.Int8()
		k, sums := usageKey{wallet, price.feature, price.credit, key, rollup.HourOf(at)}, readEvent(r).Sums()
		want.add(withoutKey(k), sums)
		totals.add(withoutWallet(k), sums)
		events++
	}, pg.IDAt(max(0, from-p.usage.offset-usageLead)), pg.IDAt(upto+usageLead), from, upto)
	if err != nil {
		return 0, err
	}
	if err := p.compareStored(ctx, tx, ruleUsage, verifyUsageRange, want, from, upto); err != nil {
		return 0, err
	}
	return events, p.compareStored(ctx, tx, ruleUsageTotal, verifyUsageTotals, totals, from, upto)
}

// readEvent reads the columns that an event's sums are of.
func readEvent(r *wire.Row) rollup.Event {
	e := rollup.Event{Quantity: r.Int8()}
	limit, used := optionalInt(r), optionalInt(r)
	e.Limited, e.Limit, e.Used = limit.set, limit.value, used.value
	e.Amount = r.Amount()
	original := r.ID()
	e.Deduplicated = !original.IsZero()
	return e
}
