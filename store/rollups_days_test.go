package store_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"purser/metering"
	"purser/metering/rollup"
	"purser/store/rollups"
	"purser/store/verify"
)

// eventsOf lists how many events each feature has in the two days around now, read by
// buckets of a unit of UTC.
func (b *books) eventsOf(t *testing.T, unit rollup.Unit) string {
	t.Helper()
	zone, err := rollup.Zone("")
	noError(t, err)
	day := time.Now().UTC().Truncate(24 * time.Hour)
	buckets, err := rollup.NewBuckets(day.Add(-24*time.Hour).UnixMilli(), day.Add(48*time.Hour).UnixMilli(), unit, zone)
	noError(t, err)
	found := b.allUsage(t, rollups.Query{Buckets: buckets, ByFeature: true, ByKey: true})
	events := map[string]rollup.Sums{}
	for _, r := range found.Rows {
		key := fmt.Sprint(r.FeatureID, r.CreditID, r.KeyID)
		events[key] = events[key].Add(r.Sums)
	}
	return fmt.Sprint(events)
}

func TestUsageByDayIsThatOfItsHours(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.settle(t)
	byHour := b.eventsOf(t, rollup.ByHour)
	if got := b.eventsOf(t, rollup.ByDay); got != byHour {
		t.Errorf("before the day is final, by day %s, by hour %s", got, byHour)
	}
	if rows := len(texts(t, b.conn, `SELECT day::text FROM usage_total_days`)); rows != 0 {
		t.Errorf("%d sums of a day that is not final", rows)
	}
	b.finalSums(t, 48)
	b.settle(t)
	b.settle(t) // nothing is left to do
	if rows := len(texts(t, b.conn, `SELECT day::text FROM usage_total_days`)); rows == 0 {
		t.Error("no sums of a day that is final")
	}
	if got := b.eventsOf(t, rollup.ByDay); got != byHour {
		t.Errorf("by day %s, by hour %s", got, byHour)
	}
	b.verify(t, verify.Options{Record: true})
	exec(t, b.conn, `UPDATE usage_progress SET days_verified_until = days_verified_until - $1`, 96*rollup.Hour)
	for corrupt, repair := range map[string]string{
		`UPDATE usage_total_days SET quantity = quantity + 1`: `UPDATE usage_total_days SET quantity = quantity - 1`,
		`UPDATE usage_total_days SET org_id = app_id`:         `UPDATE usage_total_days r SET org_id = s.org_id FROM app_state s WHERE s.app_id = r.app_id`,
		`UPDATE usage_total_days SET day = day - 86400000`:    `UPDATE usage_total_days SET day = day + 86400000`,
	} {
		exec(t, b.conn, corrupt)
		if b.eventsOf(t, rollup.ByHour) != byHour {
			t.Errorf("%s: hours are read from days", corrupt)
		}
		for _, o := range []verify.Options{{}, {New: true}} {
			if found := b.broken(t, o); !slices.ContainsFunc(found, func(line string) bool { return strings.HasPrefix(line, "usage by day") }) {
				t.Errorf("%s: %v", corrupt, found)
			}
		}
		exec(t, b.conn, repair)
	}
	exec(t, b.conn, `UPDATE usage_total_days SET events = events + 1`)
	if b.eventsOf(t, rollup.ByDay) == byHour {
		t.Error("a final day is not read from its sums")
	}
}

// usageByDay is what each feature used in the buckets of a week until now, by the days of
// a zone. It is read by day, or added up here by hour.
func (b *books) usageByDay(t *testing.T, zone string, now time.Time, byHour bool) (sums map[string]rollup.Sums) {
	t.Helper()
	location, err := rollup.Zone(zone)
	noError(t, err)
	days, err := rollup.NewBuckets(now.Add(-6*24*time.Hour).UnixMilli(), now.UnixMilli()+1, rollup.ByDay, location)
	noError(t, err)
	read := days
	if byHour {
		read, err = rollup.NewBuckets(days.From(), days.End, rollup.ByHour, location)
		noError(t, err)
	}
	found := b.allUsage(t, rollups.Query{Buckets: read, ByFeature: true})
	sums = map[string]rollup.Sums{}
	for _, r := range found.Rows {
		if r.Events <= 0 {
			t.Errorf("a row with %d events", r.Events)
		}
		key := fmt.Sprint(days.Find(r.Start), r.FeatureID, r.CreditID)
		sums[key] = sums[key].Add(r.Sums)
	}
	return sums
}

