package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/verify"
)

// addOldEvents lengthens the wallet by copies of an event that cost nothing, with
// ids of an hour ago.
func (b *books) addOldEvents(t *testing.T, number int) {
	t.Helper()
	exec(t, b.conn, `
		INSERT INTO usage_events (app_id, org_id, tx_id, wallet_id, key_id, seq, price_number, quantity, created_at,
			amount_nanocredits, balance_after, event_id, deduplicated_from, period_start, period_end, entity_id)
		SELECT e.app_id, e.org_id, (lpad(to_hex($1::bigint + n / 10), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8000' || lpad(to_hex(n), 12, '0'))::uuid,
			e.wallet_id, e.key_id, w.last_seq + n, e.price_number, e.quantity, e.created_at,
			0, (SELECT amount_nanocredits FROM balances), convert_to('copy ' || n, 'UTF8'), e.deduplicated_from, e.period_start, e.period_end, e.entity_id
		FROM generate_series(1, $2::bigint) n, usage_events e JOIN wallets w ON w.app_id = e.app_id AND w.id = e.wallet_id
		WHERE e.event_id = 'e5'`, time.Now().Add(-time.Hour).UnixMilli(), number)
	exec(t, b.conn, `UPDATE wallets SET last_seq = last_seq + $1, version = version + 1`, number)
}

// trackAhead records plain events whose ids are of some minutes ahead, so that they are
// distinguished from those that the test began with.
func (b *books) trackAhead(t *testing.T, number int) (since time.Time) {
	t.Helper()
	for range number {
		b.next++
		d, err := b.usage.Track(store.Usage{Scope: b.scope, KeyID: b.key, Identity: "ann", FeatureKey: "plain", Usage: metering.Usage{
			TransactionID: shifted(ids.New(), 600_000), EventID: fmt.Sprint("e", b.next), Quantity: 1}})
		noError(t, err)
		noError(t, d.Err())
	}
	return time.Now().Add(5 * time.Minute)
}

// A pass since a moment finds the entries of that time without reading the others, and
// reads those and what is new.
func TestVerifySinceReadsInProportionToWhatIsNew(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	const old, fresh = 20_000, 100
	b.addOldEvents(t, old)
	exec(t, b.conn, `SELECT brin_summarize_new_values('usage_events_by_transaction')`)
	b.verify(t, verify.Options{New: true, Record: true})
	since := b.trackAhead(t, fresh)
	for range 2 {
		if v := b.verify(t, verify.Options{Since: since, Record: true}); v.Entries != fresh {
			t.Errorf("it read %d entries", v.Entries)
		}
	}
	// With the statistics that autovacuum keeps. Before there are any, Postgres may read
	// all of the application's events once to find the recent ones.
	exec(t, b.conn, `ANALYZE`)
	tx, err := connect(t, asApp(b.url)).Begin(t.Context())
	noError(t, err)
	exec(t, tx, `SET LOCAL purser.app_id = '`+b.scope.AppID.String()+`'`)
	exec(t, tx, `SET LOCAL plan_cache_mode = force_custom_plan`)
	var text []byte
	noError(t, tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+statementNamed(t, "verify since"), b.scope.AppID,
		store.IDAt(since.UnixMilli())).Scan(&text))
	noError(t, tx.Rollback(t.Context()))
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	noError(t, json.Unmarshal(text, &plans))
	// The index knows ranges of 128 blocks: the new events lie in one or two of them.
	if blocks := plans[0].Plan.Hit + plans[0].Plan.Read; blocks > 2*128+50 {
		t.Errorf("to find the entries, it read %d blocks of %s", blocks,
			texts(t, b.conn, `SELECT (pg_relation_size('usage_events') / 8192)::text`)[0])
	}
}
