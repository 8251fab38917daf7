package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store/rollups"
	"purser/store/verify"
)

// largestOf are the largest values in SQL, by which those of packed days are judged.
const largestOf = `
	WITH kept AS (
		SELECT s.value FROM (
			SELECT t.value, row_number() OVER (ORDER BY sum(t.events) DESC, t.value) AS by_events, row_number() OVER (ORDER BY sum(t.charged_nanocredits) DESC, t.value) AS by_charge
			FROM usage_dimensions t LEFT JOIN features f ON f.app_id = t.app_id AND f.id = t.feature_id
			WHERE t.name = $1 AND t.day >= $2 AND t.day < $3 AND ($5 = '' OR f.key = $5) GROUP BY t.value
		) s WHERE s.by_events <= $6 OR s.by_charge <= $6
	)
	SELECT format('%s %s %s/%s/%s/%s/%s', ($4::bigint[])[width_bucket(t.day, $4::bigint[])], coalesce(k.value, '~other'), sum(t.events), sum(t.deduplicated), sum(t.quantity),
		sum(t.included), sum(t.charged_nanocredits))
	FROM usage_dimensions t LEFT JOIN features f ON f.app_id = t.app_id AND f.id = t.feature_id LEFT JOIN kept k ON k.value = t.value
	WHERE t.name = $1 AND t.day >= $2 AND t.day < $3 AND ($5 = '' OR f.key = $5)
	GROUP BY width_bucket(t.day, $4::bigint[]), coalesce(k.value, '~other'), t.credit_id`

// fillValues writes sums of two features and forty values on the days before today, some
// of them past 64 bits.
func fillValues(t *testing.T, b *books, name string, today int64, days int) {
	t.Helper()
	exec(t, b.conn, `
		INSERT INTO usage_dimensions (app_id, name, day, feature_id, credit_id, value, org_id, events, deduplicated, quantity, included, charged_nanocredits)
		SELECT s.app_id, $1, $2::bigint - d * 86400000::bigint, f.id, f.credit_id, 'value ' || v, s.org_id, r.n % 50, r.n % 3, r.n * 7, r.n * 3, (r.n % 41) * 1e18 + (r.n % 5)
		FROM app_state s, features f, generate_series(1, $3::int) d, generate_series(1, 40) v
		CROSS JOIN LATERAL int4(('x' || substr(md5(f.key || '/' || d || '/' || v), 1, 7))::bit(28)) AS r (n)
		WHERE f.app_id = s.app_id AND f.key IN ('plain', 'quoted') AND r.n % 4 > 0`, name, today, days)
	exec(t, b.conn, `
		INSERT INTO usage_values (app_id, day, name, value, org_id)
		SELECT DISTINCT app_id, day, name, value, org_id FROM usage_dimensions WHERE name = $1`, name)
}

