package store_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"purser/ids"
	"purser/store"
	"purser/store/storetest"
)

// A plan is made once and kept for a connection's life, or until the next ANALYZE:
// perhaps before there is a row, perhaps in a transaction of an application that
// has hardly any. A read by anything less than the whole key then goes through all
// rows of a large application, for each use, and throughput falls to a fraction.
func TestPlansOfTheHotPathUseTheWholeKey(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	owner := connect(t, url)

	t.Run("when they are made on empty tables", func(t *testing.T) {
		plansUseTheWholeKey(t, url, ids.New())
	})

	large, small := ids.New(), ids.New()
	exec(t, owner, `SET session_replication_role = replica`) // without the parents that the rows refer to
	exec(t, owner, `INSERT INTO wallets (app_id, id, org_id, identity, created_at)
		SELECT CASE WHEN n <= 20000 THEN $1 WHEN n = 20001 THEN $2 ELSE gen_random_uuid() END, gen_random_uuid(), gen_random_uuid(), n::text, 0
		FROM generate_series(1, 21000) n`, large, small)
	kind := texts(t, owner, `SELECT atttypid::regtype::text FROM pg_attribute WHERE attrelid = 'usage_events'::regclass AND attname = 'event_id'`)[0]
	exec(t, owner, `INSERT INTO usage_events (app_id, org_id, tx_id, wallet_id, key_id, seq, price_number, quantity, created_at,
			amount_nanocredits, balance_after, event_id)
		SELECT app_id, org_id, id, id, id, 1, 1, 1, 0, 0, 0, identity::`+kind+` FROM wallets`)
	exec(t, owner, `ANALYZE wallets`)
	exec(t, owner, `ANALYZE usage_events`)

	t.Run("when a small application makes them for a large one", func(t *testing.T) {
		plansUseTheWholeKey(t, url, small)
	})
	t.Run("when a large application makes them", func(t *testing.T) {
		plansUseTheWholeKey(t, url, large)
	})

	t.Run("and a read by half a key is found", func(t *testing.T) {
		for name, sql := range map[string]string{
			"no index":    `SELECT id FROM wallets WHERE version = $1`,
			"half a key":  `SELECT id FROM wallets WHERE app_id = $1 AND created_at = $2`,
			"a free join": `SELECT w.id FROM unnest($2::text[]) AS t (identity) JOIN wallets w ON w.app_id = $1 AND w.identity || '' = t.identity`,
		} {
			plan := genericPlan(t, planner(t, url, large), store.Statement{Name: name, SQL: sql})
			if len(planProblems(plan)) == 0 {
				t.Errorf("%s passes:\n%s", sql, plan)
			}
		}
	})
}

func plansUseTheWholeKey(t *testing.T, url string, app ids.ID) {
	t.Helper()
	conn := planner(t, url, app)
	for _, s := range store.HotStatements() {
		// Only reads come once for each use. Updates by two keys that look alike to the
		// planner are rare, and upserts find their row without it.
		if !strings.HasPrefix(strings.TrimSpace(s.SQL), "SELECT") {
			continue
		}
		plan := genericPlan(t, conn, s)
		for _, problem := range planProblems(plan) {
			t.Errorf("%s has %s:\n%s", s.Name, problem, plan)
		}
	}
}

// planner is a session that plans as one of the hot path does in the name of an
// application.
func planner(t *testing.T, url string, app ids.ID) execer {
	t.Helper()
	conn := connect(t, asApp(url))
	exec(t, conn, `SET plan_cache_mode = force_generic_plan`)
	exec(t, conn, `SET purser.app_id = '`+app.String()+`'`)
	return conn
}

func genericPlan(t *testing.T, conn execer, s store.Statement) string {
	t.Helper()
	exec(t, conn, `PREPARE "`+s.Name+`" AS `+s.SQL)
	nulls := strings.Repeat(", NULL", parametersOf(t, s))
	return strings.Join(texts(t, conn, `EXPLAIN (COSTS OFF, VERBOSE) EXECUTE "`+s.Name+`"(`+nulls[2:]+`)`), "\n")
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// parametersOf is how many parameters a statement has.
func parametersOf(t *testing.T, s store.Statement) (highest int) {
	t.Helper()
	for _, n := range parameter.FindAllStringSubmatch(s.SQL, -1) {
		number, err := strconv.Atoi(n[1])
		noError(t, err)
		highest = max(highest, number)
	}
	return highest
}

var planColumn = regexp.MustCompile(`\w+\.(\w+)`)

// planProblems wants every table to be reached through an index, and nothing to
// be sorted out afterwards but by the policy.
func planProblems(plan string) (problems []string) {
	for line := range strings.Lines(plan) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "Seq Scan") || strings.Contains(line, "Hash Join") || strings.Contains(line, "Merge Join") {
			problems = append(problems, line)
		}
		kind, condition, _ := strings.Cut(line, "Filter: ")
		if kind != "" && kind != "Join " || strings.Contains(condition, "array_position(") || strings.Contains(condition, "[p.i]") { // in one block
			continue
		}
		for _, column := range planColumn.FindAllStringSubmatch(condition, -1) {
			if column[1] != "app_id" { // also the name of the setting
				problems = append(problems, line)
				break
			}
		}
	}
	return problems
}
