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

// TestOverloadIsRefusedBeforeAnythingIsDone fills the queue of one application
// while the lane stands still.
func TestOverloadIsRefusedBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	const beyond = 50
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	n := s.nodes[0]
	n.usage.HaveLessPatience(time.Minute, time.Minute)
	s.credit(t, "gate", 1000)
	s.credit(t, "ann", 1_000_000)
	other := shop{nodes: s.nodes}.stocked(t)
	other.credit(t, "bob", 1000)

	release := s.hold(t, url, "gate")
	var queued sync.WaitGroup
	queued.Go(func() { mustAccept(t, n, s.message("gate", "gate")) })
	soon(t, "the batch at the gate", func() bool { return n.usage.Busy() && n.usage.Queued() == 0 })
	var accepted atomic.Int64
	for i := range store.MaxQueuedPerApp {
		queued.Go(func() {
			if d, err := n.usage.Track(s.message("ann", numbered("queued", i))); answer(d, err) == "accepted" {
				accepted.Add(1)
			}
		})
	}
	soon(t, "a full queue", func() bool { return n.usage.Queued() == store.MaxQueuedPerApp })
	for i := range beyond {
		if d, err := n.usage.Track(s.message("ann", numbered("beyond", i))); !fault.Is(err, fault.Overloaded) {
			t.Errorf("beyond the queue a use is %s", answer(d, err))
		}
	}
	queued.Go(func() { mustAccept(t, n, other.message("bob", "of another")) })
	soon(t, "room for another application", func() bool { return n.usage.Queued() == store.MaxQueuedPerApp+1 })
	release()
	queued.Wait()
	if accepted.Load() != store.MaxQueuedPerApp {
		t.Errorf("of %d in the queue %d were accepted", store.MaxQueuedPerApp, accepted.Load())
	}
	stored := s.storedEvents(t, connect(t, url))
	if len(stored) != store.MaxQueuedPerApp+1 {
		t.Errorf("%d events are stored", len(stored))
	}
	for i := range beyond {
		if len(stored[numbered("beyond", i)]) != 0 {
			t.Error("a refused use is stored")
		}
	}
	soundBooks(t, url, s.tenant)
}

// TestFloodHarmsNobodyElse compares how one application fares beside another that
// keeps the node busy, and beside the same one sending far more than it can take.
//
// Nine in ten of its answers may take up to five times as long. What that measures
// is whether the other's queue is waited for: then it would be sixteen times, a
// queue being sixteen batches long. A lone use on an idle node is no measure, for
// it waits for no batch at all.
func TestFloodHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	const samples, busy, flood, allowed = 40, store.MaxBatch, store.MaxQueuedPerApp + 2*store.MaxBatch, 5
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	n := s.nodes[0]
	n.usage.HaveLessPatience(time.Minute, time.Minute)
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
// other while so many of the shop's are under way at any time, and how many of
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

// TestPanicReleasesEveryCaller has the clock panic, in the middle of a batch.
func TestPanicReleasesEveryCaller(t *testing.T) {
	t.Parallel()
	const callers = 20
	url := storetest.URL(t)
	var broken atomic.Bool
	clock := func() int64 {
		if broken.CompareAndSwap(true, false) {
			panic("the clock is broken")
		}
		return moment
	}
	s := shop{nodes: []node{openNode(t, url, store.UsageOptions{Now: clock})}}.stocked(t)
	n := s.nodes[0]
	s.credit(t, "gate", 1000)
	s.credit(t, "ann", 100_000)
	mustAccept(t, n, s.message("ann", "remembered"))
	if !n.usage.Remembers(s.application.ID, "ann") {
		t.Fatal("there is nothing to forget")
	}
	uses := make([]store.Use, callers)
	for i := range uses {
		uses[i] = s.message("ann", numbered("event", i))
	}
	outcomes := s.inOneBatch(t, url, n, "gate", uses, func() { broken.Store(true) })
	if got := tally(outcomes); got["error"] != callers {
		t.Errorf("of %d: %v", callers, got)
	}
	if n.usage.Remembers(s.application.ID, "ann") {
		t.Error("it goes on with what the batch may have left half changed")
	}
	again := make([]outcome, callers)
	atOnce(callers, func(i int) { again[i] = trackOutcome(n, s.message("ann", numbered("event", i))) })
	if got := tally(again); got["accepted"] != callers {
		t.Errorf("of %d sent again: %v", callers, got)
	}
	broken.Store(true)
	if d, err := n.usage.Check(s.message("ann", "")); answer(d, err) != "error" {
		t.Errorf("a check with a broken clock is %s", answer(d, err))
	}
	if d, err := n.usage.Check(s.message("ann", "")); answer(d, err) != "accepted" {
		t.Errorf("the check after it is %s: %v", answer(d, err), err)
	}
	soundBooks(t, url, s.tenant)
}

// TestCloseAnswersEverybody closes a node that is at work.
func TestCloseAnswersEverybody(t *testing.T) {
	t.Parallel()
	const callers = 400
	url := storetest.URL(t)
	s := newShop(t, url, 2)
	n := s.nodes[0]
	for w := range 8 {
		s.credit(t, numbered("wallet", w), 1_000_000)
	}
	outcomes := make([]outcome, callers)
	var closed sync.WaitGroup
	closed.Go(func() {
		soon(t, "work", func() bool { return n.usage.Queued() > 0 })
		n.close()
	})
	atOnce(callers, func(i int) {
		outcomes[i] = trackOutcome(n, s.message(numbered("wallet", i%8), numbered("event", i)))
	})
	closed.Wait()
	t.Logf("answers: %v", tally(outcomes))
	stored := s.storedEvents(t, connect(t, url))
	for _, o := range outcomes {
		rows := len(stored[o.use.EventID])
		if (o.String() != "accepted" || rows != 1) && (o.String() != string(fault.Overloaded) || rows != 0) {
			t.Errorf("%q is %s and stored %d times: %v", o.use.EventID, o, rows, o.err)
		}
	}
	for range 3 {
		if d, err := n.usage.Track(s.message("wallet 0", "too late")); !fault.Is(err, fault.Overloaded) {
			t.Errorf("a closed node says %s: %v", answer(d, err), err)
		}
		if d, err := n.usage.Check(s.message("wallet 0", "")); !fault.Is(err, fault.Overloaded) {
			t.Errorf("a closed node answers a check: %s: %v", answer(d, err), err)
		}
	}
	soundBooks(t, url, s.tenant)
}
