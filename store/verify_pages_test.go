package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/store/verify"
)

func TestVerifyInPagesOfOneRowFindsWhatItFindsAtOnce(t *testing.T) {
	t.Parallel()
	b := newSoldBooks(t)
	one := verify.Options{Page: 1, Now: moment}
	if v, err := b.Verification().Verify(t.Context(), one); err != nil || len(v.Differences)+len(v.Unfinished) > 0 {
		t.Fatalf("sound books: %v, %v, %v", v.Differences, v.Unfinished, err)
	}
	for name, corruption := range map[string]string{
		"a plan's feature is not held":         `DELETE FROM feature_references WHERE holder_id IN (SELECT id FROM plans)`,
		"a feature is held for nothing":        `INSERT INTO feature_references SELECT app_id, (SELECT id FROM features WHERE key = 'unused'), 'ffffffff-0000-0000-0000-000000000000', org_id, false FROM feature_references LIMIT 1`,
		"an adjustment has no entry":           `UPDATE adjustments SET entry_id = 'ffffffff-0000-0000-0000-000000000000' WHERE entry_id = (SELECT entry_id FROM adjustments ORDER BY entry_id LIMIT 1)`,
		"a debt belongs to no wallet":          `UPDATE debtors SET wallet_id = 'ffffffff-0000-0000-0000-000000000000'`,
		"a payment belongs to no wallet":       `UPDATE provider_payments SET wallet_id = 'ffffffff-0000-0000-0000-000000000000'`,
		"a payment is of another organization": `UPDATE provider_payments SET org_id = 'ffffffff-0000-0000-0000-000000000000'`,
	} {
		exec(t, b.conn, corruption)
		whole, err := b.Verification().Verify(t.Context(), verify.Options{Now: moment})
		noError(t, err)
		paged, err := b.Verification().Verify(t.Context(), one)
		noError(t, err)
		if len(whole.Differences) == 0 || !slices.Equal(sortedDifferences(whole), sortedDifferences(paged)) {
			t.Errorf("%s: at once %q, in pages %q", name, sortedDifferences(whole), sortedDifferences(paged))
		}
		b.restore(t, corruption)
	}
}

func sortedDifferences(v verify.Verification) (list []string) {
	for _, d := range v.Differences {
		list = append(list, d.String())
	}
	slices.Sort(list)
	return list
}

