package store_test

import (
	"testing"

	"purser/store"
	"purser/store/storetest"
)

// TestReadingAhead sends, in one batch, uses of wallets that the node remembers and
// of some that it has never seen.
func TestReadingAhead(t *testing.T) {
	t.Parallel()
	const known, strange = 40, 15
	batch := func(t *testing.T, meanwhile func(*store.Engine)) (got map[string]int, n node) {
		t.Helper()
		url := storetest.URL(t)
		s := newShopOfOneLane(t, url, 1)
		n = s.nodes[0]
		s.credit(t, "gate", 1000)
		s.credit(t, "ann", 1_000_000)
		mustAccept(t, n, s.message("ann", "remembered"))
		var requests []store.Usage
		for i := range known {
			requests = append(requests, s.message("ann", numbered("known", i)))
		}
		for i := range strange {
			s.credit(t, numbered("stranger", i), 1000)
			requests = append(requests, s.message(numbered("stranger", i), numbered("strange", i)))
		}
		requests = append(requests, s.message("unknown", "of an unknown identity"))
		outcomes := s.inOneBatch(t, url, n, "gate", requests, func() { meanwhile(n.usage) })
		stored := s.storedEvents(t, connect(t, url))
		for _, o := range outcomes {
			if rows := len(stored[o.use.EventID]); (o.String() == "accepted") != (rows == 1) {
				t.Errorf("%q is %s and stored %d times", o.use.EventID, o, rows)
			}
		}
		soundBooks(t, url, s.tenant)
		return tally(outcomes), n
	}

	t.Run("writes what it knows, and the strangers with the next batch", func(t *testing.T) {
		t.Parallel()
		got, n := batch(t, func(*store.Engine) {})
		if got["accepted"] != known+strange || got["insufficient_balance"] != 1 {
			t.Errorf("answers: %v", got)
		}
		if stats := n.usage.Stats(); stats.Prefetched != strange+1 || stats.Conflicts != 0 || stats.QueuedEvents+stats.QueuedChecks != 0 {
			t.Errorf("the node counts %+v", stats)
		}
	})

	t.Run("answers everybody when nothing can be read ahead", func(t *testing.T) {
		t.Parallel()
		got, n := batch(t, func(u *store.Engine) { store.UsageReadsOf(u).Close() })
		if got["accepted"] != known+strange || got["insufficient_balance"] != 1 {
			t.Errorf("answers: %v", got)
		}
		if n.usage.Stats().Prefetched != strange+1 {
			t.Error("nothing was to be read ahead")
		}
	})
}
