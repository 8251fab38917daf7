package store_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
)

// fillUsage writes sums of many customers over a year: each of the wallets in two hours of
// every month, and each hour of the year for all of them together.
func fillUsage(t *testing.T, b *books, wallets int, year int64) {
	t.Helper()
	exec(t, b.conn, `
		INSERT INTO wallets (app_id, id, org_id, identity, created_at)
		SELECT s.app_id, md5('w' || n)::uuid, s.org_id, 'customer ' || n, 0 FROM app_state s, generate_series(1, $1::int) n`, wallets)
	exec(t, b.conn, `
		INSERT INTO usage_hours (app_id, wallet_id, hour, feature_id, credit_id, org_id, events, deduplicated, quantity, included, charged_nanocredits)
		SELECT s.app_id, md5('w' || n)::uuid, $2::bigint + (m * 720 + n % 700 + h) * 3600000::bigint, f.id, f.credit_id, s.org_id, 1, 0, 1, 0, n
		FROM app_state s, features f, generate_series(1, $1::int) n, generate_series(0, 11) m, generate_series(0, 1) h WHERE f.key = 'plain'`, wallets, year)
	exec(t, b.conn, `
		INSERT INTO usage_months (app_id, month, wallet_id, credit_id, org_id, events, charged_nanocredits)
		SELECT app_id, (extract(epoch FROM date_trunc('month', to_timestamp(hour / 1000), 'UTC')) * 1000)::bigint, wallet_id, credit_id, min(org_id::text)::uuid, sum(events), sum(charged_nanocredits)
		FROM usage_hours GROUP BY 1, 2, 3, 4 ON CONFLICT DO NOTHING`)
	exec(t, b.conn, `
		INSERT INTO usage_totals (app_id, hour, feature_id, credit_id, key_id, org_id, events, deduplicated, quantity, included, charged_nanocredits)
		SELECT s.app_id, $1::bigint + n * 3600000::bigint, f.id, f.credit_id, k.id, s.org_id, 1, 0, 1, 0, 1
		FROM app_state s, features f, api_keys k, generate_series(0, 8759) n`, year)
	exec(t, b.conn, `
		INSERT INTO usage_dimensions (app_id, name, day, feature_id, credit_id, value, org_id, events, deduplicated, quantity, included, charged_nanocredits)
		SELECT s.app_id, 'property:' || x, $1::bigint + d * 86400000::bigint, f.id, f.credit_id, 'value ' || n, s.org_id, 1, 0, 1, 0, 1
		FROM app_state s, features f, generate_series(1, 5) x, generate_series(0, 364) d, generate_series(1, 5) n WHERE f.key = 'plain'`, year)
	exec(t, b.conn, `
		INSERT INTO usage_total_days (app_id, day, feature_id, credit_id, key_id, org_id, events, deduplicated, quantity, included, charged_nanocredits)
		SELECT s.app_id, $1::bigint + n * 86400000::bigint, f.id, f.credit_id, k.id, s.org_id, 24, 0, 24, 0, 24
		FROM app_state s, features f, api_keys k, generate_series(0, 100) n`, year)
	exec(t, b.conn, `
		INSERT INTO usage_value_days (app_id, name, day, feature_id, credit_id, org_id, events, deduplicated, quantity, included, charged_nanocredits, packed)
		SELECT s.app_id, 'property:' || x, $1::bigint + d * 86400000::bigint, '00000000-0000-0000-0000-000000000000', c.id, s.org_id, 5, 0, 5, 0, 5, '\x01'
		FROM app_state s, credits c, generate_series(1, 5) x, generate_series(0, 364) d`, year)
	exec(t, b.conn, `ANALYZE usage_value_days, usage_hours, usage_months, usage_totals, usage_total_days, usage_dimensions, wallets`)
}

var scannedRows = regexp.MustCompile(`rows=(\d+)(?:\.\d+)? loops=(\d+)`)

