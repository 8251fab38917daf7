package store_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
)

// balancesAt computes balances as of a moment from all entries of a wallet at once.
const balancesAt = `WITH entries AS (
		SELECT seq, credit_id, balance_after, debt_after, created_at FROM journal WHERE app_id = $2
		UNION ALL
		SELECT e.seq, p.credit_id, e.balance_after, coalesce(e.debt_after, 0), e.created_at
		FROM usage_events e JOIN prices p ON p.app_id = e.app_id AND p.number = e.price_number WHERE e.app_id = $2
	)
	SELECT c.key || ' ' || l.balance_after || ' ' || l.debt_after
	FROM (
		SELECT DISTINCT ON (credit_id) credit_id, balance_after, debt_after FROM entries
		WHERE seq < coalesce((SELECT min(seq) FROM entries WHERE created_at > $1), 1000000) ORDER BY credit_id, seq DESC
	) l JOIN credits c ON c.id = l.credit_id
	WHERE c.app_id = $2
	ORDER BY c.key`

// A wallet has thousands of charges of one credit. Others were received or used long
// before, in the middle of them, or after all.
func TestBalancesAtEveryMoment(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	ctx := t.Context()
	for _, credit := range []string{"early", "late", "middle", "unused", "zero"} {
		noError(t, b.CreateCredit(ctx, metering.Credit{ID: ids.New(), Key: credit, Name: credit, Unit: "unit", Revision: 1, CreatedAt: time.Now().UnixMilli()}))
		_, err := b.CreateFeature(ctx, featureOf("of-"+credit, credit))
		noError(t, err)
	}
	deposit := func(credit string, amount metering.Amount) {
		_, _, err := b.Deposit(ctx, store.Deposit{ID: ids.New(), Identity: "ann", CreditKey: credit, Amount: amount, CreatedAt: time.Now().UnixMilli()})
		noError(t, err)
	}
	uses := 0
	track := func(feature string, number int) {
		batch := make([]store.Usage, number)
		for i := range batch {
			uses++
			batch[i] = store.Usage{Scope: b.scope, KeyID: b.key, Identity: "ann", FeatureKey: feature,
				Usage: metering.Usage{TransactionID: ids.New(), EventID: fmt.Sprint("use ", uses), Quantity: 1}}
		}
		decisions, err := b.usage.TrackBatch(batch)
		noError(t, err)
		for _, d := range decisions {
			noError(t, d.Err)
			noError(t, d.Decision.Err())
		}
	}
	deposit("early", 1_000)
	deposit("unused", 1_000)
	track("of-early", 3)
	for range 3 {
		track("plain", 900)
	}
	deposit("middle", 1_000)
	track("of-middle", 2)
	for range 3 {
		track("plain", 900)
	}
	deposit("late", 1_000)
	track("of-late", 1)
	// It holds what it held at first. The deposit was requested before the last charges.
	_, _, err := b.Deposit(ctx, store.Deposit{ID: ids.New(), Identity: "ann", CreditKey: "early", Amount: 3 * featureOf("of-early", "early").Cost, CreatedAt: time.Now().UnixMilli() - 500})
	noError(t, err)

	moments := []int64{0, time.Now().UnixMilli() + 1}
	for _, text := range texts(t, b.conn, `SELECT DISTINCT created_at::text FROM (
		SELECT created_at FROM journal UNION ALL SELECT created_at FROM usage_events WHERE seq % 150 = 0 OR balance_after < 1000) entries`) {
		var at int64
		_, err := fmt.Sscan(text, &at)
		noError(t, err)
		moments = append(moments, at-1, at)
	}
	read := b.db.Reports(b.scope)
	for _, at := range moments {
		var got []string
		balances, err := read.BalancesAt(ctx, "ann", at)
		noError(t, err)
		for _, balance := range balances {
			got = append(got, fmt.Sprint(balance.CreditKey, " ", balance.Amount, " ", balance.Debt))
		}
		if want := texts(t, b.conn, balancesAt, at, b.scope.AppID); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
			t.Fatalf("at %d:\n got %q\nwant %q", at, got, want)
		}
	}

	lines, _, err := read.History(ctx, reports.HistoryQuery{Identity: "ann", CreditKey: "early", Limit: 10})
	noError(t, err)
	if len(lines) != 5 || lines[0].CreditKey != "early" || lines[4].Kind != metering.EntryDeposit {
		t.Errorf("the journal of a credit is %+v", lines)
	}
}

