package store_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"purser/ids"
	"purser/store"
	"purser/store/storetest"
)

// A page costs what it shows, and not what the application holds. Time says little
// on a busy machine, so the claim is about blocks: a page reads at most some
// hundred of them, and the tables of this test have more.
func TestReportsReadLittle(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	owner := connect(t, url)
	busy := seedReports(t, owner)
	session := connect(t, asApp(url))
	exec(t, session, `SET purser.app_id = '`+busy.app.String()+`'`)
	byName := map[string]store.Statement{}
	for _, s := range store.Statements() {
		byName[s.Name] = s
	}

	var highest ids.ID
	for i := range highest {
		highest[i] = 0xff
	}
	const day = 86_400_000
	for name, args := range map[string][]any{
		"list wallets":                            {highest, 51},
		"search wallets":                          {[]string{"USER 77", "user 77"}, []string{"USER 77\U0010ffff", "user 77\U0010ffff"}, "", 51},
		"scan wallets for a text":                 {highest, 10_000, "r 77", []string{"r 77"}, 51},
		"find end of wallets scan":                {highest, 9_999},
		"select wallet of a subscription":         {seededID(4, 77)},
		"select wallet by id":                     {busy.wallet},
		"list wallets in debt":                    {highest, 51},
		"list wallets on hold":                    {highest, 51},
		"list wallets of a plan":                  {highest, 51, busy.plan},
		"list subscriptions":                      {highest, 51},
		"list subscriptions by status":            {highest, 51, "paused"},
		"list subscriptions on hold":              {highest, 51},
		"count subscribers of plans":              {[]ids.ID{busy.plan, busy.app}, []string{"active", "trialing", "past_due", "unpaid", "paused"}, 1_001},
		"list subscriptions of a wallet":          {busy.wallet, 100},
		"list journal":                            {busy.wallet, int64(1 << 40), 51},
		"list openings":                           {busy.wallet, int64(1 << 40), int64(1), []ids.ID{busy.credit}},
		"list events of a wallet":                 {busy.wallet, int64(1 << 40), 51},
		"look at events":                          {busy.eventAt(reportEvents - 500), highest, 4_000, nil, 51, int64(0), int64(1 << 50)},
		"list events in a range":                  {busy.wallet, int64(0), int64(1 << 40), busy.feature, int64(0), int64(1 << 50), 51},
		"select feature and whether it was used":  {"messages"},
		"list events by their places":             {[]ids.ID{busy.wallet, busy.wallet}, []int64{2, 3}},
		"select event by its transaction":         {busy.eventAt(reportEvents / 2)},
		"select event by its id":                  {[]byte(fmt.Sprint("event ", reportEvents/2))},
		"select journal entry":                    {busy.entryAt(reportWallets / 2)},
		"list deposits of all wallets":            {highest, ids.ID{}, int64(0), int64(1 << 50), 51},
		"list deposits of kinds and credits":      {highest, ids.ID{}, int64(0), int64(1 << 50), 51, []string{"grant"}, nil},
		"list deposits of a wallet by its id":     {busy.wallet, int64(1 << 40), 51},
		"select hours with events":                {highest, 100},
		"sum uses by day":                         {int64(0), int64(60 * day)},
		"sum denials by day":                      {int64(0), int64(60 * day)},
		"sum deposits by day":                     {int64(0), int64(60 * day)},
		"select active days":                      {int64(0), int64(60 * day)},
		"top features":                            {int64(0), int64(60 * day), 8},
		"count attention":                         {101},
		"sum activity by hour":                    {int64(59 * day)},
		"list requests":                           {highest, ids.ID{}, store.RingSize, nil, 0, 1_000, nil, nil, 51},
		"list requests of an identity":            {highest, ids.ID{}, store.RingSize, nil, 0, 1_000, nil, nil, 51, "user 7"},
		"list request failures":                   {highest, ids.ID{}, 5_000, nil, 0, 1_000, nil, nil, 51},
		"filter request failures of an identity":  {highest, ids.ID{}, 5_000, nil, 0, 1_000, nil, nil, 51, "customer-7"},
		"find end of failures scan":               {highest, ids.ID{}, 4_999},
		"select request failure":                  {seededID(7, 1000)},
		"select request":                          {seededID(5, 1000)},
		"list denials":                            {highest, ids.ID{}, 5_000, nil, nil, int64(0), int64(1 << 50), 51},
		"list denials of an identity":             {highest, ids.ID{}, 5_000, nil, nil, int64(0), int64(1 << 50), 51, "user 7"},
		"list denials of a request":               {seededID(8, reportWallets/2), highest, 51},
		"select denial":                           {seededID(8, reportWallets/2)},
		"find end of denials scan":                {highest, ids.ID{}, 4_999},
		"find end of denials scan of an identity": {highest, ids.ID{}, 4_999, "user 7"},
	} {
		t.Run(name+" reads little", func(t *testing.T) {
			exec(t, session, `SET enable_sort = `+sorting(name))
			sql := byName[name].SQL
			if sql == "" {
				t.Fatal("there is no such statement")
			}
			plan := strings.Join(texts(t, session, `EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) `+sql, append([]any{busy.app}, args...)...), "\n")
			if blocks := blocksOf(t, plan); blocks > maxReportBlocks {
				t.Errorf("it reads %d blocks:\n%s", blocks, plan)
			}
		})
	}

	t.Run("and a read that goes through all of it is found", func(t *testing.T) {
		plan := strings.Join(texts(t, session, `EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF)
			SELECT identity FROM wallets WHERE app_id = $1 AND created_at = 7`, busy.app), "\n")
		if blocks := blocksOf(t, plan); blocks <= maxReportBlocks {
			t.Errorf("it reads %d blocks:\n%s", blocks, plan)
		}
	})
}

