package store_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"purser/fault"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

// messages is a batch of messages over some wallets.
func (s shop) messages(name string, size, wallets int) []store.Usage {
	batch := make([]store.Usage, size)
	for i := range batch {
		batch[i] = s.message(numbered("wallet", i%wallets), fmt.Sprintf("%s %d", name, i))
	}
	return batch
}

func TestACutBatchCanBeSentAgain(t *testing.T) {
	t.Parallel()
	const size, wallets, batches = 600, 5, 12 // more than one transaction each
	url := storetest.URL(t)
	s, proxy := newProxiedShop(t, url, 2)
	for w := range wallets {
		s.credit(t, numbered("wallet", w), 1_000_000_000)
	}
	faults := []commitFault{afterCommit, beforeCommit, midRow}
	for b := range batches {
		batch := s.messages(numbered("batch", b), size, wallets)
		proxy.Plan(once(faults[b%len(faults)]))
		first, err := s.nodes[0].usage.TrackBatch(batch)
		noError(t, err)
		proxy.Plan(nil)
		second, err := s.nodes[b%2].usage.TrackBatch(s.messages(numbered("batch", b), size, wallets))
		noError(t, err)
		for i := range batch {
			if got := answer(first[i].Decision, first[i].Err); got != "accepted" || first[i].Event.TransactionID != batch[i].TransactionID {
				t.Fatalf("item %d cut %s: %s, %v", i, faults[b%len(faults)], got, first[i].Err)
			}
			if got := answer(second[i].Decision, second[i].Err); got != "duplicate" || second[i].Event.TransactionID != batch[i].TransactionID {
				t.Fatalf("item %d sent again: %s, %v", i, got, second[i].Err)
			}
		}
	}
	for w := range wallets {
		if got, want := s.balance(t, numbered("wallet", w)), metering.Amount(1_000_000_000-batches*size/wallets*messagePrice); got != want {
			t.Errorf("wallet %d has %s, not %s", w, got, want)
		}
	}
	soundBooks(t, url, s.tenant)
}

// An accepted event creates the wallet of its customer, if there is none. One that only
// repeats another event's id creates none.
func TestARepeatedIDMakesNoWallet(t *testing.T) {
	t.Parallel()
	s := newShop(t, storetest.URL(t), 1)
	free := featureOf("free", "tokens")
	free.Cost = 0
	s.newFeature(t, free)
	repeated := freshID()
	outcomes, err := s.nodes[0].usage.TrackBatch([]store.Usage{s.useOf("free", "ann", repeated), s.useOf("free", "bob", repeated)})
	noError(t, err)
	if outcomes[0].Verdict != metering.Accepted || outcomes[1].Verdict != metering.Duplicate {
		t.Errorf("the first is %s, the second %s", outcomes[0].Verdict, outcomes[1].Verdict)
	}
	if _, err := s.Wallet(t.Context(), "ann"); err != nil {
		t.Errorf("the wallet of the accepted event: %v", err)
	}
	if _, err := s.Wallet(t.Context(), "bob"); !fault.Is(err, fault.WalletNotFound) {
		t.Errorf("the wallet of the repeated id: %v", err)
	}
}

func TestAPoisonItemOfABatchFailsAlone(t *testing.T) {
	t.Parallel()
	const size, wallets = 60, 7
	url := storetest.FreshURL(t)
	s := newShop(t, url, 1)
	exec(t, connect(t, url), `ALTER TABLE usage_events ADD CONSTRAINT no_poison CHECK (event_id <> 'poison')`)
	for w := range wallets {
		s.credit(t, numbered("wallet", w), 1000)
	}
	for round := range 2 { // the second one finds the wallets cached
		batch := s.messages(numbered("round", round), size, wallets)
		batch[size/3].EventID = "poison"
		outcomes, err := s.nodes[0].usage.TrackBatch(batch)
		noError(t, err)
		for i, o := range outcomes {
			if i == size/3 {
				if o.Err == nil {
					t.Errorf("the poison is %s", o.Verdict)
				}
			} else if o.Verdict != metering.Accepted {
				t.Errorf("item %d is %s: %v", i, o.Verdict, o.Err)
			}
		}
		group := []store.Usage{s.message("wallet 0", freshID()), s.message("wallet 0", "poison"), s.message("wallet 0", freshID())}
		before := s.balance(t, "wallet 0")
		if _, _, err := s.nodes[0].usage.TrackGroup(group); err == nil {
			t.Error("a group with a poison item is recorded")
		}
		if got := s.balance(t, "wallet 0"); got != before {
			t.Errorf("a group that failed changed the balance from %s to %s", before, got)
		}
	}
	soundBooks(t, url, s.tenant)
}

func TestABatchIsQueuedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	const rest = 10
	s.credit(t, "wallet 0", 1_000_000)
	release := s.hold(t, url, "wallet 0")
	var done sync.WaitGroup
	done.Go(func() {
		if outcomes, err := s.nodes[0].usage.TrackBatch(s.messages("running", 1, 1)); err != nil || outcomes[0].Err != nil {
			t.Errorf("the running batch: %v", err)
		}
	})
	soon(t, "a batch at the lock", func() bool { return s.standsStill(t, url, "wallet 0") })
	done.Go(func() {
		if _, err := s.nodes[0].usage.TrackBatch(s.messages("queued", store.MaxBulkPerApp-rest, 1)); err != nil {
			t.Errorf("the queued batch: %v", err)
		}
	})
	soon(t, "a full queue", func() bool { return s.nodes[0].usage.Stats().QueuedBulk == store.MaxBulkPerApp-rest })
	if _, err := s.nodes[0].usage.TrackBatch(s.messages("refused", rest+1, 1)); !fault.Is(err, fault.Overloaded) {
		t.Errorf("a batch without room: %v", err)
	}
	if got := s.nodes[0].usage.Stats().QueuedBulk; got != store.MaxBulkPerApp-rest {
		t.Errorf("%d wait after a refused batch", got)
	}
	done.Go(func() {
		if _, err := s.nodes[0].usage.TrackBatch(s.messages("fitting", rest, 1)); err != nil {
			t.Errorf("a batch that fits: %v", err)
		}
	})
	soon(t, "the last batch queued", func() bool { return s.nodes[0].usage.Stats().QueuedBulk == store.MaxBulkPerApp })
	release()
	done.Wait()
	soundBooks(t, url, s.tenant)
}

