//go:build scale

package store_test

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store/rollups"
)

// TestUsageAtScale fills a database with wallets and events by SQL, adds them up, and
// measures what the usage page reads. On a quiet machine:
//
//	go test -tags scale ./store -run TestUsageAtScale -v -timeout 2h
//
// WALLETS and EVENTS are a million and ten million unless they are set.
func TestUsageAtScale(t *testing.T) {
	number := func(name string, usual int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return usual
	}
	wallets, events := number("WALLETS", 1_000_000), number("EVENTS", 10_000_000)
	b := keepBooks(t)
	end := metering.DayOf(time.Now().UnixMilli()).Start
	begun := time.Now()
	exec(t, b.conn, `
		INSERT INTO wallets (app_id, id, org_id, identity, last_seq, created_at)
		SELECT s.app_id, md5('w' || n)::uuid, s.org_id, 'customer ' || n, $1::int / $2::int, 0 FROM app_state s, generate_series(0, $2::int - 1) n`, events, wallets)
	exec(t, b.conn, `
		INSERT INTO balances (app_id, wallet_id, credit_id, org_id, amount_nanocredits)
		SELECT w.app_id, w.id, c.id, w.org_id, 1000 FROM wallets w, credits c WHERE w.identity LIKE 'customer %'`)
	// In the order of time over the 30 days before today, each wallet in turn.
	exec(t, b.conn, `
		INSERT INTO usage_events (app_id, org_id, tx_id, wallet_id, key_id, seq, price_number, quantity, created_at, amount_nanocredits, balance_after, event_id)
		SELECT e.app_id, e.org_id, (lpad(to_hex(x.at), 12, '0') || '7000' || '8000' || lpad(to_hex(n), 12, '0'))::uuid, md5('w' || n % $2::int)::uuid,
			e.key_id, n / $2::int + 1, p.number, 1 + n % 5, x.at, 7 * (1 + n % 5), 1000, uuid_send((lpad(to_hex(x.at), 12, '0') || '70008001' || lpad(to_hex(n), 12, '0'))::uuid)
		FROM usage_events e, generate_series(0, $1::int - 1) n
		CROSS JOIN LATERAL (SELECT $3::bigint + n * (30 * 86400000::bigint) / $1::int AS at) x
		CROSS JOIN LATERAL (SELECT number FROM prices ORDER BY number OFFSET n % 4 LIMIT 1) p
		WHERE e.event_id = 'e0'`, events, wallets, end-30*24*rollup.Hour)
	exec(t, b.conn, `VACUUM ANALYZE`)
	t.Logf("filled %d wallets and %d events in %s", wallets, events, time.Since(begun).Round(time.Second))

	begun = time.Now()
	settled := b.settle(t)
	t.Logf("added %d events in %s", settled.Events, time.Since(begun).Round(time.Second))
	begun = time.Now()
	noError(t, b.Rollups().RecordLiability(t.Context()))
	t.Logf("added up the balances in %s", time.Since(begun).Round(time.Millisecond))
	// As many values as a property can have, in each of the 30 days and two features.
	exec(t, b.conn, `
		INSERT INTO usage_dimensions (app_id, name, day, feature_id, credit_id, value, org_id, events, deduplicated, quantity, included, charged_nanocredits)
		SELECT s.app_id, 'property:' || x.name, $1::bigint + d * 86400000::bigint, f.id, f.credit_id, 'value ' || n, s.org_id, 1, 0, 1, 0, n
		FROM app_state s, features f, (VALUES ('model', 20), ('session', 1000)) x (name, number), generate_series(0, 29) d, generate_series(1, x.number) n
		WHERE f.app_id = s.app_id AND f.key IN ('plain', 'limited')`, end-30*24*rollup.Hour)
	exec(t, b.conn, `VACUUM ANALYZE`)

	utc, err := rollup.NewBuckets(end-30*24*rollup.Hour, end, rollup.ByDay, time.UTC)
	noError(t, err)
	zone, err := rollup.Zone("Europe/Berlin")
	noError(t, err)
	month, err := rollup.NewBuckets(end-30*24*rollup.Hour, end, rollup.ByDay, zone)
	noError(t, err)
	for name, read := range map[string]func() error{
		"30 days by feature": func() error {
			_, err := b.Rollups().Usage(t.Context(), rollups.Query{Buckets: month, ByFeature: true}, rollups.Row{}, 1_001)
			return err
		},
		"30 days of a customer": func() error {
			_, err := b.Rollups().Usage(t.Context(), rollups.Query{Buckets: month, ByFeature: true, Identity: "customer 7"}, rollups.Row{}, 1_001)
			return err
		},
		"100 customers": func() error {
			_, _, err := b.Rollups().WalletUsage(t.Context(), rollups.Query{Buckets: month}, rollups.Row{WalletID: ids.New()}, 100, 10_001)
			return err
		},
		"20 values of a property": func() error {
			_, err := b.Rollups().DimensionUsage(t.Context(), rollups.Query{Buckets: utc, Dimension: rollup.Property("model")}, rollups.Row{}, 20_001)
			return err
		},
		"1,000 values of a property": func() error {
			_, err := b.Rollups().DimensionUsage(t.Context(), rollups.Query{Buckets: utc, Dimension: rollup.Property("session")}, rollups.Row{}, 20_001)
			return err
		},
		"top customers": func() error {
			_, err := b.Rollups().Top(t.Context(), end-1, 10)
			return err
		},
		"largest customers": func() error {
			_, _, err := b.Rollups().LargestWallets(t.Context(), rollups.Query{Buckets: month}, rollups.Events, ids.ID{}, 10)
			return err
		},
		"revenue and liability": func() error {
			_, err := b.Rollups().Finance(t.Context(), end-30*24*rollup.Hour, end, end)
			return err
		},
	} {
		var took []time.Duration
		for range 200 {
			begun := time.Now()
			noError(t, read())
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		t.Logf("%-27s p50 %8s  p99 %8s", name, took[100].Round(10*time.Microsecond), took[197].Round(10*time.Microsecond))
	}
}
