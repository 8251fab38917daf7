package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store"
	"purser/store/rollups"
	"purser/store/verify"
)

// trackLabelled records a plain event with a property.
func (b *books) trackLabelled(t *testing.T, identity string, quantity int64, name, value string) {
	t.Helper()
	b.next++
	d, err := b.usage.Track(store.Usage{Scope: b.scope, KeyID: b.key, Identity: identity, FeatureKey: "plain", Usage: metering.Usage{
		TransactionID: ids.New(), EventID: fmt.Sprint("e", b.next), Quantity: quantity, Properties: metering.NewProperties(map[string]string{name: value})}})
	noError(t, err)
	noError(t, d.Err())
}

// byDimension lists value, events and quantity of all rows, read in pages of one.
func (b *books) byDimension(t *testing.T, d rollup.Dimension) string {
	t.Helper()
	q := b.dimensionQuery(t, d)
	var lines []string
	for after := (rollups.Row{}); ; {
		found, err := b.Rollups().DimensionUsage(t.Context(), q, after, 1)
		noError(t, err)
		if len(found.Rows) == 0 {
			slices.Sort(lines)
			return strings.Join(lines, ", ")
		}
		after = found.Rows[0]
		lines = append(lines, fmt.Sprintf("%s %d/%s", after.Value, after.Events, after.Quantity))
	}
}

