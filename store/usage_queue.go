package store

import (
	"slices"

	"purser/ids"
)

const (
	// maxBatch is the maximum number of requests per transaction.
	maxBatch = 256
	// maxShare is one application's limit per batch while others are active. Every
	// request waits for its whole batch, so a flood is served in small batches.
	maxShare = 64
	// sharedBatches is for how many batches the share limit stays on after another
	// application was served: an application that sends one request at a time is not in
	// the queue between two batches.
	sharedBatches = 32
	// maxBatchApps is the maximum number of applications per transaction.
	maxBatchApps = 32
	// maxQueued and maxQueuedPerApp bound the queue, and with it memory. Requests
	// beyond are rejected at once.
	maxQueued       = 16_384
	maxQueuedPerApp = 4_096
)

// queueLimits are the limits of one queue.
type queueLimits struct{ batch, share, queued, queuedPerApp int }

var (
	singleLimits = queueLimits{batch: maxBatch, share: maxShare, queued: maxQueued, queuedPerApp: maxQueuedPerApp}
	// Callers of the bulk lane wait for many events anyway, so its transactions are
	// larger: a commit costs less per event.
	bulkLimits = queueLimits{batch: 2 * maxBatch, share: maxBatch, queued: 65_536, queuedPerApp: 16_384}
)

// fairQueue is a round-robin of per-application queues: an application that sends more
// than the database can absorb delays only itself.
type fairQueue struct {
	limits   queueLimits
	apps     map[ids.ID]*appQueue
	rotation []*appQueue // non-empty queues, the next one first
	requeued []*request  // deferred by the last batch; they come first
	size     int
	shared   int // batches left with the share limit on
	closed   bool
	// oneApp makes every batch one application's: on Citus a transaction over several
	// would be a two-phase commit, and one dead worker would stop all of them.
	oneApp bool
}

type appQueue struct {
	app     ids.ID
	waiting []*request
}

func newFairQueue(limits queueLimits, oneApp bool) fairQueue {
	return fairQueue{limits: limits, apps: make(map[ids.ID]*appQueue), oneApp: oneApp}
}

// hasRoom reports whether an application may queue more requests.
func (q *fairQueue) hasRoom(app ids.ID, more int) bool {
	waiting := 0
	if own := q.apps[app]; own != nil {
		waiting = len(own.waiting)
	}
	return !q.closed && q.size+more <= q.limits.queued && waiting+more <= q.limits.queuedPerApp
}

// push queues requests of one application. The queue must have room for them.
func (q *fairQueue) push(requests ...*request) {
	app := requests[0].Scope.AppID
	own := q.apps[app]
	if own == nil {
		own = &appQueue{app: app}
		q.apps[app] = own
		q.rotation = append(q.rotation, own)
	}
	own.waiting = append(own.waiting, requests...)
	q.size += len(requests)
}

// requeue puts back deferred requests of the last batch. No batch may have been taken
// in between.
func (q *fairQueue) requeue(requests []*request) {
	q.requeued = requests
	q.size += len(requests)
}

// nextBatch dequeues a batch, round-robin over the applications, each limited to its
// share while others are active.
func (q *fairQueue) nextBatch() []*request {
	if q.size == 0 {
		return nil
	}
	share := q.limits.batch
	if q.isShared() {
		share = q.limits.share
	}
	batch := append(make([]*request, 0, min(q.size, q.limits.batch)), q.requeued...)
	q.requeued = nil
	if q.oneApp {
		return q.fillFromOneApp(batch, share)
	}
	turns := q.rotation
	q.rotation = nil
	for i, own := range turns {
		if len(batch) == q.limits.batch || i == maxBatchApps {
			q.rotation = append(turns[i:], q.rotation...) // the rest goes first next time
			break
		}
		n := min(len(own.waiting), share, q.limits.batch-len(batch))
		batch = append(batch, own.waiting[:n]...)
		own.waiting = own.waiting[n:]
		if len(own.waiting) > 0 {
			q.rotation = append(q.rotation, own)
		} else {
			delete(q.apps, own.app)
		}
	}
	q.size -= len(batch)
	return batch
}

// isShared reports whether several applications are queued, or were within the last
// sharedBatches batches.
func (q *fairQueue) isShared() bool {
	if len(q.rotation) > 1 {
		q.shared = sharedBatches
		return true
	}
	if q.shared == 0 {
		return false
	}
	q.shared--
	return true
}

// fillFromOneApp adds requests of the application that the deferred ones belong to, or
// else of the next in turn.
func (q *fairQueue) fillFromOneApp(batch []*request, share int) []*request {
	turn := 0
	if len(batch) > 0 {
		turn = slices.IndexFunc(q.rotation, func(own *appQueue) bool { return own.app == batch[0].Scope.AppID })
	}
	if turn >= 0 {
		own := q.rotation[turn]
		n := min(len(own.waiting), share, q.limits.batch-len(batch))
		batch = append(batch, own.waiting[:n]...)
		own.waiting = own.waiting[n:]
		q.rotation = slices.Delete(q.rotation, turn, turn+1)
		if len(own.waiting) > 0 {
			q.rotation = append(q.rotation, own)
		} else {
			delete(q.apps, own.app)
		}
	}
	q.size -= len(batch)
	return batch
}