// sorting is what the transaction of a statement has set.
func sorting(name string) string {
	switch name {
	case "list deposits of all wallets", "list deposits of kinds and credits", "sum uses by day", "sum denials by day",
		"sum deposits by day", "select active days", "top features":
		return "off"
	default:
		return "on"
	}
}

const (
	reportWallets = 50_000
	reportEvents  = 100_000
	// A page of fifty rows with all that they refer to, each by an index four levels
	// deep, is far below this; a table of the test is far above.
	maxReportBlocks = 600
)

// seededReports is an application with very much in it.
type seededReports struct {
	app, plan, credit, feature, wallet ids.ID
}

// Ids are those of generate_series, in the order of time.
func (seededReports) eventAt(n int) ids.ID { return seededID(2, n) }
func (seededReports) entryAt(n int) ids.ID { return seededID(3, n) }

func seededID(kind byte, n int) (id ids.ID) {
	text := fmt.Sprintf("%012x70%02x8%015x", 1_700_000_000_000+int64(n)*100, kind, n)
	for i := range id {
		value, _ := strconv.ParseUint(text[2*i:2*i+2], 16, 8)
		id[i] = byte(value)
	}
	return id
}

// seedID is seededID in SQL, of the number n.
func seedID(kind int) string {
	return fmt.Sprintf(`(lpad(to_hex(1700000000000 + n * 100), 12, '0') || '70%02x8' || lpad(to_hex(n), 15, '0'))::uuid`, kind)
}

