package store_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store"
	"purser/store/rollups"
	"purser/store/verify"
)

func (b *books) Rollups() rollups.App { return b.db.Rollups(b.scope) }

// settle adds up all events so far. Its boundary is the database's present millisecond, so
// it first waits for the one after the newest id.
func (b *books) settle(t *testing.T) rollups.RollUpResult {
	t.Helper()
	newest := ids.New()
	milliseconds := int64(binary.BigEndian.Uint64(newest[:8]) >> 16)
	soon(t, "a later millisecond", func() bool {
		return len(texts(t, b.conn, `SELECT 'later' WHERE (extract(epoch FROM clock_timestamp()) * 1000)::bigint > $1::bigint + 1`, milliseconds)) == 1
	})
	s, err := b.Rollups().RollUp(t.Context(), rollups.Alone)
	noError(t, err)
	return s
}

// thisYear are the months that the events of a test are in.
func thisYear(t *testing.T, unit rollup.Unit) rollup.Buckets {
	t.Helper()
	zone, err := rollup.Zone("Europe/Berlin")
	noError(t, err)
	now := time.Now()
	buckets, err := rollup.NewBuckets(now.Add(-24*time.Hour).UnixMilli(), now.Add(24*time.Hour).UnixMilli(), unit, zone)
	noError(t, err)
	return buckets
}

// allUsage reads a query at once, and again by pages: both have the same rows in their
// order.
func (b *books) allUsage(t *testing.T, q rollups.Query) (all rollups.Usage) {
	t.Helper()
	all, err := b.Rollups().Usage(t.Context(), q, rollups.Row{}, 100_000)
	noError(t, err)
	const limit = 3
	var rows []rollups.Row
	for after := (rollups.Row{}); ; after = rows[len(rows)-1] {
		page, err := b.Rollups().Usage(t.Context(), q, after, limit)
		noError(t, err)
		if len(page.Rows) > limit {
			t.Fatalf("a page of %d rows, expected at most %d", len(page.Rows), limit)
		}
		if rows = append(rows, page.Rows...); len(page.Rows) < limit {
			break
		}
	}
	if !slices.Equal(rows, all.Rows) {
		t.Errorf("by pages %v, expected %v", rows, all.Rows)
	}
	if !slices.IsSortedFunc(all.Rows, comparePlaces) {
		t.Errorf("%v are not in order", all.Rows)
	}
	return all
}

// comparePlaces is the documented order of rows: by customer, bucket and group.
func comparePlaces(a, b rollups.Row) int {
	return cmp.Or(slices.Compare(a.WalletID[:], b.WalletID[:]), cmp.Compare(a.Start, b.Start),
		slices.Compare(a.FeatureID[:], b.FeatureID[:]), slices.Compare(a.CreditID[:], b.CreditID[:]), slices.Compare(a.KeyID[:], b.KeyID[:]))
}

// total adds up all rows of a query.
func (b *books) total(t *testing.T, q rollups.Query) (s rollup.Sums) {
	t.Helper()
	for _, r := range b.allUsage(t, q).Rows {
		s = s.Add(r.Sums)
	}
	return s
}

// eventSums are the sums of the stored events, in one line.
const eventSums = `
	SELECT format('%s events (%s deduplicated), quantity %s (%s included), %s nanocredits', count(*), count(deduplicated_from),
		coalesce(sum(quantity) FILTER (WHERE deduplicated_from IS NULL), 0),
		coalesce(sum(CASE WHEN allowance_limit IS NULL OR deduplicated_from IS NOT NULL THEN 0
			WHEN allowance_limit - allowance_used > quantity THEN quantity
			WHEN allowance_limit > allowance_used THEN allowance_limit - allowance_used ELSE 0 END), 0),
		coalesce(sum(amount_nanocredits), 0))
	FROM usage_events`

func sumsLine(s rollup.Sums) string {
	return fmt.Sprintf("%d events (%d deduplicated), quantity %s (%s included), %s nanocredits", s.Events, s.Deduplicated, s.Quantity, s.Included, s.Charged)
}

