//go:build chaos

package store_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"purser/fault"
	"purser/store"
	"purser/store/storetest"
)

// What is measured here depends on how much of the machine the test gets. The
// mechanism behind each figure is held by tests of the ordinary suite: fair batches
// by TestQueue and TestOverloadIsRefusedBeforeAnythingIsDone, one order of locks by
// TestNodesNeverWaitForEachOther.

// TestChaosFloodHarmsNoOtherTenant compares how one application fares beside another that
// keeps the node busy, and beside the same one sending far more than it can take.
//
// Nine in ten of its answers may take up to five times as long. What that measures
// is whether the other's queue is waited for: then it would be sixteen times, a
// queue being sixteen batches long. A lone use on an idle node is no measure, for
// it waits for no batch at all.
func TestChaosFloodHarmsNoOtherTenant(t *testing.T) {
	t.Parallel()
	const samples, busy, flood, allowed = 40, store.MaxBatch, store.MaxQueuedPerApp + 2*store.MaxBatch, 5
	url := storetest.URL(t)
	s := newShopOfOneLane(t, url, 1)
	for w := range 64 {
		s.credit(t, numbered("wallet", w), 1_000_000_000)
	}
	other := shop{nodes: s.nodes}.stocked(t)
	other.credit(t, "bob", 1_000_000)

	calm, _ := besides(t, s, other, busy, samples)
	flooded, overloaded := besides(t, s, other, flood, samples)
	t.Logf("beside %d at once: %s; beside %d: %s, %d of them refused", busy, calm, flood, flooded, overloaded)
	if flooded > allowed*calm {
		t.Errorf("the wait rose from %s to %s", calm, flooded)
	}
	if overloaded == 0 {
		t.Error("that was no flood: nothing was refused")
	}
	// Postgres has not counted tables that were empty a moment ago, and would plan the
	// look at their books for hardly any rows.
	_, err := connect(t, url).Exec(t.Context(), "ANALYZE")
	noError(t, err)
	soundBooks(t, url, s.tenant)
	soundBooks(t, url, other.tenant)
}

// besides gives the ninth decile of the waits of one who sends one use after the
// other while this number of the shop's are under way at any time, and how many of
// those were refused. The other must not be refused anything, and the queue must
// not grow past its limit.
func besides(t *testing.T, s, other shop, crowd, samples int) (wait time.Duration, overloaded int64) {
	t.Helper()
	n := s.nodes[0]
	var stop atomic.Bool
	var refused atomic.Int64
	var done sync.WaitGroup
	for i := range crowd {
		done.Go(func() {
			for !stop.Load() {
				d, err := n.usage.Track(s.message(numbered("wallet", i%64), freshID()))
				switch answer(d, err) {
				case "accepted":
				case string(fault.Overloaded):
					refused.Add(1)
					return // there are enough others to keep the queue full
				default:
					t.Errorf("a use of the crowd: %v", err)
				}
			}
		})
	}
	soon(t, "a busy lane", func() bool { return n.usage.Queued() >= min(crowd/2, store.MaxQueuedPerApp) })
	took := make([]time.Duration, samples)
	for i := range samples {
		o := trackOutcome(n, other.message("bob", freshID()))
		if o.String() != "accepted" {
			t.Errorf("the other's use is %s: %v", o, o.err)
		}
		took[i] = o.took
		if size := n.usage.Queued(); size > store.MaxQueuedPerApp+1 {
			t.Errorf("%d wait", size)
		}
	}
	stop.Store(true)
	done.Wait()
	slices.Sort(took)
	return took[samples*9/10], refused.Load()
}
