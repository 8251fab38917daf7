package store_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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
	s := newShopOfOneLane(t, url, 1)
	n := s.nodes[0]
	s.credit(t, "gate", 1000)
	s.credit(t, "ann", 1_000_000)
	s.warm(t, n, "ann", true)
	other := shop{nodes: s.nodes}.stocked(t)
	other.credit(t, "bob", 1000)
	other.warm(t, n, "bob", true)

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
	if len(stored) != store.MaxQueuedPerApp+2 { // with the gate's and the one that warmed ann
		t.Errorf("%d events are stored", len(stored))
	}
	// A queue is sixteen batches long. The last to come, of another application, was
	// written with the first batch or the one after it.
	if before := other.writtenBefore(t, url, s, "of another"); before > store.MaxBatch {
		t.Errorf("the other application waited for %d uses of the one that floods", before)
	}
	for i := range beyond {
		if len(stored[numbered("beyond", i)]) != 0 {
			t.Error("a refused use is stored")
		}
	}
	soundBooks(t, url, s.tenant)
}

// writtenBefore counts the queued uses of another shop that were committed in an
// earlier transaction than an event of this one.
func (s shop) writtenBefore(tb testing.TB, url string, flooding shop, event string) (n int) {
	tb.Helper()
	noError(tb, connect(tb, url).QueryRow(tb.Context(), `
		SELECT count(*) FROM usage_events
		WHERE app_id = $1 AND substring(event_id FROM 1 FOR 7) = convert_to('queued ', 'UTF8') AND xmin::text::bigint < (
			SELECT xmin::text::bigint FROM usage_events WHERE app_id = $2 AND event_id = convert_to($3, 'UTF8'))`,
		flooding.application.ID, s.application.ID, event).Scan(&n))
	return n
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
	s := shop{nodes: []node{openNode(t, url, store.EngineOptions{Now: clock})}}.stocked(t)
	n := s.nodes[0]
	n.usage.OneLane()
	s.credit(t, "gate", 1000)
	s.credit(t, "ann", 100_000)
	mustAccept(t, n, s.message("ann", "remembered"))
	if !n.usage.IsCached(s.application.ID, "ann") {
		t.Fatal("there is nothing to forget")
	}
	requests := make([]store.Usage, callers)
	for i := range requests {
		requests[i] = s.message("ann", numbered("event", i))
	}
	outcomes := s.inOneBatch(t, url, n, "gate", requests, func() { broken.Store(true) })
	if got := tally(outcomes); got["error"] != callers {
		t.Errorf("of %d: %v", callers, got)
	}
	for _, o := range outcomes { // not by a deadline of theirs
		if o.err == nil || !strings.Contains(o.err.Error(), "panicked") {
			t.Fatalf("a caller of the batch that panicked got %v", o.err)
		}
	}
	if n.usage.IsCached(s.application.ID, "ann") {
		t.Error("it goes on with what the batch may have left half changed")
	}
	again := make([]outcome, callers)
	atOnce(callers, func(i int) { again[i] = trackOutcome(n, s.message("ann", numbered("event", i))) })
	if got := tally(again); got["accepted"] != callers {
		t.Errorf("of %d sent again: %v", callers, got)
	}
	group := []store.Usage{s.message("ann", "input"), s.message("ann", "output")}
	broken.Store(true)
	if outcomes, _, err := n.usage.TrackGroup(group); err == nil {
		t.Errorf("a group whose batch panicked is answered with %v", outcomes)
	}
	recorded, _, err := n.usage.TrackGroup(group)
	if err != nil {
		t.Errorf("the group sent again: %v", err)
	}
	for _, o := range recorded {
		if got := answer(o.Decision, o.Err); got != "accepted" {
			t.Errorf("an event of the group sent again is %s", got)
		}
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
	const queued, racing = 200, 200
	url := storetest.URL(t)
	s := newShopOfOneLane(t, url, 2)
	n := s.nodes[0]
	s.credit(t, "gate", 1000)
	for w := range 8 {
		s.credit(t, numbered("wallet", w), 1_000_000)
	}
	release := s.hold(t, url, "gate")
	outcomes := make([]outcome, queued+racing)
	var done sync.WaitGroup
	send := func(i int) {
		outcomes[i] = trackOutcome(n, s.message(numbered("wallet", i%8), numbered("event", i)))
	}
	done.Go(func() { mustAccept(t, n, s.message("gate", "gate")) })
	soon(t, "the batch at the gate", func() bool { return n.usage.Busy() && n.usage.Queued() == 0 && s.standsStill(t, url, "gate") })
	for i := range queued {
		done.Go(func() { send(i) })
	}
	soon(t, "a queue", func() bool { return n.usage.Queued() == queued })
	// More come while the node closes, which waits for those at the gate.
	done.Go(n.close)
	for i := range racing {
		done.Go(func() { send(queued + i) })
	}
	soon(t, "a node that closes", n.usage.Closing)
	for range 3 {
		if d, err := n.usage.Track(s.message("wallet 0", "too late")); !fault.Is(err, fault.Overloaded) {
			t.Errorf("a node that closes says %s: %v", answer(d, err), err)
		}
	}
	release()
	done.Wait()
	t.Logf("answers: %v", tally(outcomes))
	if got := tally(outcomes[:queued]); got["accepted"] != queued {
		t.Errorf("of %d that were in the queue: %v", queued, got)
	}
	stored := s.storedEvents(t, connect(t, url))
	for _, o := range outcomes {
		rows := len(stored[o.use.EventID])
		if (o.String() != "accepted" || rows != 1) && (o.String() != string(fault.Overloaded) || rows != 0) {
			t.Errorf("%q is %s and stored %d times: %v", o.use.EventID, o, rows, o.err)
		}
	}
	if d, err := n.usage.Check(s.message("wallet 0", "")); !fault.Is(err, fault.Overloaded) {
		t.Errorf("a closed node answers a check: %s: %v", answer(d, err), err)
	}
	soundBooks(t, url, s.tenant)
}
