package store_test

import (
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
)

// TestChangesHoldForTheFirstUseAfterThem changes something through one node and
// uses it on every node right after, each of which remembers how it was.
func TestChangesHoldForTheFirstUseAfterThem(t *testing.T) {
	t.Parallel()
	const nodes, rounds = 3, 15
	url := storetest.URL(t)

	// Each round and node has a wallet of its own: one that another node touches as
	// well is not remembered for long, and then there is nothing to be stale.
	identity := func(round, node int) string { return numbered(numbered("wallet", round), node) }

	t.Run("a price", func(t *testing.T) {
		t.Parallel()
		s := newShop(t, url, nodes)
		for round := range rounds {
			for i, n := range s.nodes {
				s.credit(t, identity(round, i), 1_000_000)
				mustAccept(t, n, s.message(identity(round, i), freshID()))
				mustAccept(t, n, s.message(identity(round, i), freshID()))
			}
			price := metering.Amount(100 + round)
			_, err := s.on(s.nodes[round%nodes]).UpdateFeature(t.Context(), "message", metering.FeaturePatch{Cost: &price}, moment)
			noError(t, err)
			for i, n := range s.nodes {
				if d := mustAccept(t, n, s.message(identity(round, i), freshID())); d.Event.Charge.Amount != price {
					t.Fatalf("node %d charges %s, and the price is %s", i, d.Event.Charge.Amount, price)
				}
			}
		}
		s.wantConflicts(t, rounds)
		soundBooks(t, url, s.tenant)
	})

	t.Run("a revoked key", func(t *testing.T) {
		t.Parallel()
		s := newShop(t, url, nodes)
		for round := range rounds {
			s.key, _ = s.newKey(t, keys.Ingestion)
			for i, n := range s.nodes {
				s.credit(t, identity(round, i), 1_000_000)
				mustAccept(t, n, s.message(identity(round, i), freshID()))
				mustAccept(t, n, s.message(identity(round, i), freshID()))
			}
			_, err := s.on(s.nodes[round%nodes]).RevokeKey(t.Context(), s.key.ID, moment)
			noError(t, err)
			for i, n := range s.nodes {
				if d, err := n.usage.Track(s.message(identity(round, i), freshID())); !fault.Is(err, fault.RevokedAPIKey) {
					t.Fatalf("node %d says %q to a revoked key", i, answer(d, err))
				}
				if d, err := n.usage.Check(s.message(identity(round, i), "")); !fault.Is(err, fault.RevokedAPIKey) {
					t.Fatalf("node %d lets a revoked key check: %q", i, answer(d, err))
				}
			}
		}
		s.wantConflicts(t, rounds)
	})

	t.Run("a billing period", func(t *testing.T) {
		t.Parallel()
		s := newShop(t, url, nodes)
		quoted := featureOf("quoted", "tokens")
		quoted.PricingMode, quoted.Deduplication = metering.Callback, metering.DeduplicateBilling
		s.newFeature(t, quoted)
		for round := range rounds {
			for i, n := range s.nodes {
				before := metering.BillingPeriod{Interval: metering.Month, Anchor: moment}
				after := metering.BillingPeriod{Interval: metering.Week, Anchor: moment - int64(round)}
				s.credit(t, identity(round, i), 100)
				_, err := s.SetBillingPeriod(t.Context(), identity(round, i), before)
				noError(t, err)
				// A use that costs too much is refused, and leaves the period free to change
				// and the node with what it has read of the wallet.
				use := s.useOf("quoted", identity(round, i), freshID())
				use.Amount = amountOf(1000)
				if d, err := n.usage.Track(use); answer(d, err) != string(fault.InsufficientBalance) {
					t.Fatalf("a use beyond the balance: %s", answer(d, err))
				}
				_, err = s.on(s.nodes[(i+1)%nodes]).SetBillingPeriod(t.Context(), identity(round, i), after)
				noError(t, err)
				use.Amount = amountOf(5)
				if d := mustAccept(t, n, use); d.Event.Period != after.Containing(moment) {
					t.Fatalf("node %d bills the period %v, and it is %v", i, d.Event.Period, after.Containing(moment))
				}
			}
		}
		s.wantConflicts(t, rounds)
		soundBooks(t, url, s.tenant)
	})

	t.Run("a subscription", func(t *testing.T) {
		t.Parallel()
		s := newShop(t, url, nodes)
		for round := range rounds {
			for i, n := range s.nodes {
				s.credit(t, identity(round, i), 1_000_000)
				mustAccept(t, n, s.message(identity(round, i), freshID()))
				mustAccept(t, n, s.message(identity(round, i), freshID()))
				points := int64(20_000 + 1000*round)
				s.multiplyMessages(t, s.nodes[(i+1)%nodes], identity(round, i), points)
				want := messagePrice * metering.Amount(points) / 10_000
				if d := mustAccept(t, n, s.message(identity(round, i), freshID())); d.Event.Charge.Amount != want {
					t.Fatalf("node %d charges %s, and by the new terms it is %s", i, d.Event.Charge.Amount, want)
				}
			}
		}
		s.wantConflicts(t, rounds)
		soundBooks(t, url, s.tenant)
	})

	t.Run("a deposit", func(t *testing.T) {
		t.Parallel()
		s := newShop(t, url, nodes)
		for round := range rounds {
			for i, n := range s.nodes {
				s.credit(t, identity(round, i), messagePrice)
				mustAccept(t, n, s.message(identity(round, i), freshID()))
				_, _, err := s.on(s.nodes[(i+1)%nodes]).Deposit(t.Context(), depositOf(identity(round, i), "tokens", messagePrice, freshID()))
				noError(t, err)
				if round%2 == 0 { // in the other rounds the use comes first: a check would refresh the memory
					if d, err := n.usage.Check(s.message(identity(round, i), "")); answer(d, err) != "accepted" || d.Before.Amount != messagePrice {
						t.Fatalf("node %d: a check says %s, with %s in the wallet", i, answer(d, err), d.Before.Amount)
					}
				}
				mustAccept(t, n, s.message(identity(round, i), freshID()))
			}
		}
		soundBooks(t, url, s.tenant)
	})
}

