package jobs

import (
	"context"
	"slices"
	"sync"
	"time"

	"purser/ids"
	"purser/tenancy"
)

// maxConcurrentApps is how many queues of one lane a node drains at once. A lane has its
// own: slow jobs of one do not hold up another. Only jobs that add up usage hold a
// database connection throughout, one for each application: half of the default pool.
const maxConcurrentApps = 8

// target is one lane of an application's queue.
type target struct {
	scope tenancy.Scope
	lane  Lane
}

// runNotified drains the queues that are notified on this node. After the end of ctx
// no job starts, and those that run are cancelled after stopGrace.
func (q *Queue) runNotified(ctx context.Context) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var drains sync.WaitGroup // takeReady bounds them
	defer func() {
		drains.Wait()
		for _, lane := range q.detached {
			lane.running.Wait()
		}
	}()
	context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cancel) })
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-q.notifier.signal:
		}
		for _, t := range q.notifier.takeReady() {
			drains.Go(func() {
				defer q.notifier.done(t)
				q.tryDrain(running, ctx.Done(), t)
			})
		}
	}
}

// tryDrain drains part of a queue. It does not wait for jobs that other nodes run.
func (q *Queue) tryDrain(ctx context.Context, stop <-chan struct{}, t target) {
	if lane := q.detached[t.lane]; lane != nil {
		q.prepare(ctx, t)
		q.startJobs(ctx, stop, lane, t)
		return
	}
	result, err := q.drain(ctx, stop, t)
	if isClosed(stop) {
		return
	}
	if err != nil {
		q.options.Log.Warn("queue drain failed", "app", t.scope.AppID.Format(ids.Application), "cause", err)
		return
	}
	if result == queueHasMore {
		q.notifier.notify(t)
	}
}

// notifier is the set of notified queues. One that is being drained waits until that
// ends, so that it never takes more than one worker.
type notifier struct {
	mu      sync.Mutex
	waiting map[target]bool
	order   []target // of waiting, the longest waiting first
	running map[target]bool
	busy    map[Lane]int      // how many of each run
	ofOrg   map[orgInLane]int // of those, how many are of one organization
	signal  chan struct{}
}

type orgInLane struct {
	lane Lane
	org  ids.ID
}

func (t target) orgInLane() orgInLane { return orgInLane{t.lane, t.scope.OrgID} }

func newNotifier() *notifier {
	return &notifier{waiting: map[target]bool{}, running: map[target]bool{}, busy: map[Lane]int{}, ofOrg: map[orgInLane]int{}, signal: make(chan struct{}, 1)}
}

func (n *notifier) notify(t target) {
	n.mu.Lock()
	if !n.waiting[t] {
		n.waiting[t], n.order = true, append(n.order, t)
	}
	n.mu.Unlock()
	n.sendSignal()
}

// takeReady removes and returns the queues that can be drained now, at most
// maxConcurrentApps of a lane. The caller must call done for each.
func (n *notifier) takeReady() []target {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ready []target
	for {
		best := n.next()
		if best < 0 {
			return ready
		}
		t := n.order[best]
		n.order = slices.Delete(n.order, best, best+1)
		delete(n.waiting, t)
		n.running[t] = true
		n.busy[t.lane]++
		n.ofOrg[t.orgInLane()]++
		ready = append(ready, t)
	}
}

// next is the place of the queue whose organization has the fewest workers, the longest
// waiting of several: an organization with many applications leaves the others their share.
func (n *notifier) next() int {
	best := -1
	for i, t := range n.order {
		if n.running[t] || n.busy[t.lane] == maxConcurrentApps {
			continue
		}
		if best < 0 || n.ofOrg[t.orgInLane()] < n.ofOrg[n.order[best].orgInLane()] {
			best = i
		}
	}
	return best
}

func (n *notifier) done(t target) {
	n.mu.Lock()
	delete(n.running, t)
	n.busy[t.lane]--
	if org := t.orgInLane(); n.ofOrg[org] == 1 {
		delete(n.ofOrg, org)
	} else {
		n.ofOrg[org]--
	}
	waiting := len(n.order) > 0
	n.mu.Unlock()
	if waiting {
		n.sendSignal()
	}
}

func (n *notifier) sendSignal() {
	select {
	case n.signal <- struct{}{}:
	default:
	}
}