// Reads cost the hours and customers that they show, however many others there are.
func TestUsageReadsAreBounded(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	b.settle(t)
	const wallets = 2_000
	year := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	fillUsage(t, b, wallets, year)
	day := metering.Period{Start: year + 100*24*rollup.Hour, End: year + 101*24*rollup.Hour}
	one := texts(t, b.conn, `SELECT id::text FROM wallets WHERE identity = 'customer 7'`)[0]
	month := strconv.FormatInt(rollup.MonthOf(day.Start), 10)
	starts := fmt.Sprintf("ARRAY[%d]::bigint[]", day.Start)
	first := fmt.Sprintf(", 0, '%[1]s', '%[1]s', '%[1]s', 100", ids.ID{}) // page
	conn := connect(t, asApp(b.url))
	exec(t, conn, `BEGIN`)
	exec(t, conn, `SET LOCAL enable_sort = off`) // as reads do
	exec(t, conn, `SET LOCAL purser.app_id = '`+b.scope.AppID.String()+`'`)
	for name, c := range map[string]struct {
		args string
		most int // rows of the tables of sums
	}{
		"sum usage": {fmt.Sprintf("%s, true, false, ARRAY[%d], ARRAY[%d], ARRAY[%d, %d], ARRAY[%d, %d], ARRAY[%d], ARRAY[%d], NULL", starts, day.Start-24*rollup.Hour, day.Start,
			day.Start, day.End, day.Start+12*rollup.Hour, day.End+rollup.Hour, day.Start-2*rollup.Hour, day.Start) + first, 4 + 15*4},
		"add usage by day":                      {fmt.Sprintf("%d, %d", day.End, day.End+24*rollup.Hour), 24*4 + 4},
		"sum usage of a wallet":                 {fmt.Sprintf("%s, true, '%s', %d, %d, NULL", starts, one, day.Start, day.End) + first, 2},
		"list wallets with usage":               {fmt.Sprintf("ARRAY[%s]::bigint[], '%s', 11", month, ids.ID{}), 12},
		"sum usage by wallet":                   {fmt.Sprintf("%d, %d, %s, NULL, true, ARRAY['%s']::uuid[], '%[5]s', 0, '%[5]s', '%[5]s', 100", day.Start, day.End, starts, one, ids.ID{}), 2},
		"largest wallets":                       {fmt.Sprintf("ARRAY['%s']::uuid[], %d, %d, NULL, NULL, 'events', 100, 10", one, day.Start, day.End), 2},
		"top wallets of a month":                {month + ", 10", 10},
		"verify usage by hour":                  {fmt.Sprintf("ARRAY['%s']::uuid[], %d", one, day.End), 24},
		"verify usage by month":                 {fmt.Sprintf("ARRAY['%s']::uuid[], 10", one), 24 + 2*14}, // twice a row of each of the 13 months, which EXPLAIN rounds up
		"select settled usage":                  {"", 1},
		"sum usage by dimension":                {fmt.Sprintf("%d, %d, %s, NULL, true, 'property:3', 0, '%[4]s', '%[4]s', '%[4]s', 100", day.Start, day.End, starts, ids.ID{}), 5},
		"list dimensions":                       {"100", 7},
		"sum usage by value and day":            {fmt.Sprintf("'property:3', %d, %d, NULL, true", day.Start, day.End), 5},
		"select packed values":                  {fmt.Sprintf("'property:3', %d, %d, '%s'", day.Start, day.End, ids.ID{}), 1},
		"sum packed values":                     {fmt.Sprintf("'property:3', %d, %d, '%s'", day.Start, day.End, ids.ID{}), 1},
		"select values of a day":                {fmt.Sprintf("'property:3', %d, '%s'", day.Start, texts(t, b.conn, `SELECT array_agg(id)::text FROM features`)[0]), 5},
		"list features of a dimension on a day": {fmt.Sprintf("'property:3', %d", day.Start), 5},
		"verify usage of all customers":         {fmt.Sprintf("%d, %d", day.Start, day.End), 24 * 4},
	} {
		args := "'" + b.scope.AppID.String() + "'"
		if c.args != "" {
			args += ", " + c.args
		}
		exec(t, conn, `PREPARE plan AS `+statementNamed(t, name))
		lines := texts(t, conn, `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE plan (`+args+`)`)
		exec(t, conn, `DEALLOCATE plan`)
		read := 0
		for _, line := range lines {
			if strings.Contains(line, "Seq Scan on usage_hours") || strings.Contains(line, "Seq Scan on usage_total") || strings.Contains(line, "Seq Scan on usage_months") || strings.Contains(line, "Seq Scan on usage_dimensions") || strings.Contains(line, "Seq Scan on usage_value_days") {
				t.Errorf("%s reads a whole table:\n%s", name, strings.Join(lines, "\n"))
			}
			if found := scannedRows.FindStringSubmatch(line); found != nil && strings.Contains(line, " on usage_") {
				rows, _ := strconv.Atoi(found[1])
				loops, _ := strconv.Atoi(found[2])
				read += rows * loops
			}
		}
		if read > c.most {
			t.Errorf("%s reads %d rows, expected at most %d:\n%s", name, read, c.most, strings.Join(lines, "\n"))
		}
	}
}
