package store

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// lane works off uses, one batch at a time. While a batch is under way, what
// arrives becomes the next one: there is no timer, so a lone request never waits.
type lane struct {
	usage *Engine
	work  func([]*pending) // settles every use of a batch that it does not put off

	mu    sync.Mutex
	queue fairQueue
	busy  bool
	wake  chan struct{}
	idle  *sync.Cond
}

func newLane(u *Engine, work func([]*pending)) *lane {
	l := &lane{usage: u, work: work, wake: make(chan struct{}), queue: newFairQueue()}
	l.idle = sync.NewCond(&l.mu)
	go l.loop()
	return l
}

// submit queues a use and returns when it is settled. A caller that finds the
// lane idle works its batch off itself, which saves a lone request two switches.
func (l *lane) submit(p *pending) error {
	l.mu.Lock()
	if !l.queue.push(p) {
		l.mu.Unlock()
		return errOverloaded
	}
	if l.busy {
		l.mu.Unlock()
		return await(p)
	}
	l.busy = true
	batch := l.queue.take()
	l.mu.Unlock()
	l.settle(batch)
	l.handOn()
	return await(p)
}

var timers = sync.Pool{New: func() any { return time.NewTimer(time.Hour) }}

// await waits until the use is settled or its time is over. What no batch has taken
// by then was certainly not recorded; of anything else the outcome is unknown.
func await(p *pending) error {
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
	case <-p.done: // at the last moment
		return nil
	default:
		return errOutOfTime
	}
}

var errOutOfTime = errors.New("store: out of time while a batch is under way")

// handOn gives the lane to its own goroutine when more has arrived.
func (l *lane) handOn() {
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

func (l *lane) loop() {
	for range l.wake {
		for {
			// Whoever is ready to join the next batch does so first: fuller batches cost
			// less, and a lane that nobody is about to join is not held up.
			runtime.Gosched()
			l.mu.Lock()
			batch := l.queue.take()
			if len(batch) == 0 {
				l.busy = false
				l.idle.Broadcast()
				l.mu.Unlock()
				break
			}
			l.mu.Unlock()
			l.settle(batch)
		}
	}
}

// settle works a batch off and lets every caller go that is not put off, whatever
// happens: a panic must not leave them waiting for ever.
func (l *lane) settle(batch []*pending) {
	defer func() {
		if cause := recover(); cause != nil {
			l.usage.log.Error("usage batch panicked", "cause", fmt.Sprint(cause))
			for _, p := range batch {
				p.putOff, p.err = false, fmt.Errorf("store: usage batch panicked: %v", cause)
			}
		}
		l.release(batch)
	}()
	l.work(batch)
}

func (l *lane) release(batch []*pending) {
	var again []*pending
	for _, p := range batch {
		if p.putOff {
			p.putOff = false
			again = append(again, p)
			continue
		}
		p.done <- struct{}{}
	}
	if len(again) > 0 {
		l.mu.Lock()
		l.queue.putBack(again)
		l.mu.Unlock()
	}
}

func (l *lane) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.size
}

// drain waits until everything that was accepted is settled, and ends the lane.
func (l *lane) drain() {
	l.mu.Lock()
	l.queue.closed = true
	for l.busy {
		l.idle.Wait()
	}
	l.mu.Unlock()
	close(l.wake)
}
