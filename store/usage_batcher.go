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

func newBatcher(e *Engine, kind string, limits queueLimits, work func([]*request)) *batcher {
	b := &batcher{engine: e, kind: kind, run: work, wake: make(chan struct{}), queue: newFairQueue(limits, e.store.db.Distributed)}
	b.idle = sync.NewCond(&b.mu)
	go b.loop()
	return b
}

// submit queues a request and returns when it is resolved.
func (b *batcher) submit(r *request) error {
	if !b.enqueueOrRun(r) {
		return errOverloaded
	}
	return await(r)
}

// enqueueOrRun queues a request. A caller that finds the batcher idle runs the batch on
// its own goroutine, which saves a single request two goroutine switches.
func (b *batcher) enqueueOrRun(r *request) bool {
	b.mu.Lock()
	if !b.queue.hasRoom(r.Scope.AppID, r.weight()) {
		b.mu.Unlock()
		return false
	}
	b.queue.push(r)
	if b.busy {
		b.mu.Unlock()
		return true
	}
	b.busy = true
	batch := b.queue.nextBatch()
	b.mu.Unlock()
	b.runBatch(batch)
	b.startNext()
	return true
}

// enqueueTogether queues requests of one application, to each lane its share: all of
// them or none.
func enqueueTogether(lanes []*lane, shares [][]*request) bool {
	for _, l := range lanes {
		l.tracks.mu.Lock()
	}
	room := true
	for i, l := range lanes {
		room = room && (len(shares[i]) == 0 || l.tracks.queue.hasRoom(shares[i][0].Scope.AppID, len(shares[i])))
	}
	var idle []*batcher
	for i := range lanes {
		b := lanes[i].tracks
		if room && len(shares[i]) > 0 {
			b.queue.push(shares[i]...)
			if !b.busy {
				b.busy = true
				idle = append(idle, b)
			}
		}
	}
	for _, l := range lanes {
		l.tracks.mu.Unlock()
	}
	for _, b := range idle {
		b.wake <- struct{}{}
	}
	return room
}

var timers = sync.Pool{New: func() any { return time.NewTimer(time.Hour) }}

// await waits until the request is resolved or its deadline has passed. A request that
// no batch has claimed by then was certainly not recorded; otherwise the outcome is
// unknown.
func await(r *request) error {
	select {
	case <-r.done:
		return nil
	default:
	}
	timer := timers.Get().(*time.Timer)
	timer.Reset(time.Until(r.deadline))
	defer func() {
		timer.Stop()
		timers.Put(timer)
	}()
	select {
	case <-r.done:
		return nil
	case <-timer.C:
	}
	if r.state.CompareAndSwap(queued, abandoned) {
		return errOverloaded
	}
	select {
	case <-r.done: // resolved at the deadline
		return nil
	default:
		return errOutOfTime
	}
}

var errOutOfTime = errors.New("store: deadline passed while a batch was running")

// startNext hands the queue to the batcher's goroutine when requests have arrived
// meanwhile.
func (b *batcher) startNext() {
	b.mu.Lock()
	waiting := b.queue.size > 0
	if !waiting {
		b.busy = false
		b.idle.Broadcast()
	}
	b.mu.Unlock()
	if waiting {
		b.wake <- struct{}{}
	}
}

func (b *batcher) loop() {
	for range b.wake {
		for {
			// Goroutines that are ready to submit run first: fuller batches cost less,
			// and with none ready this returns at once.
			runtime.Gosched()
			b.mu.Lock()
			batch := b.queue.nextBatch()
			if len(batch) == 0 {
				b.busy = false
				b.idle.Broadcast()
				b.mu.Unlock()
				break
			}
			b.mu.Unlock()
			b.runBatch(batch)
		}
	}
}

// runBatch runs a batch and wakes every caller that is neither deferred nor answered
// already. It recovers panics, so that no caller waits forever.
func (b *batcher) runBatch(batch []*request) {
	span := b.startSpan(batch)
	defer func() {
		if cause := recover(); cause != nil {
			b.engine.log.Error("usage batch panicked", "cause", fmt.Sprint(cause))
			for _, r := range batch {
				if r.answered {
					continue
				}
				r.deferred, r.err = false, fmt.Errorf("store: usage batch panicked: %v", cause)
			}
		}
		if span != nil {
			endSpan(span, batch)
		}
		b.complete(batch)
	}()
	observe := b.engine.observeBatch
	if observe == nil {
		b.run(batch)
		return
	}
	begun := time.Now()
	b.run(batch)
	observe(Batch{Kind: b.kind, Size: len(batch), Took: time.Since(begun)})
}

// answerOthers wakes the callers of requests that are resolved before the rest of their
// batch is. A prefetch, which decides nothing, may have failed requests of the rest.
func answerOthers(batch, rest []*request) {
	resetAll(rest)
	for _, r := range batch {
		if r.resolved && !r.deferred && r.group == nil {
			r.answered = true
			r.done <- struct{}{}
		}
	}
}

func (b *batcher) complete(batch []*request) {
	var again []*request
	for _, r := range batch {
		switch {
		case r.answered:
		case r.deferred:
			r.deferred = false
			again = append(again, r)
		default:
			r.done <- struct{}{}
		}
	}
	if len(again) > 0 {
		b.mu.Lock()
		b.queue.requeue(again)
		b.mu.Unlock()
	}
}

func (b *batcher) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.size
}

// refuse rejects every later request.
func (b *batcher) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue.closed = true
}

// Close waits until every accepted request is resolved and stops the goroutine.
func (b *batcher) Close() {
	b.refuse()
	b.mu.Lock()
	for b.busy {
		b.idle.Wait()
	}
	b.mu.Unlock()
	close(b.wake)
}
