package store

import (
	"time"

	"purser/ids"
)

// What the tests of the usage batcher see of its inside.

// The limits that are tested at the limit and one past it.
const (
	MaxBatch        = maxBatch
	MaxShare        = maxShare
	SharedBatches   = sharedBatches
	MaxBatchApps    = maxBatchApps
	MaxQueued       = maxQueued
	MaxQueuedPerApp = maxQueuedPerApp
	UseDeadline     = useDeadline
)

// HaveLessPatience sets what a use and a round trip may take, once no batch is under
// way: one may outlast the answers to its uses.
func (u *Engine) HaveLessPatience(use, batch time.Duration) {
	for _, l := range []*lane{u.tracks, u.checks} {
		l.mu.Lock()
		defer l.mu.Unlock()
		for l.busy {
			l.idle.Wait()
		}
	}
	u.useDeadline, u.batchTimeout = use, batch
}

// Splits is how many batches had to be halved.
func (u *Engine) Splits() int64 { return u.splits.Load() }

// Conflicts is how many batches memory got wrong.
func (u *Engine) Conflicts() int64 { return u.conflicts.Load() }

// Queued is how many uses wait to be tracked.
func (u *Engine) Queued() int {
	u.tracks.mu.Lock()
	defer u.tracks.mu.Unlock()
	return u.tracks.queue.size
}

// Busy reports whether a batch of uses is under way.
func (u *Engine) Busy() bool {
	u.tracks.mu.Lock()
	defer u.tracks.mu.Unlock()
	return u.tracks.busy
}

// Closing reports whether new uses are refused because Close was called.
func (u *Engine) Closing() bool {
	u.tracks.mu.Lock()
	defer u.tracks.mu.Unlock()
	return u.tracks.queue.closed
}

// Remembers reports whether the wallet is in memory.
func (u *Engine) Remembers(app ids.ID, identity string) bool {
	u.memory.mu.Lock()
	defer u.memory.mu.Unlock()
	return u.memory.wallets.Contains(walletAddress{app, identity})
}

// KeepUnderLocks has the wallet's uses decided under locks for the rest of a test, as
// if other nodes wrote it too.
func (u *Engine) KeepUnderLocks(app ids.ID, identity string) {
	u.memory.mu.Lock()
	defer u.memory.mu.Unlock()
	u.memory.contended.Add(walletAddress{app, identity}, time.Now().Add(time.Hour))
}

// Queue is the queue of a lane, without the lane.
type Queue struct{ queue fairQueue }

// NewQueue makes an empty one.
func NewQueue() *Queue { return &Queue{newFairQueue()} }

// Push queues a use, or reports that there is no room.
func (q *Queue) Push(use Usage) bool { return q.queue.push(&pending{Usage: use}) }

// Take gives the uses of the next batch.
func (q *Queue) Take() []Usage {
	var uses []Usage
	for _, p := range q.queue.take() {
		uses = append(uses, p.Usage)
	}
	return uses
}

// PutBack returns uses of the last batch.
func (q *Queue) PutBack(uses []Usage) {
	list := make([]*pending, len(uses))
	for i, use := range uses {
		list[i] = &pending{Usage: use}
	}
	q.queue.putBack(list)
}

// Close refuses whatever comes from now on.
func (q *Queue) Close() { q.queue.closed = true }

// Size is how many uses wait.
func (q *Queue) Size() int { return q.queue.size }
