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

const ruleDimension = "usage by entity and property is what the events add up to"

// dimensionWindow is the longest window of days that is read at once.
const dimensionWindow = 32 * 24 * rollup.Hour

// maxPieces is in how many pieces a busy hour is read at most: each also reads the events
// around it, see usageLead.
const maxPieces = 12

const labelledColumns = `u.price_number, u.created_at, u.quantity, u.allowance_limit, u.allowance_used, u.amount_nanocredits, u.deduplicated_from`

var (
	verifyNextUsage = pg.Declare("verify next usage", `
		SELECT hour FROM usage_totals WHERE app_id = $1 AND hour >= $2 ORDER BY hour LIMIT 1`)

	verifyAnyProperties = pg.Declare("verify find properties", `
		SELECT 1 FROM event_properties WHERE app_id = $1 LIMIT 1`)

	// An erasure deletes properties; the sums stay.
	verifyAnyErasure = pg.Declare("verify find erasures", `
		SELECT 1 FROM identity_changes WHERE app_id = $1 AND kind = 'erasure' LIMIT 1`)

	verifyHourCounts = pg.Declare("verify events by hour", `
		SELECT hour, sum(events)::bigint FROM usage_totals WHERE app_id = $1 AND hour >= $2 AND hour < $3 GROUP BY hour ORDER BY hour`)

	verifyEntityEvents = pg.Declare("verify events with an entity", `
		SELECT u.entity_id, `+labelledColumns+`
		FROM usage_events u
		WHERE u.app_id = $1 AND u.tx_id >= $2 AND u.tx_id < $3 AND u.created_at >= $4 AND u.created_at < $5 AND u.entity_id IS NOT NULL
		UNION ALL
		SELECT u.entity_id, `+labelledColumns+`
		FROM `+pg.PackedBlock+`
		WHERE p.app_id = $1 AND p.entity_ids IS NOT NULL AND p.last_tx >= $2 AND p.first_tx < $3
			AND u.tx_id >= $2 AND u.tx_id < $3 AND u.created_at >= $4 AND u.created_at < $5 AND u.entity_id IS NOT NULL AND`+pg.PackedSince)

	verifyPropertyEvents = pg.Declare("verify events with properties", `
		SELECT l.properties, `+labelledColumns+`
		FROM usage_events u
		CROSS JOIN LATERAL (SELECT o.properties::text AS properties FROM event_properties o WHERE o.app_id = $1 AND o.wallet_id = u.wallet_id AND o.seq = u.seq LIMIT 1) l
		WHERE u.app_id = $1 AND u.tx_id >= $2 AND u.tx_id < $3 AND u.created_at >= $4 AND u.created_at < $5
		UNION ALL
		SELECT l.properties, `+labelledColumns+`
		FROM `+pg.PackedBlock+`
		CROSS JOIN LATERAL (SELECT o.properties::text AS properties FROM event_properties o WHERE o.app_id = $1 AND o.wallet_id = p.wallet_id AND o.seq = u.seq LIMIT 1) l
		WHERE p.app_id = $1 AND p.last_tx >= $2 AND p.first_tx < $3 AND u.tx_id >= $2 AND u.tx_id < $3 AND u.created_at >= $4 AND u.created_at < $5 AND`+pg.PackedSince)

	verifyValues = pg.Declare("verify values of dimensions", `
		SELECT day, name, value, org_id FROM usage_values WHERE app_id = $1 AND day >= $2 AND day < $3`)

	verifyDimensions = pg.Declare("verify usage by dimension", `
		SELECT d.name, d.value, d.day, d.feature_id, d.credit_id, d.org_id, d.events, d.deduplicated, d.quantity::text, d.included::text, d.charged_nanocredits::text
		FROM usage_dimensions d
		WHERE d.app_id = $1 AND d.day >= $2 AND d.day < $3`)
)

type dimensionKey struct {
	dimension       rollup.Dimension
	value           string
	day             int64
	feature, credit ids.ID
}

func (k dimensionKey) compare(other dimensionKey) int {
	return cmp.Or(cmp.Compare(k.day, other.day), cmp.Compare(k.dimension, other.dimension), cmp.Compare(k.value, other.value), bytes.Compare(k.feature[:], other.feature[:]))
}

// dimensionPass compares the sums of some days.
type dimensionPass struct {
	*verifyPass
	properties, erased bool
	values             rollup.Values
	want               map[dimensionKey]rollup.Sums
	events             int64
}

