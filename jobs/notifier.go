package jobs

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/ids"
	"purser/tenancy"
)

// maxConcurrentApps is how many queues a node drains at once.
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
	var group errgroup.Group
	group.SetLimit(maxConcurrentApps)
	defer func() {
		_ = group.Wait() // errors are logged by each
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
			group.Go(func() error {
				defer q.notifier.done(t)
				q.tryDrain(running, ctx.Done(), t)
				return nil
			})
		}
	}
}

// tryDrain drains part of a queue. It does not wait for jobs that other nodes run.
func (q *Queue) tryDrain(ctx context.Context, stop <-chan struct{}, t target) {
	run := q.drain
	if lane := q.detached[t.lane]; lane != nil {
		run = func(ctx context.Context, stop <-chan struct{}, t target) (drainResult, error) {
			return q.startJobs(ctx, stop, lane, t)
		}
	}
	result, err := run(ctx, stop, t)
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
	running map[target]bool
	signal  chan struct{}
}

func newNotifier() *notifier {
	return &notifier{waiting: map[target]bool{}, running: map[target]bool{}, signal: make(chan struct{}, 1)}
}

func (n *notifier) notify(t target) {
	n.mu.Lock()
	n.waiting[t] = true
	n.mu.Unlock()
	n.sendSignal()
}

// takeReady removes and returns the queues that can be drained now. The caller must
// call done for each.
func (n *notifier) takeReady() []target {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ready []target
	for t := range n.waiting {
		if n.running[t] {
			continue
		}
		delete(n.waiting, t)
		n.running[t] = true
		ready = append(ready, t)
	}
	return ready
}

func (n *notifier) done(t target) {
	n.mu.Lock()
	delete(n.running, t)
	again := n.waiting[t]
	n.mu.Unlock()
	if again {
		n.sendSignal()
	}
}

func (n *notifier) sendSignal() {
	select {
	case n.signal <- struct{}{}:
	default:
	}
}