func TestUsageAddsUpToTheEvents(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	for round := range 3 {
		if round > 0 {
			b.track(t, 7)
		}
		settled := b.settle(t)
		if again := b.settle(t); again.Events != 0 || again.Until < settled.Until {
			t.Errorf("events were added twice: %+v after %+v", again, settled)
		}
		want := texts(t, b.conn, eventSums)[0]
		for name, q := range map[string]rollups.Query{
			"all":                 {Buckets: thisYear(t, rollup.ByMonth)},
			"by feature and day":  {Buckets: thisYear(t, rollup.ByDay), ByFeature: true},
			"by key and hour":     {Buckets: thisYear(t, rollup.ByHour), ByKey: true},
			"of one customer":     {Buckets: thisYear(t, rollup.ByHour), Identity: "ann", ByFeature: true},
			"of one by the month": {Buckets: thisYear(t, rollup.ByMonth), Identity: "ann"},
		} {
			if got := sumsLine(b.total(t, q)); got != want {
				t.Errorf("%s: %s, expected %s", name, got, want)
			}
		}
	}
	t.Run("groups name their feature, credit and key", func(t *testing.T) {
		found := b.allUsage(t, rollups.Query{Buckets: thisYear(t, rollup.ByMonth), ByFeature: true, ByKey: true})
		var names []string
		for _, r := range found.Rows {
			names = append(names, found.Features[r.FeatureID].Key)
			if found.Credits[r.CreditID].Key != "tokens" || found.Keys[r.KeyID].Name != "k" {
				t.Errorf("%+v has no names", r)
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "daily limited plain quoted" {
			t.Errorf("features: %s", got)
		}
	})
	t.Run("one feature", func(t *testing.T) {
		want := texts(t, b.conn, eventSums+` WHERE price_number IN (SELECT p.number FROM prices p JOIN features f ON f.app_id = p.app_id AND f.id = p.feature_id WHERE f.key = 'limited')`)[0]
		if got := sumsLine(b.total(t, rollups.Query{Buckets: thisYear(t, rollup.ByDay), FeatureKey: "limited"})); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	})
	t.Run("customers by page and the top", func(t *testing.T) {
		deposited := "d2"
		_, _, err := b.Deposit(t.Context(), store.Deposit{ID: ids.New(), Identity: "bob", CreditKey: "tokens", Amount: 1_000_000, IdempotencyKey: &deposited, CreatedAt: moment})
		noError(t, err)
		b.trackOf(t, "bob", 1_000)
		b.settle(t)
		var pages []string
		for after := (rollups.Row{}); ; {
			found, next, err := b.Rollups().WalletUsage(t.Context(), rollups.Query{Buckets: thisYear(t, rollup.ByMonth)}, after, 1, 100)
			noError(t, err)
			for _, r := range found.Rows {
				pages = append(pages, found.Identities[r.WalletID])
			}
			if next.IsZero() {
				break
			}
			after = rollups.Row{WalletID: next}
		}
		slices.Sort(pages)
		if got := strings.Join(slices.Compact(pages), " "); got != "ann bob" {
			t.Errorf("pages: %v", pages)
		}
		for _, byFeature := range []bool{true, false} {
			q := rollups.Query{Buckets: thisYear(t, rollup.ByHour), ByFeature: byFeature}
			whole, _, err := b.Rollups().WalletUsage(t.Context(), q, rollups.Row{}, 100, 100)
			noError(t, err)
			var rows []rollups.Row
			for after := (rollups.Row{}); ; after = rows[len(rows)-1] {
				page, _, err := b.Rollups().WalletUsage(t.Context(), q, after, 100, 1)
				noError(t, err)
				if len(page.Rows) == 0 {
					break
				}
				if len(page.Rows) > 1 {
					t.Fatalf("a page of one row has %d", len(page.Rows))
				}
				rows = append(rows, page.Rows...)
			}
			if !slices.Equal(rows, whole.Rows) || !slices.IsSortedFunc(rows, comparePlaces) || len(rows) < 2 {
				t.Errorf("row by row %v, expected %v", rows, whole.Rows)
			}
		}
		top, err := b.Rollups().Top(t.Context(), time.Now().UnixMilli(), 1)
		noError(t, err)
		if len(top) != 1 || top[0].Identity != "bob" || top[0].Credit != "tokens" || top[0].Charged.String() != "3500" {
			t.Errorf("top: %+v", top)
		}
		all := b.allUsage(t, rollups.Query{Buckets: thisYear(t, rollup.ByMonth)})
		for _, c := range []struct {
			feature, want string
			by            rollups.Measure
			credit        ids.ID
		}{
			{"", "ann bob", rollups.Events, ids.ID{}},
			{"", "bob ann", rollups.Charged, all.Rows[0].CreditID},
			{"plain", "bob ann", rollups.Quantity, all.Rows[0].CreditID},
			{"limited", "ann", rollups.Events, ids.ID{}},
			{"", "", rollups.Charged, ids.New()},
		} {
			largest, ok, err := b.Rollups().LargestWallets(t.Context(), rollups.Query{Buckets: thisYear(t, rollup.ByMonth), FeatureKey: c.feature}, c.by, c.credit, 10)
			noError(t, err)
			var names []string
			for _, w := range largest {
				names = append(names, w.Identity)
			}
			if got := strings.Join(names, " "); got != c.want || !ok {
				t.Errorf("by %s of %q: %s, expected %s", c.by, c.feature, got, c.want)
			}
		}
		largest, _, err := b.Rollups().LargestWallets(t.Context(), rollups.Query{Buckets: thisYear(t, rollup.ByMonth)}, rollups.Events, ids.ID{}, 1)
		noError(t, err)
		if len(largest) != 1 || largest[0].Identity != "ann" {
			t.Errorf("the largest one is %v", largest)
		}
	})
}

// trackOf records a plain event of an identity.
func (b *books) trackOf(t *testing.T, identity string, quantity int64) {
	t.Helper()
	b.next++
	d, err := b.usage.Track(store.Usage{Scope: b.scope, KeyID: b.key, Identity: identity, FeatureKey: "plain",
		Usage: metering.Usage{TransactionID: ids.New(), EventID: fmt.Sprint("e", b.next), Quantity: quantity}})
	noError(t, err)
	noError(t, d.Err())
}

// An event whose transaction stays open gets its id long before it commits. Until it has
// ended, nothing behind it is final; then it is added like any other.
func TestUsageWaitsForOpenTransactions(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	const margin = time.Millisecond
	late := connect(t, b.url)
	exec(t, late, `BEGIN`)
	exec(t, late, `
		INSERT INTO usage_events (app_id, org_id, tx_id, wallet_id, key_id, seq, price_number, quantity, created_at, amount_nanocredits, balance_after, event_id)
		SELECT e.app_id, e.org_id, $1, e.wallet_id, e.key_id, 1000, e.price_number, 1, e.created_at, 0, e.balance_after, 'late'
		FROM usage_events e WHERE e.event_id = 'e0'`, ids.New())
	b.track(t, 5)
	for range 5 {
		s, err := b.Rollups().RollUp(t.Context(), margin)
		noError(t, err)
		if s.Events != 0 || !s.Waiting {
			t.Fatalf("%+v while a transaction is open", s)
		}
	}
	exec(t, late, `COMMIT`)
	want := texts(t, b.conn, eventSums)[0]
	soon(t, "every event is added", func() bool {
		_, err := b.Rollups().RollUp(t.Context(), margin)
		noError(t, err)
		return sumsLine(b.total(t, rollups.Query{Buckets: thisYear(t, rollup.ByMonth)})) == want
	})
	if got := sumsLine(b.total(t, rollups.Query{Buckets: thisYear(t, rollup.ByMonth)})); !strings.HasPrefix(got, "26 events") {
		t.Errorf("%s", got)
	}
}

// lateContext has a deadline that has passed, and does not end.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

// A run adds what it has time for, and is no failure.
func TestARunOfUsageStopsInTime(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	late := lateContext{t.Context()}
	run := func(events int64) rollups.RollUpResult {
		t.Helper()
		s, err := b.Rollups().RollUp(late, rollups.Alone)
		noError(t, err)
		if s.Events != events || !s.Waiting {
			t.Errorf("%+v, expected %d events and more", s, events)
		}
		return s
	}
	first := run(0)
	start := time.Now().UnixMilli() - 9*rollup.Hour
	exec(t, b.conn, `UPDATE usage_progress SET added = $1`, start)
	exec(t, b.conn, `UPDATE usage_events SET tx_id = $1 WHERE event_id IN ('e1', 'e2')`, store.IDAt(start+60_000))
	second := run(2)
	if first.Added != rollup.Hour || second.Added != start+rollup.Hour {
		t.Errorf("the runs came to %d and %d", first.Added, second.Added)
	}
	if s, err := b.Rollups().RollUp(t.Context(), rollups.Alone); err != nil || s.Events == 0 {
		t.Errorf("a run with time: %+v, %v", s, err)
	}
	exec(t, b.conn, `UPDATE usage_progress SET days_until = until - until % 86400000 - 100 * 86400000::bigint`)
	run(0)
	if left := texts(t, b.conn, `SELECT ((until - days_until) / 86400000)::text FROM usage_progress`)[0]; left != "69" {
		t.Errorf("%s of 100 days are left, expected all but those of one transaction", left)
	}
}

// finalSums moves the end of the final hours past the current one, as time would, or back.
func (b *books) finalSums(t *testing.T, hours int) {
	t.Helper()
	exec(t, b.conn, `UPDATE usage_progress SET until = until + $1`, int64(hours)*rollup.Hour)
}

func TestVerifyFindsWrongSums(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.settle(t)
	b.finalSums(t, 2)
	passes := map[string]verify.Options{"full": {}, "new": {New: true}}
	b.verify(t, verify.Options{Record: true}) // compares all hours, and says so
	b.verify(t, verify.Options{New: true})
	exec(t, b.conn, `UPDATE usage_progress SET verified_until = $1`, rollup.HourOf(time.Now().UnixMilli())-rollup.Hour)
	b.verify(t, verify.Options{New: true})
	for name, c := range map[string]struct{ corrupt, repair, rule string }{
		"an amount of a customer": {
			`UPDATE usage_hours SET charged_nanocredits = charged_nanocredits + 1 WHERE feature_id = (SELECT id FROM features WHERE key = 'plain')`,
			`UPDATE usage_hours SET charged_nanocredits = charged_nanocredits - 1 WHERE feature_id = (SELECT id FROM features WHERE key = 'plain')`,
			"usage by hour"},
		"a quantity of all": {
			`UPDATE usage_totals SET included = included + 1`, `UPDATE usage_totals SET included = included - 1`, "usage of all customers"},
		"sums without events": {
			`INSERT INTO usage_hours SELECT app_id, wallet_id, hour, feature_id, app_id, org_id, events, deduplicated, quantity, included, charged_nanocredits FROM usage_hours LIMIT 1`,
			`DELETE FROM usage_hours WHERE credit_id = app_id`, "usage by hour"},
		"totals without events": {
			`INSERT INTO usage_totals SELECT app_id, hour, feature_id, credit_id, gen_random_uuid(), org_id, 1, 0, 1, 0, 0 FROM usage_totals LIMIT 1`,
			`DELETE FROM usage_totals WHERE key_id NOT IN (SELECT id FROM api_keys)`, "usage of all customers"},
		"events without sums": {
			`CREATE TABLE kept AS SELECT * FROM usage_hours; DELETE FROM usage_hours`, `INSERT INTO usage_hours SELECT * FROM kept; DROP TABLE kept`, "usage by hour"},
		"the wrong organization": {
			`UPDATE usage_totals SET org_id = app_id`, `UPDATE usage_totals r SET org_id = s.org_id FROM app_state s WHERE s.app_id = r.app_id`, "every row names the organization"},
	} {
		for statement := range strings.SplitSeq(c.corrupt, ";") {
			exec(t, b.conn, statement)
		}
		for pass, o := range passes {
			found := b.broken(t, o)
			if !slices.ContainsFunc(found, func(line string) bool { return strings.HasPrefix(line, c.rule) }) {
				t.Errorf("%s, %s: %v", name, pass, found)
			}
		}
		for statement := range strings.SplitSeq(c.repair, ";") {
			exec(t, b.conn, statement)
		}
	}
	b.verify(t, verify.Options{})
	t.Run("hours of no wallet", func(t *testing.T) {
		exec(t, b.conn, `INSERT INTO usage_hours SELECT app_id, app_id, hour, feature_id, credit_id, org_id, events, deduplicated, quantity, included, charged_nanocredits FROM usage_hours LIMIT 1`)
		for pass, o := range passes {
			if found := b.broken(t, o); len(found) != 1 {
				t.Errorf("%s: %v", pass, found)
			}
		}
		exec(t, b.conn, `DELETE FROM usage_hours WHERE wallet_id = app_id`)
	})
	t.Run("a month", func(t *testing.T) {
		exec(t, b.conn, `UPDATE usage_months SET events = events + 1`)
		if found := b.broken(t, verify.Options{}); len(found) != 1 || !strings.HasPrefix(found[0], "usage by month") {
			t.Errorf("%v", found)
		}
		exec(t, b.conn, `UPDATE usage_months SET events = events - 1`)
	})
	t.Run("new hours are compared once they are final", func(t *testing.T) {
		b.finalSums(t, -2) // a final day gets no more events
		b.track(t, 3)
		b.settle(t)
		b.finalSums(t, 2)
		b.verify(t, verify.Options{New: true, Record: true})
		b.verify(t, verify.Options{Record: true})
	})
}

// A full pass keeps the sums of one window of days beside what it has read.
func TestAllHoursAreVerifiedInWindows(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.settle(t)
	const later = 1000 * 24 * rollup.Hour
	b.trackOf(t, "ann", 3)
	exec(t, b.conn, `UPDATE app_state SET clock_offset = $1`, later)
	exec(t, b.conn, `UPDATE usage_events SET created_at = created_at + $1 WHERE seq = (SELECT max(seq) FROM usage_events)`, later)
	for range 3 { // a time is final after two
		b.settle(t)
	}
	b.finalSums(t, 48)
	proxy, err := startProxy(b.url)
	noError(t, err)
	t.Cleanup(proxy.Close)
	const read = "FROM usage_totals t WHERE"
	var windows atomic.Int64
	var count func()
	count = func() {
		windows.Add(1)
		proxy.Before(read, count)
	}
	proxy.Before(read, count)
	v, err := openStore(t, proxy.URL()).Verification(b.scope).Verify(t.Context(), verify.Options{})
	if noError(t, err); windows.Load() != 2 || len(v.Differences)+len(v.Unfinished) > 0 {
		t.Errorf("read in %d windows: %v", windows.Load(), v.Differences)
	}
	const otherHour = `UPDATE usage_totals SET hour = hour - hour % 86400000 + (hour + 43200000) % 86400000` // of the same day
	for change, repair := range map[string]string{
		`UPDATE usage_totals SET events = events + 1 WHERE hour = (SELECT max(hour) FROM usage_totals)`:                             `UPDATE usage_totals SET events = events - 1 WHERE hour = (SELECT max(hour) FROM usage_totals)`,
		`INSERT INTO usage_totals SELECT app_id, 0, feature_id, credit_id, key_id, org_id, 1, 0, 1, 0, 0 FROM usage_totals LIMIT 1`: `DELETE FROM usage_totals WHERE hour = 0`,
		otherHour: otherHour,
	} {
		exec(t, b.conn, change)
		found := b.broken(t, verify.Options{})
		exec(t, b.conn, repair)
		if !slices.ContainsFunc(found, func(line string) bool { return strings.HasPrefix(line, "usage of all customers") }) {
			t.Errorf("%s: %v", change, found)
		}
	}
	b.verify(t, verify.Options{})
}

// Prices never change, and an application may have many.
func TestAVerificationLoadsEachPriceOnce(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.settle(t)
	b.finalSums(t, 48)
	proxy, err := startProxy(b.url)
	noError(t, err)
	t.Cleanup(proxy.Close)
	const load = "SELECT number, feature_id, credit_id, pricing_mode"
	var again atomic.Bool
	proxy.Before(load, func() { // in a snapshot from before the change
		proxy.Before(load, func() { again.Store(true) })
		if _, err := b.conn.Exec(context.Background(), `UPDATE prices SET feature_id = (SELECT id FROM features WHERE key = 'quoted')`); err != nil {
			t.Error(err)
		}
	})
	v, err := openStore(t, proxy.URL()).Verification(b.scope).Verify(t.Context(), verify.Options{})
	noError(t, err)
	for _, d := range v.Differences {
		if strings.HasPrefix(d.Check, "usage by entity") {
			t.Errorf("what was loaded is loaded again: %s", d.Detail)
		}
	}
	if !again.Load() {
		t.Error("new prices are never loaded")
	}
}

func TestFinance(t *testing.T) {
	t.Parallel()
	now := time.Now().UnixMilli()
	b := keepBooks(t)
	noError(t, b.Rollups().RecordLiability(t.Context()))
	exec(t, b.conn, `
		INSERT INTO provider_payments (app_id, source_kind, source_id, org_id, wallet_id, amount_cents, currency, free, refunded_cents, created_at)
		SELECT w.app_id, t.kind, t.kind || n, w.org_id, w.id, t.cents, 'usd', t.cents = 0, t.cents / 10, $1
		FROM wallets w, (VALUES ('invoice', 2900), ('session', 1000), ('free_period', 0)) AS t (kind, cents), generate_series(1, 2) n`, now)
	f, err := b.Rollups().Finance(t.Context(), now-1, now+1, now)
	noError(t, err)
	want := fmt.Sprint([]rollups.Revenue{
		{Day: metering.DayOf(now).Start, Currency: "USD", AmountCents: 5800, ReturnedCents: 580},
		{Day: metering.DayOf(now).Start, Currency: "USD", TopUp: true, AmountCents: 2000, ReturnedCents: 200},
	})
	if got := fmt.Sprint(f.Revenue); got != want {
		t.Errorf("revenue: %s, expected %s", got, want)
	}
	held := texts(t, b.conn, `SELECT sum(amount_nanocredits)::text FROM balances`)[0]
	if len(f.Liability) != 1 || f.Liability[0].Credit != "tokens" || f.Liability[0].Held.String() != held || !f.Liability[0].Debt.IsZero() {
		t.Errorf("liability: %+v, expected %s", f.Liability, held)
	}
	noError(t, b.db.Stats().WriteStats(t.Context()))
	f, err = b.Rollups().Finance(t.Context(), now-1, now+86_400_000, now)
	noError(t, err)
	if len(f.Flows) == 0 || f.Flows[0].Credit != "tokens" {
		t.Errorf("flows: %+v", f.Flows)
	}
	if f, err = b.Rollups().Finance(t.Context(), now+1, now+2, now+30*86_400_000); err != nil || len(f.Revenue) != 0 || len(f.Liability) != 0 {
		t.Errorf("another time: %+v, %v", f, err)
	}
}

func TestRevenueOfFinalDays(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	today := metering.DayOf(time.Now().UnixMilli())
	const day = 24 * rollup.Hour
	// Payments of a week, some returned, some in another currency, and free periods.
	exec(t, b.conn, `
		INSERT INTO provider_payments (app_id, source_kind, source_id, org_id, wallet_id, amount_cents, currency, free, refunded_cents, disputed_cents, created_at)
		SELECT w.app_id, CASE n % 3 WHEN 0 THEN 'session' WHEN 1 THEN 'invoice' ELSE 'free_period' END, 'p' || n, w.org_id, w.id,
			CASE WHEN n % 3 = 2 THEN 0 ELSE 100 + n END, CASE WHEN n % 5 = 0 THEN 'eur' ELSE 'usd' END, n % 3 = 2,
			CASE WHEN n % 7 = 0 AND n % 3 <> 2 THEN 50 ELSE 0 END, CASE WHEN n % 11 = 0 AND n % 3 <> 2 THEN 9 ELSE 0 END, $1::bigint - n * $2::bigint
		FROM (SELECT * FROM wallets LIMIT 1) w, generate_series(0, 42) n`, today.Start, 4*rollup.Hour)
	read := func(from, to int64) string {
		f, err := b.Rollups().Finance(t.Context(), from, to, today.Start)
		noError(t, err)
		return fmt.Sprint(f.Revenue)
	}
	ranges := map[string][2]int64{
		"week": {today.Start - 7*day, today.End}, "two days": {today.Start - 3*day, today.Start - day}, "parts of days": {today.Start - 5*day - rollup.Hour, today.Start - day/2},
		"a part of a day": {today.Start - day/2, today.Start - day/4}, "before": {0, today.Start - 6*day},
	}
	before := map[string]string{}
	for name, r := range ranges {
		before[name] = read(r[0], r[1])
	}
	stored := func() int { return len(texts(t, b.conn, `SELECT DISTINCT day::text FROM revenue_days`)) }
	b.settle(t)
	exec(t, b.conn, `UPDATE usage_progress SET until = $1, revenue_until = 0`, today.Start)
	exec(t, b.conn, `DELETE FROM revenue_days`)
	b.settle(t)
	if days := stored(); days != 6 {
		t.Errorf("%d days have sums within the delay of a payment, expected the 6 before yesterday", days)
	}
	exec(t, b.conn, `UPDATE usage_progress SET until = $1`, today.Start+rollup.Hour)
	exec(t, b.conn, `UPDATE app_state SET clock_offset = 1`)
	b.settle(t)
	if days := stored(); days != 6 {
		t.Errorf("%d days have sums while a test clock is ahead, expected 6", days)
	}
	exec(t, b.conn, `UPDATE app_state SET clock_offset = 0`)
	b.settle(t)
	b.settle(t) // nothing is left to do
	if days := stored(); days != 7 {
		t.Errorf("%d days have sums, expected 7", days)
	}
	for name, r := range ranges {
		if got := read(r[0], r[1]); got != before[name] {
			t.Errorf("%s: %s, expected %s", name, got, before[name])
		}
	}
	days := func(o verify.Options) (lines []string) {
		for _, line := range b.broken(t, o) {
			if strings.HasPrefix(line, "revenue by day") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if found := days(verify.Options{}); len(found) != 0 {
		t.Errorf("verification of sound sums: %v", found)
	}
	exec(t, b.conn, `UPDATE usage_progress SET days_verified_until = $1`, today.Start-3*day)
	for _, corrupt := range [][2]string{
		{`UPDATE revenue_days SET amount_cents = amount_cents + 1`, `UPDATE revenue_days SET amount_cents = amount_cents - 1`},
		{`UPDATE revenue_days SET org_id = app_id`, `UPDATE revenue_days r SET org_id = s.org_id FROM app_state s WHERE s.app_id = r.app_id`},
		{`UPDATE provider_payments SET amount_cents = amount_cents + 1 WHERE NOT free`, `UPDATE provider_payments SET amount_cents = amount_cents - 1 WHERE NOT free`},
	} {
		exec(t, b.conn, corrupt[0])
		for _, o := range []verify.Options{{}, {New: true}} {
			if found := days(o); len(found) == 0 {
				t.Errorf("%s is not found", corrupt[0])
			}
		}
		exec(t, b.conn, corrupt[1])
	}
	exec(t, b.conn, `UPDATE revenue_days SET amount_cents = amount_cents + 1`)
	if r := ranges["week"]; read(r[0], r[1]) == before["week"] {
		t.Error("a day that was added up is not read from its sums")
	}
}
