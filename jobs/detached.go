package jobs

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"purser/ids"
)

// detachedLane is a lane whose jobs do not wait for each other: one that hangs delays
// no other, also of the same application. Each job has a slot while it runs.
type detachedLane struct {
	most, perOrg, perApp int // slots
	running              sync.WaitGroup

	mu      sync.Mutex
	total   int
	taken   map[ids.ID]int // slots of each organization and each application
	waiting []target       // for a slot, the longest waiting first
}

// Detach has the jobs of a lane run independently of each other, at most this many on
// a node, of one organization, and of one application.
func (q *Queue) Detach(lane Lane, most, perOrg, perApp int) {
	q.detached[lane] = &detachedLane{most: most, perOrg: perOrg, perApp: perApp, taken: map[ids.ID]int{}}
}

// startJobs runs the target's due jobs, each in a slot of its own. Without a free slot
// the target waits for one.
func (q *Queue) startJobs(ctx context.Context, stop <-chan struct{}, lane *detachedLane, t target) {
	if !lane.acquire(t) {
		return
	}
	lane.running.Go(func() {
		for has := true; has; {
			ran := !isClosed(stop) && q.runNext(ctx, stop, lane, t)
			t, has = lane.release(t, ran) // it may have been requested again
		}
	})
}

// runNext claims a due job and runs it in a slot that the caller has.
func (q *Queue) runNext(ctx context.Context, stop <-chan struct{}, lane *detachedLane, t target) (ran bool) {
	batch, err := q.claim(ctx, t, 1)
	if err == nil && len(batch.Jobs) > 0 {
		q.startJobs(ctx, stop, lane, t) // there may be more
		err = q.runBatch(ctx, stop, t.scope, batch)
	}
	if err != nil {
		q.options.Log.Warn("job not finished", "app", t.scope.AppID.Format(ids.Application), "cause", err)
	}
	return err == nil && len(batch.Jobs) > 0
}

// acquire takes a slot, or notes that the target waits for one.
func (l *detachedLane) acquire(t target) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isFree(t) {
		l.wait(t)
		return false
	}
	l.take(t, 1)
	return true
}

// release returns a slot, and gives it to the target that waits and has the fewest: one
// target for each slot, because a target costs a claim.
func (l *detachedLane) release(t target, again bool) (next target, has bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(t, -1)
	if again {
		l.wait(t)
	}
	best := -1
	for i, w := range l.waiting {
		if l.isFree(w) && (best < 0 || l.compare(w, l.waiting[best]) < 0) {
			best = i
		}
	}
	if best < 0 {
		return target{}, false
	}
	next = l.waiting[best]
	l.waiting = slices.Delete(l.waiting, best, best+1)
	l.take(next, 1)
	return next, true
}

func (l *detachedLane) isFree(t target) bool {
	return l.total < l.most && l.taken[t.scope.OrgID] < l.perOrg && l.taken[t.scope.AppID] < l.perApp
}

// compare orders targets by the slots of their organization, then of their application.
func (l *detachedLane) compare(a, b target) int {
	return cmp.Or(cmp.Compare(l.taken[a.scope.OrgID], l.taken[b.scope.OrgID]), cmp.Compare(l.taken[a.scope.AppID], l.taken[b.scope.AppID]))
}

func (l *detachedLane) wait(t target) {
	if !slices.Contains(l.waiting, t) {
		l.waiting = append(l.waiting, t)
	}
}

func (l *detachedLane) take(t target, slots int) {
	l.total += slots
	for _, id := range []ids.ID{t.scope.OrgID, t.scope.AppID} {
		if l.taken[id] += slots; l.taken[id] == 0 {
			delete(l.taken, id)
		}
	}
}
