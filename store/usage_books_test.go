package store_test

import (
	"slices"
	"strings"
	"testing"

	"purser/metering"
	"purser/store/storetest"
	"purser/store/verify"
)

// entriesTable is every change of a balance, with what is held less what is owed after
// it: the journal's rows and the charges of usage.
const entriesTable = `
	entries AS (
		SELECT wallet_id, credit_id, seq, delta_nanocredits AS delta, balance_after - debt_after AS net_after
		FROM journal WHERE app_id = $1
		UNION ALL
		SELECT e.wallet_id, p.credit_id, e.seq, -e.amount_nanocredits, e.balance_after - coalesce(e.debt_after, 0)
		FROM usage_events e JOIN prices p ON p.app_id = e.app_id AND p.number = e.price_number
		WHERE e.app_id = $1)`

// acceptedTable is every use that was charged or covered, with the feature it was of.
const acceptedTable = `
	accepted AS (
		SELECT e.*, p.feature_id FROM usage_events e JOIN prices p ON p.app_id = e.app_id AND p.number = e.price_number
		WHERE e.app_id = $1 AND e.deduplicated_from IS NULL)`

// standingTable is every accepted use whose charge was not fully returned.
const standingTable = acceptedTable + `,
	standing AS (
		SELECT a.* FROM accepted a
		WHERE NOT EXISTS (SELECT FROM reversals r WHERE r.app_id = $1 AND r.tx_id = a.tx_id AND r.whole))`

// invariants are what must hold in every committed state. Each gives a line for
// whatever breaks it.
var invariants = []struct{ holds, sql string }{
	{"what came in less what was charged is the balance less the debt", `
		WITH ` + entriesTable + `,
		sums AS (SELECT wallet_id, credit_id, sum(delta) AS net FROM entries GROUP BY 1, 2),
		held AS (SELECT wallet_id, credit_id, amount_nanocredits - debt_nanocredits AS net FROM balances WHERE app_id = $1)
		SELECT format('wallet %s: the entries say %s, the balance %s', wallet_id, sums.net, held.net)
		FROM sums FULL JOIN held USING (wallet_id, credit_id)
		WHERE coalesce(sums.net, 0) <> coalesce(held.net, 0)`},
	{"the entries of a wallet are numbered from one without a gap", `
		WITH ` + entriesTable + `,
		places AS (SELECT wallet_id, count(*) AS n, count(DISTINCT seq) AS d, min(seq) AS low, max(seq) AS high FROM entries GROUP BY 1)
		SELECT format('wallet %s: %s entries from %s to %s, the wallet says %s', coalesce(w.id, p.wallet_id), p.n, p.low, p.high, w.last_seq)
		FROM places p FULL JOIN (SELECT * FROM wallets WHERE app_id = $1) w ON w.id = p.wallet_id
		WHERE (coalesce(p.n, 0), coalesce(p.d, 0), coalesce(p.high, 0)) IS DISTINCT FROM (w.last_seq, w.last_seq, w.last_seq)
			OR p.low <> 1`},
	{"each entry leaves the balance that the entries before it add up to", `
		WITH ` + entriesTable + `
		SELECT format('wallet %s, entry %s: %s is left, not %s', wallet_id, seq, net_after, net)
		FROM (SELECT *, sum(delta) OVER (PARTITION BY wallet_id, credit_id ORDER BY seq) AS net FROM entries) chained
		WHERE net <> net_after`},
	{"a counter is the sum of the accepted quantities of its period that were not reversed", `
		WITH ` + standingTable + `,
		sums AS (SELECT wallet_id, feature_id, allowance_start AS period_start, allowance_end AS period_end, sum(quantity) AS used
			FROM standing WHERE allowance_limit IS NOT NULL GROUP BY 1, 2, 3, 4),
		counted AS (SELECT wallet_id, feature_id, period_start, period_end, used FROM counters WHERE app_id = $1)
		SELECT format('wallet %s: the events say %s, the counter %s', wallet_id, sums.used, counted.used)
		FROM sums FULL JOIN counted USING (wallet_id, feature_id, period_start, period_end)
		WHERE coalesce(sums.used, 0) <> coalesce(counted.used, -1)`},
	{"a period of deduplication has one accepted use that was not reversed", `
		WITH ` + standingTable + `,
		firsts AS (SELECT wallet_id, feature_id, period_start, period_end, coalesce(entity_id, '') AS entity_id, tx_id
			FROM standing WHERE period_end IS NOT NULL),
		billed AS (SELECT wallet_id, feature_id, period_start, period_end, entity_id, tx_id FROM billed_periods WHERE app_id = $1)
		SELECT format('wallet %s, entity %s: charged by %s, billed by %s', wallet_id, entity_id, firsts.tx_id, billed.tx_id)
		FROM firsts FULL JOIN billed USING (wallet_id, feature_id, period_start, period_end, entity_id)
		WHERE firsts.tx_id IS DISTINCT FROM billed.tx_id`},
	{"a deduplicated use is free and names the one that was charged", `
		WITH ` + acceptedTable + `
		SELECT format('transaction %s', e.tx_id)
		FROM usage_events e LEFT JOIN accepted a ON a.tx_id = e.deduplicated_from
			AND a.wallet_id = e.wallet_id AND (a.period_start, a.period_end) = (e.period_start, e.period_end)
			AND a.entity_id IS NOT DISTINCT FROM e.entity_id
		WHERE e.app_id = $1 AND e.deduplicated_from IS NOT NULL AND (a.tx_id IS NULL OR e.amount_nanocredits <> 0)`},
	{"a wallet is marked as charged from its first accepted use", `
		WITH ` + acceptedTable + `
		SELECT format('wallet %s', w.id) FROM wallets w
		WHERE w.app_id = $1 AND w.charged <> EXISTS (SELECT FROM accepted a WHERE a.wallet_id = w.id)`},
	{"the reversals of a charge return no more than the charge, as their entries say", `
		WITH ` + acceptedTable + `,
		returned AS (SELECT r.tx_id, sum(r.amount_nanocredits) AS returned, sum(j.delta_nanocredits) FILTER (WHERE j.kind = 'reversal') AS posted,
				bool_or(r.whole) AS whole
			FROM reversals r LEFT JOIN journal j ON j.app_id = $1 AND j.id = r.entry_id AND j.wallet_id = r.wallet_id
			WHERE r.app_id = $1 GROUP BY r.tx_id)
		SELECT format('transaction %s: %s of %s returned, entries say %s', r.tx_id, r.returned, a.amount_nanocredits, r.posted)
		FROM returned r LEFT JOIN accepted a ON a.tx_id = r.tx_id
		WHERE a.tx_id IS NULL OR r.returned > a.amount_nanocredits OR r.returned IS DISTINCT FROM r.posted
			OR r.whole <> (r.returned = a.amount_nanocredits)`},
	{"a transfer takes from one wallet what it gives to another", `
		WITH sides AS (
			SELECT entry_id AS id, wallet_id, -amount_nanocredits AS delta FROM transfers WHERE app_id = $1
			UNION ALL
			SELECT to_entry_id, to_wallet_id, amount_nanocredits FROM transfers WHERE app_id = $1),
		posted AS (SELECT id, wallet_id, delta_nanocredits AS delta FROM journal WHERE app_id = $1 AND kind = 'transfer')
		SELECT format('entry %s: %s recorded, %s posted', id, sides.delta, posted.delta)
		FROM sides FULL JOIN posted USING (id, wallet_id) WHERE sides.delta IS DISTINCT FROM posted.delta
		UNION ALL
		SELECT format('transfer %s is of two credits', t.entry_id)
		FROM transfers t JOIN journal o ON o.app_id = $1 AND o.id = t.entry_id JOIN journal i ON i.app_id = $1 AND i.id = t.to_entry_id
		WHERE t.app_id = $1 AND o.credit_id <> i.credit_id`},
}