// multiplyMessages gives an identity, through a node, a subscription that changes
// the price of a message.
func (s shop) multiplyMessages(tb testing.TB, n node, identity string, points int64) {
	tb.Helper()
	message, err := s.Feature(tb.Context(), "message")
	noError(tb, err)
	noError(tb, s.on(n).PutSubscription(tb.Context(), identity, metering.Subscription{
		ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(moment),
		Terms: metering.Terms{Multipliers: []metering.Multiplier{{FeatureID: message.ID, FeatureKey: "message", BasisPoints: points}}},
	}))
}

// wantConflicts expects that every node relied on its memory and found it wrong:
// otherwise the changes were never hidden by it, and nothing was proven.
func (s shop) wantConflicts(t *testing.T, n int64) {
	t.Helper()
	for i, node := range s.nodes {
		if got := node.usage.Conflicts(); got < n {
			t.Errorf("node %d was wrong %d times, not %d", i, got, n)
		}
	}
}

func amountOf(a metering.Amount) *metering.Amount { return &a }

// TestKeyMustBeAllowedToIngest tries a key that is good for everything else.
func TestKeyMustBeAllowedToIngest(t *testing.T) {
	t.Parallel()
	s := newShop(t, storetest.URL(t), 1)
	s.credit(t, "ann", 1000)
	mustAccept(t, s.nodes[0], s.message("ann", "with the right key")) // the wallet and the catalog are remembered
	s.key, _ = s.newKey(t, keys.ReadOnly)
	for range 3 {
		for name, ask := range map[string]func(store.Usage) (metering.Decision, error){"use": s.nodes[0].usage.Track, "check": s.nodes[0].usage.Check} {
			if _, err := ask(s.message("ann", name)); !fault.Is(err, fault.PermissionDenied) {
				t.Errorf("a %s with a key that may not %s: %v", name, tenancy.EventsIngest, err)
			}
		}
	}
}

// TestChangesHoldForABatchAfterThem is the same for uses that are decided together:
// they wait behind a use of another application, which teaches the node nothing
// about theirs.
func TestChangesHoldForABatchAfterThem(t *testing.T) {
	t.Parallel()
	const wallets, rounds = 6, 4
	url := storetest.URL(t)
	for _, c := range []struct {
		name   string
		change func(*testing.T, *shop, []string) // through the other node
		holds  func(outcome) bool
	}{
		{"a price", func(t *testing.T, s *shop, _ []string) {
			_, err := s.on(s.nodes[1]).UpdateFeature(t.Context(), "message", metering.FeaturePatch{Cost: amountOf(3)}, moment)
			noError(t, err)
		}, func(o outcome) bool { return o.String() == "accepted" && o.d.Event.Charge.Amount == 3 }},
		{"a revoked key", func(t *testing.T, s *shop, _ []string) {
			_, err := s.on(s.nodes[1]).RevokeKey(t.Context(), s.key.ID, moment)
			noError(t, err)
		}, func(o outcome) bool { return o.String() == string(fault.RevokedAPIKey) }},
		{"a subscription", func(t *testing.T, s *shop, identities []string) {
			for _, identity := range identities {
				s.multiplyMessages(t, s.nodes[1], identity, 5000)
			}
		}, func(o outcome) bool { return o.String() == "accepted" && o.d.Event.Charge.Amount == messagePrice/2 }},
		{"what another node has charged", func(t *testing.T, s *shop, identities []string) {
			for _, identity := range identities {
				mustAccept(t, s.nodes[1], s.message(identity, freshID()))
			}
		}, func(o outcome) bool { return o.String() == string(fault.InsufficientBalance) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for range rounds {
				s := newShopOfOneLane(t, url, 2)
				neighbour := shop{nodes: s.nodes}.stocked(t)
				neighbour.credit(t, "gate", 1000)
				var identities []string
				var requests []store.Usage
				for w := range wallets {
					identities = append(identities, numbered("wallet", w))
					s.credit(t, identities[w], 2*messagePrice)
					s.warm(t, s.nodes[0], identities[w], true)
					requests = append(requests, s.message(identities[w], freshID()))
				}
				c.change(t, &s, identities)
				for _, o := range neighbour.inOneBatch(t, url, s.nodes[0], "gate", requests, nil) {
					if !c.holds(o) {
						t.Errorf("a use is %s, for %s: %v", o, o.d.Event.Charge.Amount, o.err)
					}
				}
				soundBooks(t, url, s.tenant)
				s.closeNodes()
			}
		})
	}
}