func TestLargestValuesAreThoseOfTheRows(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.settle(t)
	const property = "property:model"
	today := metering.DayOf(time.Now().UnixMilli()).Start
	fillValues(t, b, property, today, 9)
	exec(t, b.conn, `INSERT INTO usage_dimensions SELECT app_id, name, $1, feature_id, credit_id, value, org_id, events, deduplicated, quantity, included, charged_nanocredits
		FROM usage_dimensions WHERE name = $2 AND day = $3`, today, property, today-24*rollup.Hour)
	zone, err := rollup.Zone("")
	noError(t, err)
	compare := func(when string) {
		t.Helper()
		for _, first := range []int64{9, 4, 0} {
			buckets, err := rollup.NewBuckets(today-first*24*rollup.Hour, today+24*rollup.Hour, rollup.ByDay, zone)
			noError(t, err)
			for _, b2 := range []rollup.Buckets{buckets, buckets.Whole()} {
				for _, feature := range []string{"", "plain"} {
					for _, values := range []int{0, 1, 5, 100} {
						found, err := b.Rollups().LargestValues(t.Context(), rollups.Query{Buckets: b2, FeatureKey: feature, Dimension: rollup.Property("model"), ByFeature: true}, values)
						noError(t, err)
						var got []string
						for _, r := range found.Rows {
							got = append(got, fmt.Sprintf("%d %s %d/%d/%s/%s/%s", r.Start, r.Value, r.Events, r.Deduplicated, r.Quantity, r.Included, r.Charged))
						}
						want := texts(t, b.conn, largestOf, property, b2.From(), b2.End, b2.Starts, feature, values)
						slices.Sort(got)
						slices.Sort(want)
						if !slices.Equal(got, want) {
							t.Errorf("%s, %d days before, %d buckets, feature %q, %d values:\n%s\nwant\n%s", when, first, len(b2.Starts), feature, values, strings.Join(got, "\n"), strings.Join(want, "\n"))
						}
					}
				}
			}
		}
	}
	compare("as rows")
	b.settle(t)
	b.settle(t) // nothing is left to do
	if rows := texts(t, b.conn, `SELECT format('%s %s', count(DISTINCT day), count(*) FILTER (WHERE day >= $1)) FROM usage_value_days`, today); rows[0] != "9 0" {
		t.Errorf("days that are packed, and packs of a day that is not final: %v", rows)
	}
	compare("packed")
	exec(t, b.conn, `UPDATE usage_progress SET values_until = $1`, today-3*24*rollup.Hour)
	compare("packed in part")
	exec(t, b.conn, `UPDATE usage_progress SET values_until = $1`, today)

	t.Run("verification compares them with the rows", func(t *testing.T) {
		packs := func(o verify.Options) (found []string) {
			for _, line := range b.broken(t, o) {
				if strings.HasPrefix(line, "packed usage by entity and property") || strings.Contains(line, "organization") {
					found = append(found, line)
				}
			}
			return found
		}
		if found := packs(verify.Options{}); len(found) > 0 {
			t.Fatalf("%v", found)
		}
		exec(t, b.conn, `UPDATE usage_progress SET days_verified_until = $1`, today-7*24*rollup.Hour)
		for change, repair := range map[string]string{
			`UPDATE usage_value_days SET quantity = quantity + 1 WHERE day = $1`:                          `UPDATE usage_value_days SET quantity = quantity - 1 WHERE day = $1`,
			`UPDATE usage_value_days SET packed = packed || '\x00' WHERE day = $1`:                        `UPDATE usage_value_days SET packed = substring(packed FOR length(packed) - 1) WHERE day = $1`,
			`UPDATE usage_value_days SET org_id = app_id WHERE day = $1`:                                  `UPDATE usage_value_days r SET org_id = s.org_id FROM app_state s WHERE s.app_id = r.app_id AND day = $1`,
			`UPDATE usage_value_days SET name = 'property:mode' WHERE day = $1`:                           `UPDATE usage_value_days SET name = 'property:model' WHERE day = $1`,
			`UPDATE usage_value_days SET credit_id = app_id WHERE day = $1`:                               `UPDATE usage_value_days SET credit_id = (SELECT id FROM credits) WHERE day = $1`,
			`UPDATE usage_dimensions SET events = events + 1 WHERE day = $1 AND value = 'value 3'`:        `UPDATE usage_dimensions SET events = events - 1 WHERE day = $1 AND value = 'value 3'`,
			`UPDATE usage_dimensions SET value = 'value 03' WHERE day = $1 AND value = 'value 3'`:         `UPDATE usage_dimensions SET value = 'value 3' WHERE day = $1 AND value = 'value 03'`,
			`UPDATE usage_value_days SET feature_id = app_id WHERE day = $1 AND feature_id::text ~ '^00'`: `UPDATE usage_value_days SET feature_id = '00000000-0000-0000-0000-000000000000' WHERE day = $1 AND feature_id = app_id`,
		} {
			exec(t, b.conn, change, today-8*24*rollup.Hour)
			for _, o := range []verify.Options{{}, {New: true}} {
				if len(packs(o)) == 0 {
					t.Errorf("%s is not found by %+v", change, o)
				}
			}
			exec(t, b.conn, repair, today-8*24*rollup.Hour)
		}
		if found := packs(verify.Options{}); len(found) > 0 {
			t.Fatalf("%v", found)
		}
	})
	exec(t, b.conn, `UPDATE usage_value_days SET packed = '\x01'`)
	last, err := rollup.NewBuckets(today-24*rollup.Hour, today, rollup.ByDay, zone)
	noError(t, err)
	found, err := b.Rollups().LargestValues(t.Context(), rollups.Query{Buckets: last, Dimension: rollup.Property("model")}, 5)
	noError(t, err)
	if len(found.Rows) != 0 {
		t.Errorf("a packed day is not read from its packs: %+v", found.Rows)
	}
}