// soundBooks holds an application's rows against the invariants, and against what
// the service itself has to say about its books.
func soundBooks(tb testing.TB, url string, a tenant) {
	tb.Helper()
	for _, broken := range brokenInvariants(tb, connect(tb, url), a) {
		tb.Errorf("not so: %s", broken)
	}
	v, err := a.Verification().Verify(tb.Context(), verify.Options{})
	noError(tb, err)
	for _, d := range v.Differences {
		tb.Errorf("verify: not so: %s (%s)", d.Check, d.Detail)
	}
}

func brokenInvariants(tb testing.TB, on execer, a tenant) (broken []string) {
	tb.Helper()
	for _, invariant := range invariants {
		for _, line := range texts(tb, on, invariant.sql, a.application.ID) {
			broken = append(broken, invariant.holds+": "+line)
		}
	}
	return broken
}

// A check that cannot fail proves nothing.
func TestInvariantsSeeWhatIsSpoilt(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	h := newFixture(t, db, openUsage(t, db))
	again := h.useOf("daily", "event 3") // deduplicated
	usage := openUsage(t, db)
	if d, err := usage.Track(again); err != nil || d.Verdict != metering.Deduplicated {
		t.Fatalf("%s, %v", d.Verdict, err)
	}
	_, _, err := h.Reverse(t.Context(), reversalOf("event 1", nil))
	noError(t, err)
	conn := connect(t, storetest.URL(t))
	if broken := brokenInvariants(t, conn, h.tenant); len(broken) > 0 {
		t.Fatalf("sound books are called broken: %v", broken)
	}
	for i, spoiling := range []string{
		`UPDATE balances SET amount_nanocredits = amount_nanocredits + 1 WHERE app_id = $1`,
		`DELETE FROM usage_events WHERE app_id = $1 AND event_id = 'event 1'`,
		`UPDATE usage_events SET balance_after = balance_after + 1 WHERE app_id = $1 AND event_id = 'event 1'`,
		`UPDATE counters SET used = used + 1 WHERE app_id = $1`,
		`DELETE FROM billed_periods WHERE app_id = $1`,
		`UPDATE usage_events SET deduplicated_from = app_id WHERE app_id = $1 AND event_id = 'event 3'`,
		`UPDATE wallets SET charged = false WHERE app_id = $1`,
		`UPDATE reversals SET amount_nanocredits = amount_nanocredits + 1 WHERE app_id = $1`,
		`UPDATE transfers SET amount_nanocredits = amount_nanocredits + 1 WHERE app_id = $1`,
	} {
		t.Run(invariants[i].holds, func(t *testing.T) {
			tx, err := conn.Begin(t.Context())
			noError(t, err)
			exec(t, tx, spoiling, h.application.ID)
			broken := brokenInvariants(t, tx, h.tenant)
			noError(t, tx.Rollback(t.Context()))
			if !slices.ContainsFunc(broken, func(line string) bool { return strings.HasPrefix(line, invariants[i].holds) }) {
				t.Errorf("%s went unnoticed; found %v", spoiling, broken)
			}
		})
	}
}
