package store_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"purser/ids"
	"purser/store"
	"purser/store/storetest"
)

// TestNodesNeverWaitForEachOther has two nodes use the same wallets in opposite
// orders while others pay into them: some of the wallets known, some new, of two
// applications.
func TestNodesNeverWaitForEachOther(t *testing.T) {
	t.Parallel()
	const nodes, wallets, rounds = 2, 24, 30
	seed := storetest.Seed(t)
	url := storetest.FreshURL(t)
	first := newShop(t, url, nodes)
	second := shop{nodes: first.nodes}.stocked(t)
	shops := []shop{first, second}
	free := featureOf("free", "tokens")
	free.Cost = 0
	for _, s := range shops {
		free.ID = ids.New()
		s.newFeature(t, free)
		for w := range wallets {
			s.credit(t, numbered("wallet", w), 1_000_000)
		}
	}

	var mu sync.Mutex
	var all []outcome
	var done sync.WaitGroup
	for i, n := range first.nodes {
		done.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for round := range rounds {
				requests := crossing(random, shops, wallets, round, i == 1)
				outcomes := make([]outcome, len(requests))
				atOnce(len(requests), func(k int) { outcomes[k] = trackOutcome(n, requests[k]) })
				mu.Lock()
				all = append(all, outcomes...)
				mu.Unlock()
			}
		})
		done.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(100+i)))
			for range 2 * rounds {
				s := shops[random.IntN(len(shops))]
				requested := depositOf(numbered("wallet", random.IntN(wallets)), "tokens", 1, freshID())
				if _, _, err := s.on(n).Deposit(t.Context(), requested); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()

	if got := tally(all); got["accepted"] != len(all) {
		t.Errorf("of %d uses: %v", len(all), got)
	}
	for _, s := range shops {
		soundBooks(t, url, s.tenant)
	}
	first.closeNodes()
	if n := deadlocks(t, url); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// crossing lists uses of the wallets of all shops from one end to the other, or
// the other way round, shuffled a little; and first uses of wallets that both
// nodes make at this moment.
func crossing(random *rand.Rand, shops []shop, wallets, round int, backwards bool) []store.Usage {
	var requests []store.Usage
	for _, s := range shops {
		for w := range wallets {
			requests = append(requests, s.message(numbered("wallet", w), freshID()))
			if w%6 == 0 {
				requests = append(requests, s.useOf("free", numbered("new", round*wallets+w), freshID()))
			}
		}
	}
	if backwards {
		slices.Reverse(requests)
	}
	for range 5 {
		a, b := random.IntN(len(requests)), random.IntN(len(requests))
		requests[a], requests[b] = requests[b], requests[a]
	}
	return requests
}

// freshID is an event id that nobody else has.
func freshID() string { return ids.New().String() }

// TestFirstUsesAndDepositsMakeOneWallet has three nodes meet at wallets that do not
// exist yet: some pay into them, some use what is free.
func TestFirstUsesAndDepositsMakeOneWallet(t *testing.T) {
	t.Parallel()
	const nodes, callers, rounds = 3, 18, 12
	url := storetest.URL(t)
	s := newShop(t, url, nodes)
	free := featureOf("free", "tokens")
	free.Cost = 0
	s.newFeature(t, free)
	for round := range rounds {
		identity := numbered("wallet", round)
		atOnce(callers, func(i int) {
			n := s.nodes[i%nodes]
			if i%2 == 0 {
				if _, _, err := s.on(n).Deposit(t.Context(), depositOf(identity, "tokens", 1, freshID())); err != nil {
					t.Errorf("a deposit: %v", err)
				}
			} else if o := trackOutcome(n, s.useOf("free", identity, freshID())); o.String() != "accepted" {
				t.Errorf("a free use is %s: %v", o, o.err)
			}
		})
		if got := s.balance(t, identity); got != callers/2 {
			t.Errorf("after %d deposits of one the balance is %s", callers/2, got)
		}
	}
	soundBooks(t, url, s.tenant)
}