// The reversal of covered usage has an entry of a credit that the wallet never held.
func TestBalancesAfterAReversalOfCoveredUsage(t *testing.T) {
	t.Parallel()
	s := newShop(t, storetest.URL(t), 1)
	s.newCredit(t, "covered")
	feature := s.newFeature(t, featureOf("included", "covered"))
	plain := featureOf("plain", "tokens")
	plain.Cost = 1
	s.newFeature(t, plain)
	s.credit(t, "ann", 10_000)
	s.limit(t, "ann", feature, 3, metering.OverageCredits)
	batch := make([]store.Usage, 700)
	for n := range 3 { // more entries than are read at once
		for i := range batch {
			batch[i] = s.useOf("plain", "ann", fmt.Sprint("use ", n, " ", i))
		}
		decisions, err := s.nodes[0].usage.TrackBatch(batch)
		noError(t, err)
		for _, d := range decisions {
			noError(t, d.Err)
			noError(t, d.Decision.Err())
		}
	}
	mustAccept(t, s.nodes[0], s.useOf("included", "ann", "event"))
	_, _, err := s.Reverse(t.Context(), reversalOf("event", nil))
	noError(t, err)
	balances, err := s.Reports().BalancesAt(t.Context(), "ann", moment+1)
	noError(t, err)
	if len(balances) != 1 || balances[0].CreditKey != "tokens" || balances[0].Amount != 7_900 {
		t.Errorf("the balances are %+v", balances)
	}
}

// What a read of a range costs does not depend on how many credits the application has.
func TestRangesOfHistoryReadOnce(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	exec(t, b.conn, `INSERT INTO usage_events (app_id, org_id, tx_id, wallet_id, key_id, seq, price_number, quantity, created_at, amount_nanocredits, balance_after, event_id)
		SELECT w.app_id, w.org_id, gen_random_uuid(), w.id, w.id, w.last_seq + n, f.price_number, 1, n, 0, 0, ('more ' || n)::bytea
		FROM wallets w JOIN features f ON f.app_id = w.app_id AND f.key = 'plain' CROSS JOIN generate_series(1, 20000) n`)
	exec(t, b.conn, `INSERT INTO journal (id, app_id, org_id, wallet_id, seq, kind, credit_id, delta_nanocredits, balance_after, debt_after, created_at)
		SELECT gen_random_uuid(), w.app_id, w.org_id, w.id, w.last_seq + 20000 + n, 'deposit', c.id, 0, 0, 0, n
		FROM wallets w JOIN credits c ON c.app_id = w.app_id CROSS JOIN generate_series(1, 20000) n`)
	exec(t, b.conn, `ANALYZE`)
	// Statistics come later than rows.
	exec(t, b.conn, `INSERT INTO credits (id, app_id, org_id, key, name, unit, revision, created_at)
		SELECT gen_random_uuid(), c.app_id, c.org_id, 'credit-' || n, 'Credit', 'unit', 1, 0 FROM credits c CROSS JOIN generate_series(1, 100) n`)
	session := connect(t, asApp(b.url))
	exec(t, session, `SET purser.app_id = '`+b.scope.AppID.String()+`'`)
	wallet := texts(t, b.conn, `SELECT id::text FROM wallets`)[0]
	for name, args := range map[string][]any{
		"list last journal entries of credits": {wallet, 30_000, 32_001},
		"list last charges of prices":          {wallet, 10_000, 12_001},
		"select first entry from a moment on":  {wallet, 10_000, 12_001, 1 << 50},
		"list history":                         {wallet, 10_000, 12_001, nil, nil, 0, 1 << 50, false, 101},
	} {
		plan := strings.Join(texts(t, session, `EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) `+statementNamed(t, name), append([]any{b.scope.AppID}, args...)...), "\n")
		if blocks := blocksOf(t, plan); blocks > 10_000 {
			t.Errorf("%s reads %d blocks:\n%s", name, blocks, plan)
		}
	}
}
