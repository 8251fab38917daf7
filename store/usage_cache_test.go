package store_test

import (
	"slices"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

// newDailyShop is a shop with a feature that is charged once a day for each entity.
func newDailyShop(t *testing.T) (shop, node) {
	t.Helper()
	s := newShopOfOneLane(t, storetest.URL(t), 1)
	daily := featureOf("daily", "tokens")
	daily.Deduplication = metering.DeduplicateDay
	s.newFeature(t, daily)
	return s, s.nodes[0]
}

func (s shop) daily(identity, entity string) store.Usage {
	use := s.useOf("daily", identity, freshID())
	use.EntityID = entity
	return use
}

// wantCountedRows expects that the caches count the rows that they have.
func wantCountedRows(t *testing.T, n node) (rows, most int) {
	t.Helper()
	counted, rows, most := n.usage.CachedRows()
	if counted != rows {
		t.Fatalf("%d rows are cached and %d are counted", rows, counted)
	}
	return rows, most
}

// TestChecksDoNotGrowACachedWallet checks for other entities again and again, each of which
// is a row that the wallet is cached with.
func TestChecksDoNotGrowACachedWallet(t *testing.T) {
	t.Parallel()
	const rounds, checks = 40, 50
	s, n := newDailyShop(t)
	s.credit(t, "ann", 1_000_000)
	mustAccept(t, n, s.daily("ann", "first"))
	highest := 0
	for round := range rounds {
		answers := make([]outcome, checks)
		atOnce(checks, func(i int) {
			d, err := n.usage.Check(s.daily("ann", numbered(numbered("entity", round), i)))
			answers[i] = outcome{d: d, err: err}
		})
		if got := tally(answers); got["accepted"] != checks {
			t.Fatalf("of %d checks: %v", checks, got)
		}
		_, most := wantCountedRows(t, n)
		highest = max(highest, most)
	}
	if highest > store.MaxKeyedRows || highest < store.MaxKeyedRows/2 {
		t.Errorf("the wallet was cached with up to %d keyed rows, not about %d", highest, store.MaxKeyedRows)
	}
}

// TestCachedRowsAreBounded fills the cache with wallets that have a row for each entity: by
// events, batches and checks.
func TestCachedRowsAreBounded(t *testing.T) {
	t.Parallel()
	const wallets, entities, bound = 12, 10, 60
	s, n := newDailyShop(t)
	n.usage.SetMaxRows(bound)
	lanes := 1 + store.BulkLanes
	for w := range wallets {
		identity := numbered("wallet", w)
		s.credit(t, identity, 1_000_000)
		mustAccept(t, n, s.daily(identity, "first"))
		s.credit(t, identity, 1) // evicts it
		for e := range entities {
			mustAccept(t, n, s.daily(identity, numbered("event", e)))
			d, err := n.usage.Check(s.daily(identity, numbered("check", e)))
			noError(t, err)
			if d.Verdict != metering.Accepted {
				t.Fatalf("a check is answered with %q", d.Verdict)
			}
			if rows, _ := wantCountedRows(t, n); rows > bound {
				t.Fatalf("%d rows are cached, more than %d", rows, bound)
			}
		}
		if !n.usage.IsCached(s.application.ID, identity) {
			t.Error("the newest wallet is not cached")
		}
	}
	if n.usage.IsCached(s.application.ID, numbered("wallet", 0)) {
		t.Error("the oldest wallet is still cached")
	}
	for w := range wallets { // which the other lanes cache instead
		var batch []store.Usage
		for e := range entities {
			batch = append(batch, s.daily(numbered("wallet", w), numbered("batch", e)))
		}
		_, err := n.usage.TrackBatch(batch)
		noError(t, err)
		if rows, _ := wantCountedRows(t, n); rows > lanes*bound {
			t.Fatalf("%d rows are cached, more than %d", rows, lanes*bound)
		}
	}
}

// TestCachedTermsAreBounded fills the cache with wallets whose plan limits many features, and
// with features.
func TestCachedTermsAreBounded(t *testing.T) {
	t.Parallel()
	const wallets, limits, bound, features = 12, 40, 60, 5
	s, n := newDailyShop(t)
	n.usage.SetMaxRows(bound)
	n.usage.SetMaxItems(features)
	var terms metering.Terms
	for f := range limits {
		feature := s.newFeature(t, featureOf(numbered("feature", f), "tokens"))
		terms.Limits = append(terms.Limits, metering.Limit{FeatureID: feature.ID, FeatureKey: feature.Key, Limit: 10, Period: metering.LimitMonth, Overage: metering.OverageBlock})
	}
	for w := range wallets {
		identity := numbered("wallet", w)
		s.credit(t, identity, 1_000_000)
		noError(t, s.PutSubscription(t.Context(), identity, metering.Subscription{ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(moment), Terms: terms}))
		mustAccept(t, n, s.daily(identity, "first"))
		if rows, _ := wantCountedRows(t, n); rows > bound {
			t.Fatalf("%d rows are cached, more than %d", rows, bound)
		}
		if !n.usage.IsCached(s.application.ID, identity) {
			t.Error("the newest wallet is not cached")
		}
	}
	if n.usage.IsCached(s.application.ID, numbered("wallet", wallets-bound/(limits/4))) {
		t.Error("an older wallet is still cached")
	}
	for f := range 3 * features {
		mustAccept(t, n, s.useOf(numbered("feature", f), "wallet 0", freshID()))
		if cached, _ := n.usage.CachedItems(s.application.ID); cached == 0 || cached > features {
			t.Fatalf("%d features are cached", cached)
		}
	}
}

// TestCachedKeysAreBounded uses many keys of one application, alone and beside others.
func TestCachedKeysAreBounded(t *testing.T) {
	t.Parallel()
	const bound = 5
	s, n := newDailyShop(t)
	n.usage.SetMaxItems(bound)
	s.credit(t, "ann", 1_000_000)
	var batch []store.Usage
	for range 3 * bound {
		key, _ := s.newKey(t, keys.Ingestion)
		use := s.daily("ann", freshID())
		use.KeyID = key.ID
		mustAccept(t, n, use)
		if _, cached := n.usage.CachedItems(s.application.ID); cached == 0 || cached > bound {
			t.Fatalf("%d keys are cached", cached)
		}
		use.EventID, use.TransactionID = freshID(), ids.New()
		batch = append(batch, use)
	}
	for range 2 { // the batch has more than may be cached
		outcomes, err := n.usage.TrackBatch(batch)
		noError(t, err)
		for _, o := range outcomes {
			if o.Err != nil || o.Decision.Err() != nil {
				t.Errorf("usage with one of many keys: %v, %v", o.Err, o.Decision.Err())
			}
		}
		for i := range batch {
			batch[i].EventID, batch[i].TransactionID = freshID(), ids.New()
		}
	}
	revoked := batch[0]
	_, err := s.RevokeKey(t.Context(), revoked.KeyID, moment)
	noError(t, err)
	if o := trackOutcome(n, revoked); o.String() != string(fault.RevokedAPIKey) {
		t.Errorf("usage with a revoked key is answered with %s", o)
	}
}

// TestTermsAreReadOnce reads a wallet with several balances: terms may be long.
func TestTermsAreReadOnce(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	for _, credit := range []string{"seats", "minutes"} {
		s.newCredit(t, credit)
		s.deposit(t, depositOf("ann", credit, 5, freshID()))
	}
	s.credit(t, "ann", 5)
	s.limitMessages(t, "ann", 10)
	statements := store.HotStatements()
	read := statements[slices.IndexFunc(statements, func(s store.Statement) bool { return s.Name == "read wallets" })]
	rows := texts(t, planner(t, url, s.application.ID), `SELECT concat(r.credit_id IS NOT NULL, r.terms IS NOT NULL) FROM (`+read.SQL+`) r ORDER BY 1`, s.application.ID, []string{"ann", "bob"})
	if want := []string{"ft", "tf", "tf", "tf"}; !slices.Equal(rows, want) {
		t.Errorf("the rows have a balance or terms as %v, not %v", rows, want)
	}
}

// A node has a renamed wallet in its cache twice, under the old identity with an old
// counter. An event of the old identity must not write that counter.
func TestARenamedWalletKeepsItsAllowance(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShopOfOneLane(t, url, 2)
	n := s.nodes[0] // the other one renames
	report := s.newFeature(t, featureOf("report", "tokens"))
	s.credit(t, "gate", 10*messagePrice)
	s.credit(t, "ann", messagePrice-1)
	s.limit(t, "ann", report, 100, metering.OverageBlock)
	for range 5 {
		mustAccept(t, n, s.useOf("report", "ann", freshID()))
	}
	_, _, err := s.Rename(t.Context(), renameOf("ann", "eve"))
	noError(t, err)
	for range 2 {
		mustAccept(t, n, s.useOf("report", "eve", freshID()))
	}
	outcomes := s.inOneBatch(t, url, n, "gate", []store.Usage{s.useOf("report", "eve", freshID()), s.message("ann", freshID())}, nil)
	if eve, ann := outcomes[0].String(), outcomes[1].String(); eve != "accepted" || ann != string(fault.InsufficientBalance) {
		t.Errorf("the new identity is %s and the old one %s", eve, ann)
	}
	if n.usage.IsCached(s.application.ID, "ann") {
		t.Error("an identity without a wallet is cached after it was read")
	}
	if d := mustAccept(t, s.nodes[1], s.useOf("report", "eve", freshID())); d.Allowance.Used != 8 {
		t.Errorf("%d of the allowance are used after 8 events", d.Allowance.Used)
	}
	soundBooks(t, url, s.tenant)
}