func seedReports(t *testing.T, owner execer) seededReports {
	t.Helper()
	d := seededReports{app: ids.New(), plan: ids.New(), credit: ids.New(), feature: ids.New(), wallet: seededID(1, reportWallets/2)}
	credit, feature := d.credit, d.feature
	exec(t, owner, `SET session_replication_role = replica`)
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{`INSERT INTO app_state (app_id, org_id, created_at) VALUES ($1, $1, 0)`, []any{d.app}},
		{`INSERT INTO credits (app_id, id, org_id, key, name, unit, revision, created_at) VALUES ($1, $2, $1, 'tokens', 'Tokens', 'token', 1, 0)`, []any{d.app, credit}},
		{`INSERT INTO features (app_id, id, org_id, key, name, unit, credit_id, cost_nanocredits, quantity_per_unit, pricing_mode, deduplication_period, revision, price_number, created_at)
			VALUES ($1, $2, $1, 'messages', 'Messages', 'message', $3, 1, 1, 'fixed', 'none', 1, 1, 0)`, []any{d.app, feature, credit}},
		{`INSERT INTO features (app_id, id, org_id, key, name, unit, credit_id, cost_nanocredits, quantity_per_unit, pricing_mode, deduplication_period, revision, price_number, created_at)
			SELECT $1, ` + seedID(6) + `, $1, 'feature ' || n, 'Feature', 'use', $2, 1, 1, 'fixed', 'none', 1, n + 1, 0 FROM generate_series(1::bigint, 50) n`, []any{d.app, credit}},
		{`INSERT INTO prices (app_id, number, org_id, feature_id, revision, credit_id, cost_nanocredits, quantity_per_unit, pricing_mode, created_at)
			SELECT $1, 1 - n, $1, $2, 1 - n, $3, 1, 1, 'fixed', 0 FROM generate_series(0, 50000) n`, []any{d.app, feature, credit}},
		{`INSERT INTO wallets (app_id, id, org_id, identity, created_at, last_seq)
			SELECT $1, ` + seedID(1) + `, $1, 'user ' || n, 0, 3 FROM generate_series(1::bigint, $2) n`, []any{d.app, int64(reportWallets)}},
		{`INSERT INTO balances (app_id, wallet_id, credit_id, org_id, amount_nanocredits)
			SELECT $1, ` + seedID(1) + `, $2, $1, 5 FROM generate_series(1::bigint, $3) n`, []any{d.app, credit, int64(reportWallets)}},
		{`INSERT INTO journal (app_id, id, org_id, wallet_id, seq, kind, credit_id, delta_nanocredits, balance_after, debt_after, created_at)
			SELECT $1, ` + seedID(3) + `, $1, ` + seedID(1) + `, 1, 'deposit', $2, 7, 7, 0, n FROM generate_series(1::bigint, $3) n`, []any{d.app, credit, int64(reportWallets)}},
		{`INSERT INTO usage_events (app_id, org_id, tx_id, wallet_id, key_id, seq, price_number, quantity, created_at, amount_nanocredits, balance_after, event_id)
			SELECT $1, $1, ` + seedID(2) + `, w.id, $1, 2 + (n - 1) / $2, 1, 1, n, 1, 5, ('event ' || n)::bytea
			FROM generate_series(1::bigint, $3) n CROSS JOIN LATERAL (SELECT (lpad(to_hex(1700000000000 + m * 100), 12, '0') || '70018' || lpad(to_hex(m), 15, '0'))::uuid AS id
				FROM (SELECT 1 + (n - 1) % $2 AS m) x) w`, []any{d.app, int64(reportWallets), int64(reportEvents)}},
		{`INSERT INTO subscriptions (app_id, id, org_id, wallet_id, status, period_start, period_end, terms, plan_id)
			SELECT $1, ` + seedID(4) + `, $1, ` + seedID(1) + `, CASE WHEN n % 5000 = 1 THEN 'past_due' WHEN n % 5000 = 2 THEN 'paused' ELSE 'active' END, 0, 1, '{}',
				CASE WHEN n % 500 = 3 THEN $2::uuid ELSE $1::uuid END
			FROM generate_series(1::bigint, $3) n`, []any{d.app, d.plan, int64(reportWallets)}},
		{`INSERT INTO debtors (app_id, wallet_id, credit_id, org_id) SELECT $1, ` + seedID(1) + `, $2, $1 FROM generate_series(1::bigint, 5000) n`, []any{d.app, credit}},
		{`INSERT INTO usage_days (app_id, day, feature_id, credit_id, org_id, accepted, deduplicated, charged_nanocredits)
			SELECT $1, (n / 20) * 86400000::bigint, CASE WHEN n % 20 = 0 THEN $2::uuid ELSE gen_random_uuid() END, $3, $1, 1, 0, 1 FROM generate_series(1, 8000) n`, []any{d.app, feature, credit}},
		{`INSERT INTO denial_days (app_id, day, feature_id, reason, org_id, uses, checks)
			SELECT $1, day * 86400000::bigint, ` + seedID(6) + `, reason, $1, 1, 0 FROM generate_series(1::bigint, 50) n, generate_series(0, 60) day,
				(VALUES ('insufficient_balance'), ('feature_limit_reached'), ('payment_hold')) r (reason)`, []any{d.app}},
		{`INSERT INTO entry_days (app_id, day, kind, credit_id, org_id, entries, came_nanocredits, taken_nanocredits)
			SELECT $1, n * 86400000::bigint, 'deposit', $2, $1, 1, 1, 0 FROM generate_series(1, 2000) n`, []any{d.app, credit}},
		{`INSERT INTO active_days (app_id, day, org_id, sketch) SELECT $1, n * 86400000::bigint, $1, decode(repeat('02', 4097), 'hex') FROM generate_series(1, 400) n`, []any{d.app}},
		{`INSERT INTO activity_hours (app_id, hour, org_id, uses, denials, requests, failures, oldest_tx, newest_tx)
			SELECT $1, n * 3600000::bigint, $1, 1, 1, 1, 1, ` + seedID(2) + `, ` + seedID(2) + ` FROM generate_series(1, 20000) n`, []any{d.app}},
		{`INSERT INTO recent_requests (app_id, slot, org_id, id, at, method, route, status, took_us, key_id)
			SELECT $1, n, $1, ` + seedID(5) + `, n, 'POST', '/v1/events', 200, 1000, $1 FROM generate_series(0, $2::int - 1) n`, []any{d.app, store.RingSize}},
		{`INSERT INTO request_failures (app_id, id, org_id, at, method, route, status, took_us, key_id, identity, feature)
			SELECT $1, ` + seedID(7) + `, $1, n, 'POST', '/v1/events', 409, 1000, $1, 'customer-' || n, 'chat' FROM generate_series(1, 50000) n`, []any{d.app}},
		{`INSERT INTO denial_records (app_id, id, org_id, request_id, key_id, at, identity, feature_id, credit_id, reason, gate, quantity, billable, pricing_mode,
				cost_nanocredits, quantity_per_unit, basis_points, amount_nanocredits, balance_nanocredits, debt_nanocredits)
			SELECT $1, ` + seedID(8) + `, $1, ` + seedID(8) + `, $1, n, 'user ' || n % 500, $2, $3, 'insufficient_balance', 'balance', 1, 1, 'fixed', 1, 1, 10000, 1, 0, 0
			FROM generate_series(1, 50000) n`, []any{d.app, feature, credit}},
	} {
		exec(t, owner, step.sql, step.args...)
	}
	exec(t, owner, `VACUUM ANALYZE`)
	return d
}

var buffers = regexp.MustCompile(`Buffers: shared((?: (?:hit|read)=\d+)+)`)

// blocksOf is how many blocks a plan has touched: the first line that says so is
// the whole's.
func blocksOf(t *testing.T, plan string) (blocks int) {
	t.Helper()
	line := buffers.FindStringSubmatch(plan)
	if line == nil {
		t.Fatalf("the plan does not say what it read:\n%s", plan)
	}
	for _, part := range strings.Fields(line[1]) {
		_, number, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		noError(t, err)
		blocks += n
	}
	return blocks
}
