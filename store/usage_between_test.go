package store_test

import (
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

// What happens between two steps of a batch happens here on purpose.

// newProxiedShop is a shop whose node zero reaches the database through a proxy,
// and whose other nodes reach it directly.
func newProxiedShop(tb testing.TB, url string, nodes int) (shop, *faultProxy) {
	tb.Helper()
	proxy, err := startProxy(url)
	noError(tb, err)
	s := shop{nodes: []node{openNode(tb, proxy.URL(), store.EngineOptions{})}}
	tb.Cleanup(proxy.Close) // before the node, which would wait for a silent server
	for range nodes - 1 {
		s.nodes = append(s.nodes, openNode(tb, url, store.EngineOptions{}))
	}
	return s.stocked(tb), proxy
}

// TestPeriodTurnsWhileABatchIsDecided lets the month end between the moment at
// which a node sees that it remembers enough and the moment at which it decides.
func TestPeriodTurnsWhileABatchIsDecided(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	month := metering.MonthOf(moment)
	var calls atomic.Int64 // of the clock, since it was armed: the month ends after the first
	calls.Store(-1_000_000)
	clock := func() int64 {
		if calls.Add(1) <= 1 {
			return month.End - 1
		}
		return month.End
	}
	s := shop{nodes: []node{openNode(t, url, store.EngineOptions{Now: clock}), openNode(t, url, store.EngineOptions{})}}.stocked(t)
	s.credit(t, "ann", 1000)
	s.limitMessages(t, "ann", 5)
	early := s.message("ann", "of the next month")
	early.Quantity, early.OccurredAt = 4, &month.End
	mustAccept(t, s.nodes[1], early)
	mustAccept(t, s.nodes[0], s.message("ann", "of this month"))

	calls.Store(0)
	late := s.message("ann", "at the turn")
	late.Quantity = 3
	if d, err := s.nodes[0].usage.Track(late); answer(d, err) == "accepted" && d.Allowance.Period != month {
		t.Errorf("3 were accepted where 4 of 5 were used")
	}
	soundBooks(t, url, s.tenant)
}

// TestKeyIsRevokedWhileACommitIsUnknown loses the reply to a commit and revokes
// the key before the batch can look again: what is committed is accepted.
func TestKeyIsRevokedWhileACommitIsUnknown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		warm bool
	}{{"under locks", false}, {"from memory", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s, proxy := newProxiedShop(t, url, 2)
			s.credit(t, "ann", 1000)
			s.warm(t, s.nodes[0], "ann", c.warm)
			proxy.Plan(once(afterCommit))
			proxy.Before("COMMIT", func() {
				proxy.Before("BEGIN", func() {
					if _, err := s.on(s.nodes[1]).RevokeKey(t.Context(), s.key.ID, moment); err != nil {
						t.Error(err)
					}
				})
			})
			mustAccept(t, s.nodes[0], s.message("ann", "event"))
			if proxy.Struck(afterCommit) != 1 {
				t.Error("no reply was lost")
			}
			soundBooks(t, url, s.tenant)
		})
	}
}

// once plans a fault for the first commit alone.
func once(f commitFault) faultPlan {
	return func(n int) commitFault {
		if n == 1 {
			return f
		}
		return noFault
	}
}

// TestPriceFallsWhileAWalletIsMade makes another's use free at the moment at which
// a batch goes back to make the wallet of a first, free use. Then that one has no
// wallet either, and must not be accepted without it.
func TestPriceFallsWhileAWalletIsMade(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s, proxy := newProxiedShop(t, url, 2)
	s.nodes[0].usage.OneLane()
	s.credit(t, "gate", 1000)
	free := featureOf("free", "tokens")
	free.Cost = 0
	s.newFeature(t, free)
	proxy.Before("ROLLBACK", func() {
		if _, err := s.on(s.nodes[1]).UpdateFeature(t.Context(), "message", metering.FeaturePatch{Cost: amountOf(0)}, moment); err != nil {
			t.Error(err)
		}
	})
	outcomes := s.inOneBatch(t, url, s.nodes[0], "gate", []store.Usage{s.useOf("free", "ann", "free"), s.message("bob", "made free")}, nil)
	stored := s.storedEvents(t, connect(t, url))
	for _, o := range outcomes {
		if o.String() != "accepted" || len(stored[o.use.EventID]) != 1 || stored[o.use.EventID][0] != o.use.TransactionID {
			t.Errorf("%q is %s, and stored as %v", o.use.EventID, o, stored[o.use.EventID])
		}
	}
	soundBooks(t, url, s.tenant)
}