// verifyAndCancelWaits runs a pass, and cancels each of its statements that waits for a
// lock, as the database cancels one that takes longer than its limit.
func verifyAndCancelWaits(t *testing.T, app verify.App, conn *pgx.Conn, o verify.Options) verify.Verification {
	t.Helper()
	o.Now = moment
	var v verify.Verification
	ended := make(chan error)
	go func() {
		var err error
		v, err = app.Verify(t.Context(), o)
		ended <- err
	}()
	// A second cancellation of a statement could arrive during the next one.
	canceled := map[string]bool{}
	for running := true; running; {
		select {
		case err := <-ended:
			noError(t, err)
			running = false
		case <-time.After(time.Millisecond):
			for _, waiting := range texts(t, conn, `SELECT pid || ' ' || query_start FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) {
				if !canceled[waiting] {
					canceled[waiting] = true
					pid, _, _ := strings.Cut(waiting, " ")
					exec(t, conn, `SELECT pg_cancel_backend($1::text::int)`, pid)
				}
			}
		}
	}
	return v
}

func TestAFeatureWhoseEventsWereNotReadIsNoDifference(t *testing.T) {
	t.Parallel()
	b := newSoldBooks(t)
	blocker, err := connect(t, b.url).Begin(t.Context())
	noError(t, err)
	exec(t, blocker, `LOCK TABLE usage_events`)
	v := verifyAndCancelWaits(t, b.Verification(), b.conn, verify.Options{Record: true})
	if len(v.Unfinished) == 0 || len(v.Differences) > 0 {
		t.Errorf("unfinished are %q, differences %v", v.Unfinished, v.Differences)
	}
	noError(t, blocker.Rollback(t.Context()))
}

func TestSealsOfAnEarlierReleaseAreMarked(t *testing.T) {
	t.Parallel()
	b := newSoldBooks(t)
	exec(t, b.conn, `DELETE FROM sealed_wallets`)
	if _, err := b.Verification().Verify(t.Context(), verify.Options{Record: true, Now: moment}); err != nil {
		t.Fatal(err)
	}
	exec(t, b.conn, `DELETE FROM wallet_seals`)
	v, err := b.Verification().Verify(t.Context(), verify.Options{Record: true, Now: moment})
	noError(t, err)
	if len(v.Differences) == 0 || !strings.Contains(v.Differences[0].Detail, "the seal is missing") {
		t.Errorf("it finds %v", v.Differences)
	}
}

// Seals are the same whether events name their organization or not.
func TestEventsBelongToTheOrganizationOfTheirApplication(t *testing.T) {
	t.Parallel()
	b := newSoldBooks(t)
	sealed := func() []string {
		return texts(t, b.conn, `SELECT wallet_id || encode(seal, 'hex') FROM wallet_seals ORDER BY 1`)
	}
	for _, org := range []string{"(SELECT org_id FROM app_state)", "NULL"} {
		if changed := texts(t, b.conn, `UPDATE usage_events SET org_id = `+org+` RETURNING seq::text`); len(changed) == 0 {
			t.Fatal("the books have no events")
		}
		before := sealed()
		if v, err := b.Verification().Verify(t.Context(), verify.Options{}); err != nil || len(v.Differences) > 0 {
			t.Errorf("with the organization %s: %v, %v", org, v.Differences, err)
		}
		exec(t, b.conn, `DELETE FROM wallet_seals`)
		exec(t, b.conn, `DELETE FROM sealed_wallets`)
		exec(t, b.conn, `DELETE FROM sealed_counters`)
		if v, err := b.Verification().Verify(t.Context(), verify.Options{Record: true, Now: moment}); err != nil || len(v.Differences) > 0 {
			t.Errorf("with the organization %s: %v, %v", org, v.Differences, err)
		}
		if after := sealed(); len(after) == 0 || !slices.Equal(before, after) {
			t.Errorf("with the organization %s the seals %v became %v", org, before, after)
		}
	}
}

func TestVerifyContinuesAfterACanceledCheck(t *testing.T) {
	t.Parallel()
	b := newSoldBooks(t)
	exec(t, b.conn, `DELETE FROM wallet_seals`)
	exec(t, b.conn, `DELETE FROM sealed_wallets`)
	exec(t, b.conn, `DELETE FROM feature_references`)
	blocker, err := connect(t, b.url).Begin(t.Context())
	noError(t, err)
	exec(t, blocker, `LOCK TABLE topups`)

	v := verifyAndCancelWaits(t, b.Verification(), b.conn, verify.Options{Record: true})
	for _, rule := range []string{"each paid top-up was credited as it was sold", "every event, counter and billed period belongs to a wallet"} {
		if !slices.Contains(v.Unfinished, rule) {
			t.Errorf("%q is missing from the unfinished checks %q", rule, v.Unfinished)
		}
	}
	if len(v.Differences) == 0 {
		t.Error("the check of the references did not run")
	}
	if seals := texts(t, b.conn, `SELECT wallet_id::text FROM wallet_seals`); len(seals) > 0 {
		t.Errorf("%d wallets were sealed without a check of their top-ups", len(seals))
	}

	noError(t, blocker.Rollback(t.Context()))
	b.restore(t, "feature_references")
	v, err = b.Verification().Verify(t.Context(), verify.Options{Record: true, Now: moment})
	if noError(t, err); len(v.Differences)+len(v.Unfinished) > 0 {
		t.Errorf("afterwards: %v, %v", v.Differences, v.Unfinished)
	}
	if seals := texts(t, b.conn, `SELECT wallet_id::text FROM wallet_seals`); len(seals) == 0 {
		t.Error("no wallet was sealed")
	}
}

func TestVerifyFindsAMissingSealUntilItIsRestored(t *testing.T) {
	t.Parallel()
	b := newSoldBooks(t)
	before, err := b.Verification().SealDigest(t.Context())
	noError(t, err)
	exec(t, b.conn, `DELETE FROM wallet_seals WHERE wallet_id = `+annsWallet)
	for _, o := range []verify.Options{{New: true, Record: true, Now: moment}, {Record: true, Now: moment}, {New: true, Now: moment}} {
		v, err := b.Verification().Verify(t.Context(), o)
		noError(t, err)
		if len(v.Differences) != 1 || !strings.Contains(v.Differences[0].Detail, "the seal is missing") || v.Differences[0].Identity != "ann" {
			t.Errorf("%+v finds %v", o, v.Differences)
		}
	}
	if without, err := b.Verification().SealDigest(t.Context()); err != nil || without == before || without.Wallets != before.Wallets-1 {
		t.Errorf("without the seal the digest is %+v, before it was %+v: %v", without, before, err)
	}
	b.restore(t, "wallet_seals")
	if v, err := b.Verification().Verify(t.Context(), verify.Options{}); err != nil || len(v.Differences) > 0 {
		t.Errorf("with the seal it finds %v, %v", v.Differences, err)
	}
	if after, err := b.Verification().SealDigest(t.Context()); err != nil || after != before {
		t.Errorf("the digest is %+v, before it was %+v: %v", after, before, err)
	}
	// Both were changed together: only the digest tells.
	exec(t, b.conn, `UPDATE wallet_seals SET seal = sha256('another') WHERE wallet_id = `+annsWallet)
	if forged, err := b.Verification().SealDigest(t.Context()); err != nil || forged.Digest == before.Digest || forged.Entries != before.Entries {
		t.Errorf("with another seal the digest is %+v: %v", forged, err)
	}
}

func TestVerifyComparesTermsByTheirMeaning(t *testing.T) {
	t.Parallel()
	b := newSoldBooks(t)
	const sold = `UPDATE subscriptions SET sale = sale || `
	for name, c := range map[string]struct {
		change string
		found  bool
	}{
		"a field that a later version stores": {sold + `'{"trialDays": 0}' WHERE provider_id IS NOT NULL`, false},
		"an empty list that is spelt out":     {`UPDATE subscriptions SET terms = terms || '{"multipliers": []}' WHERE provider_id IS NOT NULL`, false},
		"another price":                       {sold + `'{"amountCents": 1}' WHERE provider_id IS NOT NULL`, true},
		"another limit":                       {`UPDATE subscriptions SET terms = jsonb_set(terms, '{limits,0,limit}', '99') WHERE provider_id IS NOT NULL`, true},
	} {
		exec(t, b.conn, c.change)
		v, err := b.Verification().Verify(t.Context(), verify.Options{})
		noError(t, err)
		if found := slices.ContainsFunc(v.Differences, func(d verify.Difference) bool {
			return strings.Contains(d.Detail, "has terms that no change asked for")
		}); found != c.found || len(v.Differences) > 0 != c.found {
			t.Errorf("%s: %v", name, v.Differences)
		}
		b.restore(t, c.change)
	}
}