// An event of two days ago whose transaction is still open holds back the days behind it:
// once it has ended, it is in their sums like any other.
func TestDaysWaitForOpenTransactions(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	const margin = time.Millisecond
	day := metering.DayOf(time.Now().UnixMilli()).Start - 48*rollup.Hour
	late := connect(t, b.url)
	exec(t, late, `BEGIN`)
	exec(t, late, `
		INSERT INTO usage_events (app_id, org_id, tx_id, wallet_id, key_id, seq, price_number, quantity, created_at, amount_nanocredits, balance_after, event_id, entity_id)
		SELECT e.app_id, e.org_id, (lpad(to_hex($1::bigint), 12, '0') || '70008000000000000000')::uuid, e.wallet_id, e.key_id, 1000, e.price_number, 3, $1::bigint, 5, e.balance_after, 'late', 'late one'
		FROM usage_events e WHERE e.event_id = 'e0'`, day+rollup.Hour)
	for range 3 {
		s, err := b.Rollups().RollUp(t.Context(), margin)
		noError(t, err)
		if s.Events != 0 || !s.Waiting {
			t.Fatalf("%+v while a transaction is open", s)
		}
	}
	if days := texts(t, b.conn, `SELECT day::text FROM usage_value_days UNION ALL SELECT day::text FROM usage_total_days`); len(days) != 0 {
		t.Fatalf("final are %v", days)
	}
	exec(t, late, `COMMIT`)
	soon(t, "the day is added up", func() bool {
		_, err := b.Rollups().RollUp(t.Context(), margin)
		noError(t, err)
		return texts(t, b.conn, `SELECT (values_until > $1 AND days_until > $1)::text FROM usage_progress`, day)[0] == "true"
	})
	zone, err := rollup.Zone("")
	noError(t, err)
	buckets, err := rollup.NewBuckets(day, day+1, rollup.ByDay, zone)
	noError(t, err)
	all, err := b.Rollups().Usage(t.Context(), rollups.Query{Buckets: buckets}, rollups.Row{}, 1_000)
	noError(t, err)
	found, err := b.Rollups().LargestValues(t.Context(), rollups.Query{Buckets: buckets, Dimension: rollup.Entity}, 3)
	noError(t, err)
	if len(all.Rows) != 1 || all.Rows[0].Events != 1 || len(found.Rows) != 1 || found.Rows[0].Value != "late one" || found.Rows[0].Events != 1 || found.Rows[0].Charged.String() != "5" {
		t.Errorf("%+v and %+v", all.Rows, found.Rows)
	}
	if packs := texts(t, b.conn, `SELECT events::text FROM usage_value_days WHERE day = $1 AND feature_id = $2`, day, ids.ID{}); !slices.Equal(packs, []string{"1"}) {
		t.Errorf("packs: %v", packs)
	}
}

// A key of a test application can set its clock to the year 9999: a pass may not go through
// each of three million days.
func TestVerificationPassesOverYearsWithoutUsage(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.settle(t)
	_, err := b.Verification().Verify(t.Context(), verify.Options{Record: true, Now: 1})
	noError(t, err)
	exec(t, b.conn, `UPDATE app_state SET clock_offset = 250000000000000`)
	for range 3 { // a time is final after two, and its days are packed by the next
		b.settle(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience) // it takes seconds, and a read for each day hours
	defer cancel()
	for i, o := range []verify.Options{{New: true, Record: true, Now: 1}, {}} {
		if v, err := b.Verification().Verify(ctx, o); err != nil || len(v.Differences)+len(v.Unfinished) > 0 {
			t.Errorf("pass %d: %+v, %v", i, v, err)
		}
	}
	if got := texts(t, b.conn, `SELECT format('packed %s, verified %s', values_until > 250000000000000, days_verified_until > 250000000000000) FROM usage_progress`); !slices.Equal(got, []string{"packed t, verified t"}) {
		t.Errorf("days are %v", got)
	}
}
