package store

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// batcher runs requests in batches, one batch at a time. Requests that arrive while a
// batch runs form the next one: there is no timer, so a single request never waits for
// company.
type batcher struct {
	engine *Engine
	kind   string           // of its batches
	run    func([]*request) // resolves or defers every request of a batch

	mu    sync.Mutex
	queue fairQueue
	busy  bool
	wake  chan struct{}
	idle  *sync.Cond
}

func newBatcher(u *Engine, kind string, limits queueLimits, work func([]*request)) *batcher {
	l := &batcher{engine: u, kind: kind, run: work, wake: make(chan struct{}), queue: newFairQueue(limits, u.store.db.Distributed)}
	l.idle = sync.NewCond(&l.mu)
	go l.loop()
	return l
}

// submit queues a request and returns when it is resolved.
func (l *batcher) submit(p *request) error {
	if !l.start(p) {
		return errOverloaded
	}
	return await(p)
}

// start queues a request. A caller that finds the batcher idle runs the batch itself,
// which saves a single request two goroutine switches.
func (l *batcher) start(p *request) bool {
	l.mu.Lock()
	if !l.queue.hasRoom(p.Scope.AppID, 1) {
		l.mu.Unlock()
		return false
	}
	l.queue.push(p)
	if l.busy {
		l.mu.Unlock()
		return true
	}
	l.busy = true
	batch := l.queue.nextBatch()
	l.mu.Unlock()
	l.runBatch(batch)
	l.startNext()
	return true
}

// startTogether queues requests of one application, to each lane its share: all of
// them or none.
func startTogether(lanes []*lane, shares [][]*request) bool {
	for _, l := range lanes {
		l.tracks.mu.Lock()
	}
	room := true
	for i, l := range lanes {
		room = room && (len(shares[i]) == 0 || l.tracks.queue.hasRoom(shares[i][0].Scope.AppID, len(shares[i])))
	}
	var idle []*batcher
	for i := range lanes {
		l := lanes[i].tracks
		if room && len(shares[i]) > 0 {
			l.queue.push(shares[i]...)
			if !l.busy {
				l.busy = true
				idle = append(idle, l)
			}
		}
	}
	for _, l := range lanes {
		l.tracks.mu.Unlock()
	}
	for _, l := range idle {
		l.wake <- struct{}{}
	}
	return room
}

var timers = sync.Pool{New: func() any { return time.NewTimer(time.Hour) }}

// await waits until the request is resolved or its deadline has passed. A request that
// no batch has claimed by then was certainly not recorded; otherwise the outcome is
// unknown.
func await(p *request) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	timer := timers.Get().(*time.Timer)
	timer.Reset(time.Until(p.deadline))
	defer func() {
		timer.Stop()
		timers.Put(timer)
	}()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	if p.state.CompareAndSwap(queued, abandoned) {
		return errOverloaded
	}
	select {
	case <-p.done: // resolved at the deadline
		return nil
	default:
		return errOutOfTime
	}
}

var errOutOfTime = errors.New("store: deadline passed while a batch was running")

// startNext hands the queue to the batcher's goroutine when requests have arrived
// meanwhile.
func (l *batcher) startNext() {
	l.mu.Lock()
	waiting := l.queue.size > 0
	if !waiting {
		l.busy = false
		l.idle.Broadcast()
	}
	l.mu.Unlock()
	if waiting {
		l.wake <- struct{}{}
	}
}

func (l *batcher) loop() {
	for range l.wake {
		for {
			// Goroutines that are ready to submit run first: fuller batches cost less,
			// and with none ready this returns at once.
			runtime.Gosched()
			l.mu.Lock()
			batch := l.queue.nextBatch()
			if len(batch) == 0 {
				l.busy = false
				l.idle.Broadcast()
				l.mu.Unlock()
				break
			}
			l.mu.Unlock()
			l.runBatch(batch)
		}
	}
}

// runBatch runs a batch and wakes every caller that is neither deferred nor answered
// already. It recovers panics, so that no caller waits forever.
func (l *batcher) runBatch(batch []*request) {
	span := l.startSpan(batch)
	defer func() {
		if cause := recover(); cause != nil {
			l.engine.log.Error("usage batch panicked", "cause", fmt.Sprint(cause))
			for _, p := range batch {
				if p.answered {
					continue
				}
				p.deferred, p.err = false, fmt.Errorf("store: usage batch panicked: %v", cause)
			}
		}
		if span != nil {
			endSpan(span, batch)
		}
		l.complete(batch)
	}()
	observe := l.engine.observeBatch
	if observe == nil {
		l.run(batch)
		return
	}
	begun := time.Now()
	l.run(batch)
	observe(Batch{Kind: l.kind, Size: len(batch), Took: time.Since(begun)})
}

// answerOthers wakes the callers of requests that are resolved before the rest of their
// batch is. A prefetch, which decides nothing, may have failed requests of the rest.
func answerOthers(batch, rest []*request) {
	resetAll(rest)
	for _, p := range batch {
		if p.resolved && !p.deferred && p.group == nil {
			p.answered = true
			p.done <- struct{}{}
		}
	}
}

func (l *batcher) complete(batch []*request) {
	var again []*request
	for _, p := range batch {
		switch {
		case p.answered:
		case p.deferred:
			p.deferred = false
			again = append(again, p)
		default:
			p.done <- struct{}{}
		}
	}
	if len(again) > 0 {
		l.mu.Lock()
		l.queue.requeue(again)
		l.mu.Unlock()
	}
}

func (l *batcher) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.size
}

// refuse rejects every later request.
func (l *batcher) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.closed = true
}

// Close waits until every accepted request is resolved and stops the goroutine.
func (l *batcher) Close() {
	l.refuse()
	l.mu.Lock()
	for l.busy {
		l.idle.Wait()
	}
	l.mu.Unlock()
	close(l.wake)
}
