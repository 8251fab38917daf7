package jobs

import (
	"slices"
	"testing"

	"purser/ids"
	"purser/tenancy"
)

// However many jobs an application has, and however often it is notified, the others
// get their turn.
func TestOneApplicationNeverTakesMoreThanItsTurn(t *testing.T) {
	t.Parallel()
	busy, other := newTarget(ids.New(), ""), newTarget(ids.New(), "")

	t.Run("a queue is not drained twice at once", func(t *testing.T) {
		w := newNotifier()
		w.notify(busy)
		if got := w.takeReady(); !slices.Equal(got, []target{busy}) {
			t.Fatalf("took %v", got)
		}
		w.notify(busy)
		w.notify(other)
		if got := w.takeReady(); !slices.Equal(got, []target{other}) {
			t.Errorf("took %v while it was drained", got)
		}
		<-w.signal
		w.done(other)
		w.done(busy)
		select {
		case <-w.signal:
		default:
			t.Error("no signal says that it can be drained again")
		}
		if got := w.takeReady(); !slices.Equal(got, []target{busy}) {
			t.Errorf("took %v after the drain", got)
		}
	})

	t.Run("a lane that is full leaves the others alone, and goes by the order", func(t *testing.T) {
		w := newNotifier()
		var slow []target
		for range maxConcurrentApps + 2 {
			slow = append(slow, newTarget(ids.New(), "slow"))
			w.notify(slow[len(slow)-1])
		}
		w.notify(other)
		if got := w.takeReady(); !slices.Equal(got, append(slices.Clone(slow[:maxConcurrentApps]), other)) {
			t.Fatalf("took %d", len(got))
		}
		w.notify(busy)
		if got := w.takeReady(); !slices.Equal(got, []target{busy}) {
			t.Fatalf("took %v beside a full lane", got)
		}
		<-w.signal
		w.done(slow[3])
		select {
		case <-w.signal:
		default:
			t.Error("no signal says that the lane has room")
		}
		w.notify(slow[3])
		if got := w.takeReady(); !slices.Equal(got, slow[maxConcurrentApps:maxConcurrentApps+1]) {
			t.Errorf("took %v after the drain", got)
		}
	})
}

func newTarget(org ids.ID, lane Lane) target {
	return target{scope: tenancy.Scope{OrgID: org, AppID: ids.New()}, lane: lane}
}

// TestAnOrganizationLeavesOthersTheirShareOfALane has one with more applications than there
// are workers.
func TestAnOrganizationLeavesOthersTheirShareOfALane(t *testing.T) {
	t.Parallel()
	w, busy, quiet := newNotifier(), ids.New(), ids.New()
	for range 25 * maxConcurrentApps {
		w.notify(newTarget(busy, MainLane))
	}
	running := w.takeReady()
	if len(running) != maxConcurrentApps {
		t.Fatalf("alone, the organization has %d of %d", len(running), maxConcurrentApps)
	}
	for range maxConcurrentApps {
		w.notify(newTarget(quiet, MainLane))
	}
	for i, ended := range running {
		w.done(ended)
		w.notify(ended)
		got, want := w.takeReady(), quiet
		if i >= maxConcurrentApps/2 { // both have half
			want = busy
		}
		if len(got) != 1 || got[0].scope.OrgID != want {
			t.Errorf("slot %d went to %v", i, got)
		}
	}
}

func TestAReleasedSlotGoesToTheOneWithTheFewest(t *testing.T) {
	t.Parallel()
	q := &Queue{detached: map[Lane]*detachedLane{}}
	q.Detach("slow", 4, 3, 3)
	lane := q.detached["slow"]
	of := func(org ids.ID) target { return newTarget(org, "slow") }
	busy, quiet := ids.New(), ids.New()
	first, second, late, other := of(busy), of(busy), of(busy), of(quiet)
	for _, t := range []target{first, first, second, other} {
		lane.acquire(t)
	}
	for _, w := range []target{first, second, late, other} {
		if lane.acquire(w) {
			t.Fatal("a fifth slot")
		}
	}
	wants := func(from target, again bool, want ...target) {
		t.Helper()
		next, has := lane.release(from, again)
		if has != (len(want) > 0) || has && next != want[0] {
			t.Errorf("the slot went to %v, %v", next, has)
		}
	}
	wants(first, true, other) // the organization with fewer
	wants(other, false, late) // of one organization, the application with fewer
	wants(late, true, late)   // which has none again
	wants(late, false, first) // of those with as many, the longest waiting
	wants(other, false)       // the one that waits is of an organization with its share
	wants(first, false, second)
}