// TestSinglesBatchesAndGroupsShareWallets charges the same few wallets in both lanes of
// two nodes at once.
func TestSinglesBatchesAndGroupsShareWallets(t *testing.T) {
	t.Parallel()
	const wallets, rounds = 3, 8
	url := storetest.URL(t)
	s := newShop(t, url, 2)
	for w := range wallets {
		s.credit(t, numbered("wallet", w), 1_000_000)
	}
	var mu sync.Mutex
	charged := make(map[string]metering.Amount)
	note := func(use store.Usage, d metering.Decision) {
		mu.Lock()
		defer mu.Unlock()
		charged[use.Identity] += d.Event.Charge.Amount
	}
	var done sync.WaitGroup
	seed := storetest.Seed(t)
	for n, node := range s.nodes {
		for lane := range 3 {
			done.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(n)))
				for round := range rounds {
					name := fmt.Sprintf("%d %d %d", n, lane, round)
					uses := s.messages(name, 20, wallets)
					switch lane {
					case 0:
						outcomes, err := node.usage.TrackBatch(uses)
						noError(t, err)
						for i, o := range outcomes {
							noError(t, o.Err)
							note(uses[i], o.Decision)
						}
					case 1:
						identity := numbered("wallet", random.IntN(wallets))
						for i := range uses {
							uses[i].Identity = identity
						}
						outcomes, _, err := node.usage.TrackGroup(uses)
						noError(t, err)
						for i, o := range outcomes {
							note(uses[i], o.Decision)
						}
					default:
						for _, use := range uses {
							note(use, mustAccept(t, node, use))
						}
					}
				}
			})
		}
	}
	done.Wait()
	for w := range wallets {
		identity := numbered("wallet", w)
		if got := s.balance(t, identity); got+charged[identity] != 1_000_000 {
			t.Errorf("%s has %s after charges of %s", identity, got, charged[identity])
		}
	}
	soundBooks(t, url, s.tenant)
}

func TestARefusedGroupChargesNothing(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	s.credit(t, "ann", 3*messagePrice)
	usage := s.nodes[0].usage
	group := func(events ...string) (list []store.Usage) {
		for _, event := range events {
			list = append(list, s.message("ann", event))
		}
		return list
	}
	check := func(what string, uses []store.Usage, code fault.Code, at int) {
		t.Helper()
		before := s.balance(t, "ann")
		if _, refused, err := usage.TrackGroup(uses); !fault.Is(err, code) || refused != at {
			t.Errorf("%s: refused at %d with %v", what, refused, err)
		}
		if got := s.balance(t, "ann"); got != before {
			t.Errorf("%s: the balance went from %s to %s", what, before, got)
		}
	}
	check("four of three", group("a", "b", "c", "d"), fault.InsufficientBalance, 3)
	unknown := group("a", "b", "c")
	unknown[1].FeatureKey = "nothing"
	check("an unknown feature", unknown, fault.FeatureNotFound, 1)
	after := group("a", "b", "c", "d", "e")
	after[4].FeatureKey = "nothing"
	check("an unknown feature after what the balance doesn't cover", after, fault.InsufficientBalance, 3)

	outcomes, _, err := usage.TrackGroup(group("a", "b"))
	noError(t, err)
	if len(outcomes) != 2 || outcomes[1].Verdict != metering.Accepted {
		t.Errorf("two of three: %v", outcomes)
	}
	again, _, err := usage.TrackGroup(group("a", "b"))
	noError(t, err)
	for i, o := range again {
		if o.Verdict != metering.Duplicate || o.Event.TransactionID != outcomes[i].Event.TransactionID {
			t.Errorf("item %d sent again is %s", i, o.Verdict)
		}
	}
	check("a mix of recorded and new ids", group("x", "b"), fault.GroupConflict, 1)
	soundBooks(t, url, s.tenant)
}

// TestItemsOfAWalletAreDecidedInOrder has a cached wallet meet an item that the cache
// cannot decide, before items that it can.
func TestItemsOfAWalletAreDecidedInOrder(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	daily := featureOf("daily", "tokens")
	daily.Cost, daily.Deduplication = 70*messagePrice, metering.DeduplicateDay
	s.newFeature(t, daily)
	s.credit(t, "ann", 100*messagePrice)
	usage := s.nodes[0].usage
	outcomes, err := usage.TrackBatch([]store.Usage{s.message("ann", "cached")})
	noError(t, err)
	noError(t, outcomes[0].Err)
	batch := []store.Usage{s.useOf("daily", "ann", "large")}
	for i := range 40 {
		batch = append(batch, s.message("ann", numbered("small", i)))
	}
	outcomes, err = usage.TrackBatch(batch)
	noError(t, err)
	for i, o := range outcomes {
		want := "accepted"
		if i > 29 {
			want = "insufficient_balance"
		}
		if got := answer(o.Decision, o.Err); got != want {
			t.Errorf("item %d is %s, not %s", i, got, want)
		}
	}
	soundBooks(t, url, s.tenant)
}
