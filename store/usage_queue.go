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

// queueLimits are the limits of one queue, in events.
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
	size     int         // in events
	shared   int         // batches left with the share limit on
	closed   bool
	// oneApp makes every batch one application's: on Citus a transaction over several
	// would be a two-phase commit, and one dead worker would stop all of them.
	oneApp bool
}

type appQueue struct {
	app     ids.ID
	waiting []*request
	events  int // of those that wait
}

// weight is the number of events of a request: a group waits as one.
func (r *request) weight() int {
	if r.group == nil {
		return 1
	}
	return len(r.group.members)
}

func newFairQueue(limits queueLimits, oneApp bool) fairQueue {
	return fairQueue{limits: limits, apps: make(map[ids.ID]*appQueue), oneApp: oneApp}
}

// hasRoom reports whether an application may queue more events.
func (q *fairQueue) hasRoom(app ids.ID, more int) bool {
	waiting := 0
	if own := q.apps[app]; own != nil {
		waiting = own.events
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
	for _, r := range requests {
		own.events, q.size = own.events+r.weight(), q.size+r.weight()
	}
}

// requeue puts back deferred requests of the last batch, never groups. No batch may have
// been taken in between.
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
	q.size -= len(batch)
	if q.oneApp {
		return q.fillFromOneApp(batch, share)
	}
	turns, room := q.rotation, q.limits.batch-len(batch)
	q.rotation = nil
	for i, own := range turns {
		if len(batch) > 0 && own.waiting[0].weight() > room || i == maxBatchApps {
			q.rotation = append(turns[i:], q.rotation...) // the rest goes first next time
			break
		}
		before := q.size
		batch = q.take(batch, own, min(share, room))
		room -= before - q.size
	}
	return batch
}

// take moves up to this many events of an application to the batch. A group is not
// divided; one that is larger than any batch is a batch of its own.
func (q *fairQueue) take(batch []*request, own *appQueue, most int) []*request {
	n := 0
	for ; n < len(own.waiting); n++ {
		weight := own.waiting[n].weight()
		if weight > most && n+len(batch) > 0 {
			break
		}
		most, own.events, q.size = most-weight, own.events-weight, q.size-weight
	}
	batch = append(batch, own.waiting[:n]...)
	if own.waiting = own.waiting[n:]; len(own.waiting) > 0 {
		q.rotation = append(q.rotation, own)
	} else {
		delete(q.apps, own.app)
	}
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
		q.rotation = slices.Delete(q.rotation, turn, turn+1)
		batch = q.take(batch, own, min(share, q.limits.batch-len(batch)))
	}
	return batch
}