// TestARepeatedUseOfAnErasedCustomerMakesNoWallet has another node accept a first, free use
// and erases its customer at the moment at which a batch goes back to make the wallet of the
// same use: it is a duplicate by then, and nothing else needs the wallet.
func TestARepeatedUseOfAnErasedCustomerMakesNoWallet(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s, proxy := newProxiedShop(t, url, 2)
	free := featureOf("free", "tokens")
	free.Cost = 0
	s.newFeature(t, free)
	proxy.Before("ROLLBACK", func() {
		if d, err := s.nodes[1].usage.Track(s.useOf("free", "ann", "repeated")); answer(d, err) != "accepted" {
			t.Errorf("the first is %s", answer(d, err))
		}
		if _, _, err := s.on(s.nodes[1]).Erase(t.Context(), erasureOf("ann")); err != nil {
			t.Error(err)
		}
	})
	if d, err := s.nodes[0].usage.Track(s.useOf("free", "ann", "repeated")); answer(d, err) != "duplicate" {
		t.Errorf("the repeated one is %s", answer(d, err))
	}
	if w, err := s.on(s.nodes[1]).Wallet(t.Context(), "ann"); !fault.Is(err, fault.WalletNotFound) {
		t.Errorf("the erased customer has the wallet %s, %v", w.ID, err)
	}
	soundBooks(t, url, s.tenant)
}

// TestFeatureChangesDuringItsFirstUse changes a feature whose first use is under
// way. The use is decided again; it is no bad use.
func TestFeatureChangesDuringItsFirstUse(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t) // alone, so that only the batch can wait for a lock
	s := newShop(t, url, 1)
	s.credit(t, "ann", 1000)
	tx, err := connect(t, url).Begin(t.Context())
	noError(t, err)
	change(t, tx, s)
	done := make(chan outcome)
	go func() { done <- trackOutcome(s.nodes[0], s.message("ann", "first use")) }()
	soon(t, "the batch at the feature's lock", func() bool { return lockWaits(t, url, "%") == 1 })
	noError(t, tx.Commit(t.Context()))
	if o := <-done; o.String() != "accepted" || o.d.Event.Charge.Amount != 11 {
		t.Errorf("the use is %s for %s: %v", o, o.d.Event.Charge.Amount, o.err)
	}
	if n := s.nodes[0].usage.Splits(); n != 0 {
		t.Errorf("the batch was split %d times", n)
	}
	soundBooks(t, url, s.tenant)
}

// change does what UpdateFeature does, in a transaction that stays open.
func change(t *testing.T, tx pgx.Tx, s shop) {
	t.Helper()
	exec(t, tx, `UPDATE features SET revision = 2, cost_nanocredits = 11, price_number = price_number + 1000 WHERE app_id = $1 AND key = 'message'`, s.application.ID)
	exec(t, tx, `UPDATE app_state SET epoch = epoch + 1000 WHERE app_id = $1`, s.application.ID)
	exec(t, tx, `INSERT INTO prices (app_id, number, org_id, feature_id, revision, credit_id, cost_nanocredits, quantity_per_unit, pricing_mode, created_at)
		SELECT app_id, price_number, org_id, id, revision, credit_id, cost_nanocredits, quantity_per_unit, pricing_mode, created_at
		FROM features WHERE app_id = $1 AND key = 'message'`, s.application.ID)
}

// TestMemoryChangesBetweenTwoLooks changes what a node remembers between the
// moment at which it sees that it remembers enough and the moment at which it
// decides by it.
func TestMemoryChangesBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*testing.T, shop)
		want   string
	}{
		{"by forgetting the wallet", func(t *testing.T, s shop) {
			_, _, err := s.on(s.nodes[0]).Deposit(t.Context(), depositOf("ann", "tokens", 1, freshID()))
			noError(t, err)
		}, "accepted"},
		{"by reading it again for another feature", func(t *testing.T, s shop) {
			use := s.message("ann", freshID())
			use.Quantity = 3
			mustAccept(t, s.nodes[1], use)
			_, err := s.nodes[0].usage.Check(s.useOf("other", "ann", ""))
			noError(t, err)
		}, "feature_limit_exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			var calls atomic.Int64
			calls.Store(1_000_000)
			var change func()
			clock := func() int64 {
				if calls.Add(1) == 3 { // the first is for old ids, the second for the look, this one for the decision
					change()
				}
				return moment
			}
			s := shop{nodes: []node{openNode(t, url, store.EngineOptions{Now: clock}), openNode(t, url, store.EngineOptions{})}}.stocked(t)
			change = func() { c.change(t, s) }
			s.newFeature(t, featureOf("other", "tokens"))
			s.credit(t, "ann", 1000)
			s.limitMessages(t, "ann", 5)
			mustAccept(t, s.nodes[0], s.message("ann", "first"))

			calls.Store(0)
			use := s.message("ann", "event")
			use.Quantity = 4
			if d, err := s.nodes[0].usage.Track(use); answer(d, err) != c.want {
				t.Errorf("the use is %s: %v", answer(d, err), err)
			}
			soundBooks(t, url, s.tenant)
		})
	}
}

// limitMessages gives an identity so many messages a month, and no more.
func (s shop) limitMessages(tb testing.TB, identity string, limit int64) {
	tb.Helper()
	message, err := s.Feature(tb.Context(), "message")
	noError(tb, err)
	noError(tb, s.PutSubscription(tb.Context(), identity, metering.Subscription{
		ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(moment),
		Terms: metering.Terms{Limits: []metering.Limit{{
			FeatureID: message.ID, FeatureKey: "message", Limit: limit, Period: metering.LimitMonth, Overage: metering.OverageBlock,
		}}},
	}))
}
