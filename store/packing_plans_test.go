package store_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"purser/ids"
)

var removedRows = regexp.MustCompile(`Rows Removed by Filter: (\d+)`)

// fillPacked writes blocks of one event each: of a wallet for each minute of the hours before
// a time. Other applications have as many.
func fillPacked(t *testing.T, b *books, blocks int, end int64) {
	t.Helper()
	exec(t, b.conn, `
		INSERT INTO packed_events (app_id, wallet_id, last_seq, first_seq, org_id, events, first_tx, last_tx, seqs, tx_ids, event_ids, key_ids, price_numbers,
			quantities, created_ats, amounts, balances_after, entity_ids)
		SELECT e.app_id, e.wallet_id, 1, 1, e.org_id, 1, e.tx, e.tx, '{1}', ARRAY[e.tx], ARRAY[e.tx], ARRAY[e.tx], '{1}', '{1}', ARRAY[e.at], '{0}', '{0}', '{room}'
		FROM (
			SELECT CASE o WHEN 0 THEN s.app_id ELSE md5('app' || o)::uuid END AS app_id, md5('w' || n)::uuid AS wallet_id, s.org_id,
				$2::bigint - n * 60000::bigint AS at,
				(lpad(to_hex($2::bigint - n * 60000::bigint), 12, '0') || '7000' || '8000' || lpad(to_hex(n), 12, '0'))::uuid AS tx
			FROM app_state s, generate_series(1, $1::int) n, generate_series(0, 2) o) e`, blocks, end)
	exec(t, b.conn, `
		INSERT INTO packed_runs (app_id, run, org_id, before, scanned, indexed, done, last_tx, events, started_at)
		SELECT p.app_id, 1, p.org_id, $1, p.last_tx, true, true, p.last_tx, 1, 1
		FROM app_state s CROSS JOIN LATERAL (SELECT app_id, org_id, last_tx FROM packed_events WHERE app_id = s.app_id ORDER BY last_tx DESC LIMIT 1) p`, end)
}

// A packed transaction is found in a few blocks, and a verification of new entries reads
// none, whatever the planner knows about the table.
func TestPackedReadsAreBounded(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	const blocks = 3_000
	end := time.Now().Add(-time.Hour).UnixMilli()
	fillPacked(t, b, blocks, end)
	found := texts(t, b.conn, `SELECT tx_ids[1]::text FROM packed_events WHERE app_id = $1 ORDER BY last_tx DESC OFFSET 100 LIMIT 1`, b.scope.AppID)[0]
	since := fmt.Sprintf("'%s', '%s', 0, %d", ids.New(), ids.New(), time.Now().UnixMilli())
	conn := connect(t, asApp(b.url))
	exec(t, conn, `SET plan_cache_mode = force_generic_plan`)
	exec(t, conn, `SET purser.app_id = '`+b.scope.AppID.String()+`'`)
	for _, known := range []string{"nothing", "all"} {
		if known == "all" {
			exec(t, b.conn, `ANALYZE packed_events, packed_runs`)
		}
		for name, c := range map[string]struct {
			args string
			most int // rows of blocks; with 0, none is looked for
		}{
			"select packed event by its transaction": {"'" + found + "'", 1},
			"verify since":                           {"'" + ids.New().String() + "'", 0},
			"verify events of hours":                 {since, 0},
			"verify events with an entity":           {since, 0},
			"verify events with properties":          {since, 0},
		} {
			exec(t, conn, `PREPARE plan AS `+statementNamed(t, name))
			lines := texts(t, conn, `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE plan ('`+b.scope.AppID.String()+`', `+c.args+`)`)
			exec(t, conn, `DEALLOCATE plan`)
			read, scan := 0, false
			for _, line := range lines {
				if strings.Contains(line, "->") || strings.Contains(line, "actual") {
					scan = strings.Contains(line, " on packed_events")
				}
				if !scan {
					continue
				}
				if c.most == 0 && strings.Contains(line, "->") && !strings.Contains(line, "never executed") {
					read++
				}
				if n := scannedRows.FindStringSubmatch(line); n != nil {
					rows, _ := strconv.Atoi(n[1])
					loops, _ := strconv.Atoi(n[2])
					read += rows * loops
				}
				if n := removedRows.FindStringSubmatch(line); n != nil {
					rows, _ := strconv.Atoi(n[1])
					read += rows
				}
			}
			if read > c.most {
				t.Errorf("%s reads %d blocks when %s is known, expected at most %d:\n%s", name, read, known, c.most, strings.Join(lines, "\n"))
			}
		}
	}
}