// checkDimensions compares the sums of days that are final: all of them, or those since the
// last recorded pass.
func (p *verifyPass) checkDimensions(ctx context.Context) error {
	d := dimensionPass{verifyPass: p}
	if p.usage.fromDay == 0 && !p.options.all() || p.usage.upto == 0 {
		return nil // nothing was compared yet: that is for a full pass
	}
	from, upto := metering.DayOf(p.usage.fromDay).Start, metering.DayOf(p.usage.upto).Start
	stored := from
	if err := p.read(ctx, func(ctx context.Context, tx appTx) (err error) {
		if p.options.all() {
			from, stored = 0, 0
		}
		d.properties, err = exists(ctx, tx, verifyAnyProperties)
		return err
	}); err != nil {
		return err
	}
	for length := 24 * rollup.Hour; from < upto; {
		next, err := p.nextDay(ctx, verifyNextUsage, from, upto-24*rollup.Hour)
		if err != nil {
			return err
		}
		from = max(from, next)
		end := min(upto, from+length)
		if err := d.compareDays(ctx, stored, from, end); err != nil {
			return err
		}
		if err := p.recordDays(ctx, end); err != nil {
			return err
		}
		if from, stored = end, end; d.events < usageEvents/4 {
			length = min(dimensionWindow, length*2)
		} else {
			length = 24 * rollup.Hour
		}
	}
	return nil
}

// nextDay is the first day from a time on that a statement finds something on, or the last
// one. A test clock may jump over thousands of years, which are passed at once.
func (p *verifyPass) nextDay(ctx context.Context, s pg.Statement, from, last int64) (int64, error) {
	found, err := list(ctx, p, s, pgx.RowTo[int64], from)
	if err != nil || len(found) == 0 {
		return last, err
	}
	return min(last, metering.DayOf(found[0]).Start), nil
}

func exists(ctx context.Context, tx appTx, s pg.Statement) (bool, error) {
	found, err := pg.Collect(ctx, tx, s, pgx.RowTo[int])
	return len(found) > 0, err
}

// compareDays adds up the events of some days, in pieces with a snapshot each, and compares.
// The days are final, so that all snapshots see the same events. Stored sums are read from
// an earlier day if there should be none before.
func (d *dimensionPass) compareDays(ctx context.Context, stored, from, upto int64) error {
	ends, err := pg.Return(ctx, d.read, func(ctx context.Context, tx appTx) ([]int64, error) {
		return d.prepareDays(ctx, tx, stored, from, upto)
	})
	if err != nil {
		return err
	}
	all, events := map[dimensionKey]rollup.Sums{}, int64(0)
	for _, end := range ends {
		if err := d.read(ctx, func(ctx context.Context, tx appTx) error { return d.readPiece(ctx, tx, from, end) }); err != nil {
			return err
		}
		for k, sums := range d.want {
			all[k] = all[k].Add(sums)
		}
		from, events = end, events+d.events
		if err := pauseFor(ctx, d.options.Pause); err != nil {
			return err
		}
	}
	d.want, d.events = all, events
	return d.read(ctx, func(ctx context.Context, tx appTx) (err error) {
		// After the events: an erasure may have deleted properties between two pieces.
		if d.erased, err = exists(ctx, tx, verifyAnyErasure); err != nil {
			return err
		}
		found, err := d.readStored(ctx, tx, stored, upto)
		if err != nil {
			return err
		}
		d.compare(found)
		return nil
	})
}

// prepareDays reads which values have sums, and where the pieces of the days end.
func (d *dimensionPass) prepareDays(ctx context.Context, tx appTx, stored, from, upto int64) ([]int64, error) {
	if err := d.catalog.load(ctx, tx); err != nil {
		return nil, err
	}
	d.values = rollup.Values{}
	if err := pg.Each(ctx, tx, verifyValues, func(row pgx.CollectableRow) error {
		var k dimensionKey
		var org ids.ID
		err := row.Scan(&k.day, &k.dimension, &k.value, &org)
		d.values.Add(k.day, k.dimension, k.value)
		d.checkOrg(org, k.day)
		return err
	}, stored, upto); err != nil {
		return nil, err
	}
	// Each piece reads packed blocks, which are of one wallet and up to a month, as a whole,
	// and after a test clock was advanced the events of that time.
	packed, err := pg.Find(ctx, tx, verifyPackedEnd, pgx.RowToStructByPos[packedEnd], pg.ErrNoAppState, ids.ID{})
	if err != nil || upto <= packed.Before || d.usage.offset > rollup.Hour {
		return []int64{upto}, err
	}
	var ends []int64
	if from < packed.Before {
		ends, from = append(ends, packed.Before), packed.Before
	}
	hours, err := pg.Collect(ctx, tx, verifyHourCounts, pgx.RowToStructByPos[hourCount], from, upto)
	return append(ends, pieces(upto, d.options.Batch, hours)...), err
}

