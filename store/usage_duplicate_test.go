package store_test

import (
	"slices"
	"sync"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

// TestEventIsChargedOnce sends one event id many times at once, with different
// content each time.
func TestEventIsChargedOnce(t *testing.T) {
	t.Parallel()
	const sends, rounds = 60, 8
	for _, c := range []struct {
		name           string
		nodes, wallets int
	}{
		{"for one wallet on one node", 1, 1},
		{"for one wallet on three nodes", 3, 1},
		{"for twenty wallets on one node", 1, 20},
		{"for twenty wallets on three nodes", 3, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := newShop(t, url, c.nodes)
			daily := featureOf("daily", "tokens")
			daily.Deduplication = metering.DeduplicateDay
			s.newFeature(t, daily)
			for w := range c.wallets {
				s.credit(t, numbered("wallet", w), 1_000_000)
			}
			for round := range rounds {
				feature := []string{"message", "daily"}[round%2]
				outcomes := make([]outcome, sends)
				atOnce(sends, func(i int) {
					use := s.useOf(feature, numbered("wallet", i%c.wallets), numbered("event", round))
					use.Quantity = int64(1 + i)
					use.EntityID = numbered("entity", round)
					outcomes[i] = trackOutcome(s.nodes[i%c.nodes], use)
				})
				sameAnswer(t, outcomes)
			}
			if stored := s.storedEvents(t, connect(t, url)); len(stored) != rounds {
				t.Errorf("%d events are stored, not %d", len(stored), rounds)
			}
			soundBooks(t, url, s.tenant)
		})
	}
}

// sameAnswer expects one accepted use, and every other to repeat its answer.
func sameAnswer(t *testing.T, outcomes []outcome) {
	t.Helper()
	var first outcome
	for _, o := range outcomes {
		if o.String() == "accepted" {
			first = o
		}
	}
	if got := tally(outcomes); got["accepted"] != 1 || got["duplicate"] != len(outcomes)-1 {
		t.Fatalf("of %d sends: %v", len(outcomes), got)
	}
	if first.d.Event.TransactionID != first.use.TransactionID {
		t.Errorf("the accepted use carries another's transaction")
	}
	for _, o := range outcomes {
		got, want := o.d.Event, first.d.Event
		if got.TransactionID != want.TransactionID || got.Charge.Amount != want.Charge.Amount ||
			got.Period != want.Period || got.DeduplicatedFrom != want.DeduplicatedFrom {
			t.Errorf("a repeat is answered with %s, %s, %v; the first with %s, %s, %v",
				got.TransactionID, got.Charge.Amount, got.Period, want.TransactionID, want.Charge.Amount, want.Period)
		}
	}
}

// TestRepeatsOnTwoNodesDoNotBlockEachOther sends the same ids to two nodes at the
// same moment, in opposite orders, for wallets that they share and for wallets of
// their own: neither the wallets nor the ids may be taken in an order in which the
// nodes wait for each other.
func TestRepeatsOnTwoNodesDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	const nodes, events, wallets, rounds = 2, 150, 3, 12
	url := storetest.FreshURL(t)
	s := newShopOfOneLane(t, url, nodes)
	for n := range nodes {
		s.credit(t, numbered("gate", n), 1_000_000)
		for w := range wallets {
			s.credit(t, numbered("wallet", n*wallets+w), 1_000_000)
		}
	}
	var all []outcome
	for round := range rounds {
		outcomes := make([][]outcome, nodes)
		var ready sync.WaitGroup
		ready.Add(nodes)
		atOnce(nodes, func(n int) {
			requests := make([]store.Usage, events)
			for e := range events {
				wallet := e % wallets // shared
				if round%2 == 1 {
					wallet += n * wallets // its own
				}
				requests[e] = s.message(numbered("wallet", wallet), numbered("event", round*events+e))
			}
			if n == 1 {
				slices.Reverse(requests)
			}
			outcomes[n] = s.inOneBatch(t, url, s.nodes[n], numbered("gate", n), requests, func() {
				ready.Done()
				ready.Wait()
			})
		})
		all = append(all, slices.Concat(outcomes...)...)
	}
	if got := tally(all); got["accepted"] != rounds*events || got["duplicate"] != rounds*events*(nodes-1) {
		t.Errorf("of %d sends of %d events: %v", len(all), rounds*events, got)
	}
	soundBooks(t, url, s.tenant)
	s.closeNodes()
	if n := deadlocks(t, url); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// TestTwoNodesWriteIdsInOneOrder stops two nodes in the middle of writing the same
