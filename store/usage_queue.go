package store

import "purser/ids"

const (
	// maxBatch is how many uses one transaction takes.
	maxBatch = 256
	// maxShare is how many of them one application gets while others are served too.
	// Everyone in a batch waits for all of it, so a flood's batches are kept small.
	maxShare = 64
	// sharedBatches is for how many batches an application that is alone in the queue
	// still gets no more than its share after another was served: one that sends a
	// request after each answer is away between two batches.
	sharedBatches = 32
	// maxBatchApps is how many applications share one transaction.
	maxBatchApps = 32
	// maxQueued is how many uses may wait, and how many of one application. What
	// comes beyond is refused at once, so memory stays flat.
	maxQueued       = 16_384
	maxQueuedPerApp = 4_096
)

// fairQueue is a queue for each application, taken in turn: an application that
// sends more than the database takes makes only itself wait.
type fairQueue struct {
	apps   map[ids.ID]*appQueue
	turns  []*appQueue // those that have something waiting, the next first
	first  []*pending  // taken before, and come before all others
	size   int
	shared int // batches left in which no application gets more than a share
	closed bool
}

type appQueue struct {
	app     ids.ID
	waiting []*pending
}

func newFairQueue() fairQueue { return fairQueue{apps: make(map[ids.ID]*appQueue)} }

// push queues a use, or reports that there is no room.
func (q *fairQueue) push(p *pending) bool {
	if q.closed || q.size >= maxQueued {
		return false
	}
	own := q.apps[p.Scope.AppID]
	if own == nil {
		own = &appQueue{app: p.Scope.AppID}
		q.apps[p.Scope.AppID] = own
		q.turns = append(q.turns, own)
	}
	if len(own.waiting) >= maxQueuedPerApp {
		return false
	}
	own.waiting = append(own.waiting, p)
	q.size++
	return true
}

// putBack returns uses of the last batch, which has taken nothing since.
func (q *fairQueue) putBack(uses []*pending) {
	q.first = uses
	q.size += len(uses)
}

// take gives the next batch: each application in its turn, and none more than its
// share while others are served too.
func (q *fairQueue) take() []*pending {
	if q.size == 0 {
		return nil
	}
	share := maxBatch
	if q.isShared() {
		share = maxShare
	}
	batch := append(make([]*pending, 0, min(q.size, maxBatch)), q.first...)
	q.first = nil
	turns := q.turns
	q.turns = nil
	for i, own := range turns {
		if len(batch) == maxBatch || i == maxBatchApps {
			q.turns = append(turns[i:], q.turns...) // they come first next time
			break
		}
		n := min(len(own.waiting), share, maxBatch-len(batch))
		batch = append(batch, own.waiting[:n]...)
		own.waiting = own.waiting[n:]
		if len(own.waiting) > 0 {
			q.turns = append(q.turns, own)
		} else {
			delete(q.apps, own.app)
		}
	}
	q.size -= len(batch)
	return batch
}

// isShared reports whether the next batch is for several applications, or one of
// the last was.
func (q *fairQueue) isShared() bool {
	if len(q.turns) > 1 {
		q.shared = sharedBatches
		return true
	}
	if q.shared == 0 {
		return false
	}
	q.shared--
	return true
}