// hourCount is how many events an hour has.
type hourCount struct{ Hour, Events int64 }

// pieces are the ends of pieces that have about this many events at most. An hour is cut
// into equal parts.
func pieces(upto, most int64, hours []hourCount) (ends []int64) {
	var events int64
	for _, h := range hours {
		if events > 0 && events+h.Events > most {
			ends, events = append(ends, h.Hour), 0
		}
		parts := min(maxPieces, (h.Events+most-1)/most)
		for part := int64(1); part < parts; part++ {
			ends = append(ends, h.Hour+part*rollup.Hour/parts)
		}
		events += h.Events
	}
	return append(ends, upto)
}

// readPiece adds up the events between two times.
func (d *dimensionPass) readPiece(ctx context.Context, tx appTx, from, upto int64) error {
	d.want, d.events = map[dimensionKey]rollup.Sums{}, 0
	b := &verifyWork{pass: d.verifyPass, tx: tx}
	args := []any{pg.IDAt(max(0, from-d.usage.offset-usageLead)), pg.IDAt(upto + usageLead), from, upto}
	if err := b.rows(ctx, verifyEntityEvents, func(r *wire.Row) {
		entity := r.Text()
		d.take(r, map[rollup.Dimension]string{rollup.Entity: entity})
	}, args...); err != nil {
		return err
	}
	if !d.properties {
		return nil
	}
	return b.rows(ctx, verifyPropertyEvents, func(r *wire.Row) {
		labels := map[rollup.Dimension]string{}
		for name, value := range metering.Properties(r.Text()).Values() {
			labels[rollup.Property(name)] = value
		}
		d.take(r, labels)
	}, args...)
}

// take adds an event to the sums of its labels.
func (d *dimensionPass) take(r *wire.Row, labels map[rollup.Dimension]string) {
	price, day := d.catalog.prices[r.Int8()], metering.DayOf(r.Int8()).Start
	sums := readEvent(r).Sums()
	for dimension, value := range labels {
		if label, counted := d.values.Label(day, dimension, value); counted {
			k := dimensionKey{dimension, label, day, price.feature, price.credit}
			d.want[k] = d.want[k].Add(sums)
		}
	}
	d.events++
}

func (d *dimensionPass) checkOrg(org ids.ID, day int64) {
	if org != d.app.app.Scope.OrgID {
		d.report(Difference{Check: ruleOrg, Detail: fmt.Sprintf("usage by dimension of the day %d names the organization %s", day, org.Format(ids.Organization))})
	}
}

func (d *dimensionPass) readStored(ctx context.Context, tx appTx, from, upto int64) (map[dimensionKey]rollup.Sums, error) {
	return pg.CollectMap(ctx, tx, verifyDimensions, func(row pgx.CollectableRow) (k dimensionKey, sums rollup.Sums, err error) {
		var org ids.ID
		var quantity, included, charged string
		err = row.Scan(&k.dimension, &k.value, &k.day, &k.feature, &k.credit, &org, &sums.Events, &sums.Deduplicated, &quantity, &included, &charged)
		d.checkOrg(org, k.day)
		parseSums(&sums, quantity, included, charged)
		return k, sums, err
	}, from, upto)
}

// compare reports where sums differ. After an erasure, events may have lost properties that
// are in the sums.
func (d *dimensionPass) compare(stored map[dimensionKey]rollup.Sums) {
	for _, k := range differing(d.want, stored) {
		have, want := stored[k], d.want[k]
		if d.erased && k.dimension != rollup.Entity && have.Events > want.Events {
			continue
		}
		d.report(Difference{Check: ruleDimension, Detail: fmt.Sprintf("%s by %s %q on the day %d: stored are %s, the events make %s",
			d.catalog.features[k.feature].key, k.dimension, k.value, k.day, sumsText(have), sumsText(want))})
	}
}

// differing are the keys under which two maps differ, in order.
func differing(want, stored map[dimensionKey]rollup.Sums) []dimensionKey {
	keys := map[dimensionKey]bool{}
	for k := range want {
		if want[k] != stored[k] {
			keys[k] = true
		}
	}
	for k := range stored {
		if want[k] != stored[k] {
			keys[k] = true
		}
	}
	return slices.SortedFunc(maps.Keys(keys), dimensionKey.compare)
}