func TestUsageByTheDaysOfAZone(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.settle(t)
	// Every third hour of the days before, and of other sizes.
	exec(t, b.conn, `
		INSERT INTO usage_totals (app_id, hour, feature_id, credit_id, key_id, org_id, events, deduplicated, quantity, included, charged_nanocredits)
		SELECT app_id, hour - n * $1::bigint, feature_id, credit_id, key_id, org_id, events + n, deduplicated, quantity + 7 * n, included, charged_nanocredits + n * n
		FROM usage_totals, generate_series(1, 170, 3) AS n`, rollup.Hour)
	// Features that were used in one hour only, which is on another day elsewhere.
	exec(t, b.conn, `
		INSERT INTO usage_totals (app_id, hour, feature_id, credit_id, key_id, org_id, events, deduplicated, quantity, included, charged_nanocredits)
		SELECT app_id, hour - hour % (24 * $1::bigint) - (3 * 24 - n) * $1::bigint, gen_random_uuid(), credit_id, key_id, org_id, 1, 0, 1, 0, 5
		FROM (SELECT * FROM usage_totals ORDER BY hour DESC LIMIT 1) last, generate_series(1, 23, 22) AS n`, rollup.Hour)
	exec(t, b.conn, `UPDATE usage_progress SET days_until = 0`)
	b.finalSums(t, 48)
	b.settle(t)
	if days := len(texts(t, b.conn, `SELECT DISTINCT day::text FROM usage_total_days`)); days < 7 {
		t.Fatalf("%d days have sums", days)
	}
	now := time.Now()
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "America/Los_Angeles", "Pacific/Auckland", "Pacific/Kiritimati", "Pacific/Pago_Pago"} {
		if want, got := b.usageByDay(t, zone, now, true), b.usageByDay(t, zone, now, false); !maps.Equal(want, got) || len(got) < 5 {
			t.Errorf("%s: by day %v, by hour %v", zone, got, want)
		}
	}
}

func TestPassesOverNewEntriesRepeatADifferenceOfSums(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.settle(t)
	b.finalSums(t, 2)
	const day = 24 * rollup.Hour
	today := metering.DayOf(time.Now().UnixMilli()).Start
	for rule, statements := range map[string][2]string{
		"revenue by day": {
			fmt.Sprintf(`INSERT INTO revenue_days (app_id, day, currency, topup, org_id, amount_cents) SELECT app_id, %d, 'usd', true, org_id, 100 FROM app_state`, today-2*day),
			`DELETE FROM revenue_days`},
		"every row names the organization": {
			`UPDATE usage_hours SET org_id = app_id`, `UPDATE usage_hours r SET org_id = s.org_id FROM app_state s WHERE s.app_id = r.app_id`},
	} {
		exec(t, b.conn, `UPDATE usage_progress SET verified_until = $1, days_verified_until = $1, revenue_until = $2`, today-2*day, today)
		b.verify(t, verify.Options{New: true})
		exec(t, b.conn, statements[0])
		for pass := range 2 {
			found := b.broken(t, verify.Options{New: true, Record: true})
			if len(found) == 0 || slices.ContainsFunc(found, func(line string) bool { return !strings.HasPrefix(line, rule) }) {
				t.Errorf("%s, pass %d: %v", rule, pass+1, found)
			}
		}
		exec(t, b.conn, statements[1])
	}
	b.verify(t, verify.Options{New: true, Record: true})
}