// ids, which came to them in opposite orders, until both have begun. If each began
// with what came to it first, each would then wait for the other.
func TestTwoNodesWriteIdsInOneOrder(t *testing.T) {
	t.Parallel()
	const nodes = 2
	url := storetest.FreshURL(t)
	s := newShopOfOneLane(t, url, nodes)
	for n := range nodes {
		s.credit(t, numbered("gate", n), 1000)
		s.credit(t, numbered("wallet", n), 1000)
		s.warm(t, s.nodes[n], numbered("wallet", n), true)
	}
	tx, err := connect(t, url).Begin(t.Context())
	noError(t, err)
	exec(t, tx, `INSERT INTO usage_events (app_id, org_id, tx_id, wallet_id, key_id, seq, price_number, quantity, created_at,
			amount_nanocredits, balance_after, event_id)
		VALUES ($1, $1, $1, $1, $1, 1, 1, 1, 0, 0, 0, 'middle')`, s.application.ID)

	outcomes := make([][]outcome, nodes)
	var done sync.WaitGroup
	for n, order := range [][]string{{"a", "middle", "z"}, {"z", "middle", "a"}} {
		done.Go(func() {
			var requests []store.Usage
			for _, event := range order {
				requests = append(requests, s.message(numbered("wallet", n), event))
			}
			outcomes[n] = s.inOneBatch(t, url, s.nodes[n], numbered("gate", n), requests, nil)
		})
	}
	soon(t, "two nodes in the middle", func() bool { return lockWaits(t, url, "%INTO %usage_events%") == nodes })
	noError(t, tx.Rollback(t.Context()))
	done.Wait()
	if got := tally(slices.Concat(outcomes...)); got["accepted"] != 3 || got["duplicate"] != 3 {
		t.Errorf("of three events sent twice: %v", got)
	}
	soundBooks(t, url, s.tenant)
	s.closeNodes()
	if n := deadlocks(t, url); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// Applications of one batch are written in one transaction, which fails for the event id
// that one of them repeats. The others have repeated nothing.
func TestARepeatedIDSlowsItsOwnApplicationOnly(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShopOfOneLane(t, url, 1)
	n, other := s.nodes[0], shop{nodes: s.nodes}.stocked(t)
	for _, own := range []shop{s, other} {
		own.credit(t, "ann", 10*messagePrice)
		own.warm(t, n, "ann", true)
	}
	s.credit(t, "gate", 10*messagePrice)
	repeated := s.message("ann", "repeated")
	mustAccept(t, n, repeated)
	repeated.TransactionID = ids.New()
	outcomes := s.inOneBatch(t, url, n, "gate", []store.Usage{repeated, other.message("ann", freshID())}, nil)
	if first, second := outcomes[0].String(), outcomes[1].String(); first != "duplicate" || second != "accepted" {
		t.Errorf("the repeated event is %s, the other application's %s", first, second)
	}
	if own, others := n.usage.LooksUpEventIDs(s.application.ID), n.usage.LooksUpEventIDs(other.application.ID); !own || others {
		t.Errorf("event ids are looked up first of the one that repeats: %t, of the other: %t", own, others)
	}
}

// A group with an event id that is recorded fails its whole batch, as a repeated event does.
func TestAGroupThatRepeatsAnIDIsLookedUpFirst(t *testing.T) {
	t.Parallel()
	s := newShopOfOneLane(t, storetest.URL(t), 1)
	n := s.nodes[0]
	s.credit(t, "ann", 10*messagePrice)
	groupOf := func(ids ...string) (group []store.Usage) {
		for _, id := range ids {
			group = append(group, s.message("ann", id))
		}
		return group
	}
	_, _, err := n.usage.TrackGroup(groupOf("recorded", freshID()))
	noError(t, err)
	_, _, err = n.usage.TrackGroup(groupOf("recorded", freshID()))
	if !fault.Is(err, fault.GroupConflict) || n.usage.Conflicts() != 1 {
		t.Errorf("a group with a recorded id: %v, after %d conflicts", err, n.usage.Conflicts())
	}
	if !n.usage.LooksUpEventIDs(s.application.ID) {
		t.Error("the next such group fails its batch too")
	}
}

// The second of two equal ids in a batch waits for the first. No batch fails for it, so all
// other events of the application are written without locks.
func TestAnIDThatIsRepeatedInItsBatchSlowsNoOther(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShopOfOneLane(t, url, 1)
	n := s.nodes[0]
	s.credit(t, "gate", 10*messagePrice)
	s.credit(t, "ann", 10*messagePrice)
	s.warm(t, n, "ann", true)
	outcomes := s.inOneBatch(t, url, n, "gate", []store.Usage{s.message("ann", "twice"), s.message("ann", "twice")}, nil)
	if first, second := outcomes[0].String(), outcomes[1].String(); first != "accepted" || second != "duplicate" {
		t.Errorf("the first is %s, the second %s", first, second)
	}
	if n.usage.LooksUpEventIDs(s.application.ID) {
		t.Error("the application's event ids are looked up first, although no batch failed")
	}
}
