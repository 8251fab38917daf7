package jobs

import (
	"context"
	"sync"

	"purser/ids"
)

// detachedLane is a lane whose jobs do not wait for each other: one that hangs delays
// no other, also of the same application.
type detachedLane struct {
	most, perApp int // jobs that run at once
	running      sync.WaitGroup

	mu      sync.Mutex
	total   int
	taken   map[ids.ID]int  // slots of each application
	waiting map[target]bool // for a slot
}

// Detach has the jobs of a lane run independently of each other, at most this many on
// a node, and of one application.
func (q *Queue) Detach(lane Lane, most, perApp int) {
	q.detached[lane] = &detachedLane{most: most, perApp: perApp, taken: map[ids.ID]int{}, waiting: map[target]bool{}}
}

// startJobs claims due jobs one at a time and starts each, until there are none or no
// slot is free. A target that waits for a slot is notified when one is.
func (q *Queue) startJobs(ctx context.Context, stop <-chan struct{}, lane *detachedLane, t target) (drainResult, error) {
	q.prepare(ctx, t)
	for range maxBatches {
		if isClosed(stop) {
			return queueHasMore, errStopped
		}
		if !lane.acquire(t) {
			return queueHeldElsewhere, nil
		}
		batch, err := q.claim(ctx, t, 1)
		if err != nil || len(batch.Jobs) == 0 {
			q.releaseSlot(lane, t)
			return queueEmpty, err
		}
		lane.running.Go(func() {
			err := q.runBatch(ctx, stop, t.scope, batch)
			q.releaseSlot(lane, t)
			if err != nil {
				q.options.Log.Warn("job not finished", "app", t.scope.AppID.Format(ids.Application), "cause", err)
				return
			}
			q.notifier.notify(t) // it may have been requested again
		})
	}
	return queueHasMore, nil
}

// acquire takes a slot, or notes that the target waits for one.
func (l *detachedLane) acquire(t target) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken[t.scope.AppID] >= l.perApp || l.total >= l.most {
		l.waiting[t] = true
		return false
	}
	l.total++
	l.taken[t.scope.AppID]++
	return true
}

// release returns a slot, and the targets that wait for one.
func (l *detachedLane) release(t target) (waiting map[target]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.taken[t.scope.AppID]--; l.taken[t.scope.AppID] == 0 {
		delete(l.taken, t.scope.AppID)
	}
	waiting, l.waiting = l.waiting, map[target]bool{}
	return waiting
}

func (q *Queue) releaseSlot(l *detachedLane, t target) {
	for t := range l.release(t) {
		q.notifier.notify(t)
	}
}