// largest lists value, events and quantity of the largest values and the others.
func (b *books) largest(t *testing.T, d rollup.Dimension, values int) string {
	t.Helper()
	found, err := b.Rollups().LargestValues(t.Context(), b.dimensionQuery(t, d), values)
	noError(t, err)
	var lines []string
	for _, r := range found.Rows {
		lines = append(lines, fmt.Sprintf("%s %d/%s", r.Value, r.Events, r.Quantity))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

func (b *books) dimensionQuery(t *testing.T, d rollup.Dimension) rollups.Query {
	t.Helper()
	zone, err := rollup.Zone("")
	noError(t, err)
	q := rollups.Query{Buckets: thisYear(t, rollup.ByMonth), Dimension: d}
	q.Buckets, err = rollup.NewBuckets(q.Buckets.From(), q.Buckets.End, rollup.ByMonth, zone)
	noError(t, err)
	return q
}

func TestAnErasureDuringAVerificationIsNoDifference(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	deposited := "zoe"
	_, _, err := b.Deposit(t.Context(), store.Deposit{ID: ids.New(), Identity: "zoe", CreditKey: "tokens", Amount: 1_000, IdempotencyKey: &deposited, CreatedAt: moment})
	noError(t, err)
	b.trackLabelled(t, "zoe", 9, "model", "large")
	b.settle(t)
	b.finalSums(t, 48)
	proxy, err := startProxy(b.url)
	noError(t, err)
	t.Cleanup(proxy.Close)
	var met atomic.Bool
	erase := func() {
		met.Store(true)
		if _, _, err := b.Erase(t.Context(), store.Erasure{ID: ids.New(), Identity: "zoe", Reason: "asked", IdempotencyKey: "erase"}); err != nil {
			t.Error(err)
		}
		if _, err := b.conn.Exec(t.Context(), `DELETE FROM event_properties`); err != nil { // as its job does
			t.Error(err)
		}
	}
	const piece = "CROSS JOIN LATERAL (SELECT o.properties"
	proxy.Before(piece, func() { proxy.Before(piece, erase) })
	v, err := openStore(t, proxy.URL()).Verification(b.scope).Verify(t.Context(), verify.Options{Batch: 2})
	noError(t, err)
	if !met.Load() || len(v.Differences) > 0 {
		t.Errorf("met the erasure: %t; differences: %v", met.Load(), v.Differences)
	}
}

func TestDaysAreVerifiedInPieces(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.trackLabelled(t, "ann", 2, "model", "large")
	b.settle(t)
	// An event half an hour later, of a test clock.
	b.trackLabelled(t, "ann", 3, "model", "large")
	exec(t, b.conn, `UPDATE app_state SET clock_offset = $1`, rollup.Hour)
	exec(t, b.conn, `UPDATE usage_events SET created_at = created_at + $1 WHERE seq = (SELECT max(seq) FROM usage_events)`, rollup.Hour/2)
	b.settle(t)
	b.finalSums(t, 48)
	proxy, err := startProxy(b.url)
	noError(t, err)
	t.Cleanup(proxy.Close)
	var pieces atomic.Int64
	var count func()
	count = func() {
		pieces.Add(1)
		proxy.Before("CROSS JOIN LATERAL (SELECT o.properties", count)
	}
	proxy.Before("CROSS JOIN LATERAL (SELECT o.properties", count)
	through := openStore(t, proxy.URL())
	v, err := through.Verification(b.scope).Verify(t.Context(), verify.Options{})
	if noError(t, err); pieces.Load() != 2 || len(v.Differences) > 0 {
		t.Errorf("two quiet days were read in %d pieces: %v", pieces.Load(), v.Differences)
	}
	v, err = through.Verification(b.scope).Verify(t.Context(), verify.Options{Batch: 2})
	if noError(t, err); pieces.Load()-2 < 12 || len(v.Differences) > 0 {
		t.Errorf("a busy hour was read in %d pieces: %v", pieces.Load()-2, v.Differences)
	}
	exec(t, b.conn, `INSERT INTO packed_runs (app_id, run, org_id, before, scanned, indexed, done, last_tx, events, started_at)
		SELECT app_id, 1, org_id, $1::bigint, app_id, true, true, '00000000-0000-0000-0000-000000000000', 0, 0 FROM app_state`, int64(moment)*2)
	pieces.Store(0)
	v, err = through.Verification(b.scope).Verify(t.Context(), verify.Options{Batch: 2})
	if noError(t, err); pieces.Load() != 2 || len(v.Differences) > 0 {
		t.Errorf("two days that may be packed were read in %d pieces: %v", pieces.Load(), v.Differences)
	}
	exec(t, b.conn, `UPDATE packed_runs SET before = (SELECT min(hour) FROM usage_totals)`)
	pieces.Store(0)
	v, err = through.Verification(b.scope).Verify(t.Context(), verify.Options{Batch: 2})
	if noError(t, err); pieces.Load() < 12 || len(v.Differences) > 0 {
		t.Errorf("a busy hour behind packed ones was read in %d pieces: %v", pieces.Load(), v.Differences)
	}
	exec(t, b.conn, `UPDATE usage_dimensions SET quantity = quantity + 1 WHERE value = 'large'`)
	if found := b.broken(t, verify.Options{Batch: 2}); len(found) == 0 {
		t.Error("a wrong sum of pieces is not found")
	}
}

// A busy chunk has more labels than events, so they are added in parts.
func TestLabelsOfABusyChunkAreAddedInParts(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	const events = 10_500
	exec(t, b.conn, `
		INSERT INTO usage_events (app_id, org_id, tx_id, wallet_id, key_id, seq, price_number, quantity, created_at, amount_nanocredits, balance_after, entity_id, event_id)
		SELECT app_id, org_id, (left(tx_id::text, 13) || '-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, wallet_id, key_id, 1000 + n, price_number, 2, created_at, 7, 0,
			'value ' || n % 2, uuid_send((left(tx_id::text, 13) || '-7000-8001-' || lpad(to_hex(n), 12, '0'))::uuid)
		FROM usage_events, generate_series(1, $1::int) n WHERE event_id = 'e0'`, events)
	proxy, err := startProxy(b.url)
	noError(t, err)
	t.Cleanup(proxy.Close)
	const write = "INSERT INTO usage_dimensions"
	var parts atomic.Int64
	var count func()
	count = func() {
		parts.Add(1)
		proxy.Before(write, count)
	}
	proxy.Before(write, count)
	direct := b.db
	b.db = openStore(t, proxy.URL())
	for range 2 { // nothing is added twice
		b.settle(t)
	}
	b.db = direct
	if got := b.byDimension(t, rollup.Entity); parts.Load() < 3 || got != "value 0 5250/10500, value 1 5250/10500, x 20/48" {
		t.Errorf("in %d parts: %s", parts.Load(), got)
	}
}

func TestCanceledComparisonOfDaysKeepsNoHoursBack(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.trackLabelled(t, "ann", 2, "model", "large")
	b.settle(t)
	b.finalSums(t, 48)
	b.verify(t, verify.Options{Record: true})
	const marks = `SELECT verified_until || ' ' || days_verified_until FROM usage_progress`
	verified := texts(t, b.conn, marks)[0]
	exec(t, b.conn, `UPDATE usage_progress SET verified_until = verified_until - $1, days_verified_until = days_verified_until - $1`, 72*rollup.Hour)
	before := strings.Fields(texts(t, b.conn, marks)[0])
	blocker, err := connect(t, b.url).Begin(t.Context())
	noError(t, err)
	exec(t, blocker, `LOCK TABLE usage_dimensions`)
	v := verifyAndCancelWaits(t, b.Verification(), b.conn, verify.Options{New: true, Record: true})
	noError(t, blocker.Rollback(t.Context()))
	if !slices.Contains(v.Unfinished, "usage by entity and property is what the events add up to") || len(v.Differences) > 0 {
		t.Errorf("unfinished are %q, differences %v", v.Unfinished, v.Differences)
	}
	if got := strings.Fields(texts(t, b.conn, marks)[0]); got[0] != strings.Fields(verified)[0] || got[1] != before[1] {
		t.Errorf("hours and days are verified until %s, before %s, expected only the hours until %s", got, before, verified)
	}
	exec(t, b.conn, `UPDATE usage_dimensions SET quantity = quantity + 1`)
	if found := b.broken(t, verify.Options{New: true, Record: true}); len(found) == 0 {
		t.Error("the next pass leaves out the days that were not compared")
	}
	exec(t, b.conn, `UPDATE usage_dimensions SET quantity = quantity - 1`)
	b.verify(t, verify.Options{New: true, Record: true})
	if got := texts(t, b.conn, marks)[0]; got != verified {
		t.Errorf("verified until %s, expected %s", got, verified)
	}
}

// Before days had a time of their own, a pass recorded hours only after the days.
func TestDaysAreVerifiedFromTheHoursOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.trackLabelled(t, "ann", 2, "model", "large")
	b.settle(t)
	b.finalSums(t, 48)
	b.verify(t, verify.Options{Record: true})
	exec(t, b.conn, `UPDATE usage_progress SET verified_until = (SELECT min(hour) FROM usage_totals), days_verified_until = 0`)
	exec(t, b.conn, `UPDATE usage_dimensions SET quantity = quantity + 1`)
	for range 2 {
		if found := b.broken(t, verify.Options{New: true, Record: true}); len(found) == 0 {
			t.Error("a pass over new entries leaves out the days")
		}
	}
}

func TestUsageByPropertyAndEntity(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.settle(t)
	if got := b.byDimension(t, rollup.Entity); got != "x 20/48" { // a daily event counts once
		t.Errorf("entities: %s", got)
	}
	b.trackLabelled(t, "ann", 2, "model", "large")
	b.trackLabelled(t, "ann", 3, "model", "small")
	b.settle(t)
	b.trackLabelled(t, "ann", 4, "model", "large")
	b.trackLabelled(t, "ann", 5, "project", "a:b")
	b.settle(t)
	if got := b.byDimension(t, rollup.Property("model")); got != "large 2/6, small 1/3" {
		t.Errorf("models: %s", got)
	}
	list, err := b.Rollups().Dimensions(t.Context(), 10)
	noError(t, err)
	if got := fmt.Sprint(list); got != "[entity property:model property:project]" {
		t.Errorf("dimensions: %s", got)
	}

	t.Run("a value past the limit is counted with the others", func(t *testing.T) {
		exec(t, b.conn, `
			INSERT INTO usage_values (app_id, day, name, value, org_id)
			SELECT v.app_id, v.day, v.name, 'value ' || n, v.org_id FROM (SELECT * FROM usage_values WHERE name = 'property:model' AND value = 'large') v, generate_series(1, $1::int) n`,
			rollup.MaxValues-2)
		b.trackLabelled(t, "ann", 6, "model", "new")
		b.trackLabelled(t, "ann", 7, "model", "newer")
		b.trackLabelled(t, "ann", 8, "model", "small")
		b.settle(t)
		if got := b.byDimension(t, rollup.Property("model")); got != "large 2/6, small 2/11, ~other 2/13" {
			t.Errorf("models: %s", got)
		}
	})

	t.Run("the largest values have names, and the others are put together", func(t *testing.T) {
		for values, want := range map[int]string{
			0: "~other 6/30",
			1: "large 2/6, ~other 4/24", // by events, by the order of names
			3: "large 2/6, small 2/11, ~other 2/13",
		} {
			if got := b.largest(t, rollup.Property("model"), values); got != want {
				t.Errorf("the %d largest: %s, want %s", values, got, want)
			}
		}
		exec(t, b.conn, `UPDATE usage_dimensions SET charged_nanocredits = charged_nanocredits + 1000000 WHERE value = 'small'`)
		if got := b.largest(t, rollup.Property("model"), 1); got != "large 2/6, small 2/11, ~other 2/13" {
			t.Errorf("the largest by events and by charge: %s", got)
		}
		exec(t, b.conn, `UPDATE usage_dimensions SET charged_nanocredits = charged_nanocredits - 1000000 WHERE value = 'small'`)
	})

	t.Run("verification compares them with the events", func(t *testing.T) {
		b.finalSums(t, 48)
		b.verify(t, verify.Options{Record: true})
		exec(t, b.conn, `UPDATE usage_progress SET days_verified_until = days_verified_until - $1`, 72*rollup.Hour)
		b.verify(t, verify.Options{New: true})
		for change, repair := range map[string]string{
			`UPDATE usage_dimensions SET quantity = quantity + 1 WHERE value = 'small'`:                          `UPDATE usage_dimensions SET quantity = quantity - 1 WHERE value = 'small'`,
			`UPDATE usage_dimensions SET value = 'y' WHERE name = 'entity'`:                                      `UPDATE usage_dimensions SET value = 'x' WHERE name = 'entity'`,
			`UPDATE usage_dimensions SET value = 'large, too' WHERE value = 'large'`:                             `UPDATE usage_dimensions SET value = 'large' WHERE value = 'large, too'`,
			`UPDATE usage_values SET value = 'gone' WHERE value = 'small' AND name = 'property:model'`:           `UPDATE usage_values SET value = 'small' WHERE value = 'gone'`,
			`UPDATE usage_dimensions SET day = 0, charged_nanocredits = charged_nanocredits WHERE value = 'a:b'`: `UPDATE usage_dimensions SET day = (SELECT max(day) FROM usage_dimensions) WHERE value = 'a:b'`,
		} {
			exec(t, b.conn, change)
			found := b.broken(t, verify.Options{})
			exec(t, b.conn, repair)
			if !slices.ContainsFunc(found, func(line string) bool { return strings.HasPrefix(line, "usage by entity and property") }) {
				t.Errorf("%s: %v", change, found)
			}
		}
		exec(t, b.conn, `UPDATE usage_values SET org_id = app_id`)
		if found := b.broken(t, verify.Options{New: true}); len(found) == 0 {
			t.Error("the wrong organization is not found")
		}
		exec(t, b.conn, `UPDATE usage_values r SET org_id = s.org_id FROM app_state s WHERE s.app_id = r.app_id`)
		b.verify(t, verify.Options{})
	})

	t.Run("an erasure keeps the sums", func(t *testing.T) {
		deposited := "zoe"
		_, _, err := b.Deposit(t.Context(), store.Deposit{ID: ids.New(), Identity: "zoe", CreditKey: "tokens", Amount: 1_000, IdempotencyKey: &deposited, CreatedAt: moment})
		noError(t, err)
		b.finalSums(t, -48) // a final day gets no more events
		b.trackLabelled(t, "zoe", 9, "model", "large")
		b.settle(t)
		b.finalSums(t, 48)
		_, _, err = b.Erase(t.Context(), store.Erasure{ID: ids.New(), Identity: "zoe", Reason: "asked", IdempotencyKey: "erase"})
		noError(t, err)
		exec(t, b.conn, `DELETE FROM event_properties WHERE wallet_id = (SELECT id FROM wallets WHERE identity LIKE 'erased_%')`) // as its job does
		if got := b.byDimension(t, rollup.Property("model")); got != "large 3/15, small 2/11, ~other 2/13" {
			t.Errorf("models: %s", got)
		}
		b.verify(t, verify.Options{})
	})
}
