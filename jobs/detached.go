package jobs

import (
	"context"
	"sync"

	"purser/ids"
)

// detachedLane is a lane whose jobs do not wait for each other: one that hangs delays
// no other, also of the same application.
type detachedLane struct {
	slots   chan struct{} // one for each job that runs
	running sync.WaitGroup

	mu      sync.Mutex
	waiting map[target]bool // for a slot
}

// Detach has the jobs of a lane run independently of each other, at most this many on
// a node.
func (q *Queue) Detach(lane Lane, most int) {
	q.detached[lane] = &detachedLane{slots: make(chan struct{}, most), waiting: map[target]bool{}}
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
			q.releaseSlot(lane)
			return queueEmpty, err
		}
		lane.running.Go(func() {
			err := q.runBatch(ctx, stop, t.scope, batch)
			q.releaseSlot(lane)
			if err != nil {
				q.options.Log.Warn("job not finished", "app", t.scope.AppID.Format(ids.Application), "cause", err)
				return
			}
			q.notifier.notify(t) // it may have been requested again meanwhile
		})
	}
	return queueHasMore, nil
}

// acquire takes a slot, or notes that the target waits for one.
func (l *detachedLane) acquire(t target) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.slots <- struct{}{}:
		return true
	default:
		l.waiting[t] = true
		return false
	}
}

// release returns a slot, and the targets that wait for one.
func (l *detachedLane) release() (waiting map[target]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	<-l.slots
	waiting, l.waiting = l.waiting, map[target]bool{}
	return waiting
}

func (q *Queue) releaseSlot(l *detachedLane) {
	for t := range l.release() {
		q.notifier.notify(t)
	}
}
