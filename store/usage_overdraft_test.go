package store_test

import (
	"testing"

	"purser/metering"
	"purser/store/storetest"
)

// TestWalletPaysForWhatItHoldsAndNoMore sends two hundred uses at once to a
// wallet that can pay for fifty of them.
func TestWalletPaysForWhatItHoldsAndNoMore(t *testing.T) {
	t.Parallel()
	const requests, paid = 200, 50
	for _, c := range []struct {
		name  string
		nodes int
		warm  bool
	}{
		{"on one node that has never seen it", 1, false},
		{"on one node that remembers it", 1, true},
		{"on three nodes that have never seen it", 3, false},
		{"on three nodes that remember it", 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := newShop(t, url, c.nodes)
			s.credit(t, "ann", paid*messagePrice)
			if c.warm {
				// Each use is on another node than the one before, so all but the last
				// remember what is no longer so.
				s.credit(t, "ann", messagePrice*metering.Amount(2*c.nodes))
				for i := range 2 * c.nodes {
					mustAccept(t, s.nodes[i%c.nodes], s.message("ann", numbered("warm", i)))
				}
			}
			outcomes := make([]outcome, requests)
			atOnce(requests, func(i int) {
				outcomes[i] = trackOutcome(s.nodes[i%c.nodes], s.message("ann", numbered("event", i)))
			})
			if got := tally(outcomes); got["accepted"] != paid || got["insufficient_balance"] != requests-paid {
				t.Errorf("of %d uses: %v", requests, got)
			}
			if left := s.balance(t, "ann"); left != 0 {
				t.Errorf("%s is left", left)
			}
			soundBooks(t, url, s.tenant)
		})
	}
}
