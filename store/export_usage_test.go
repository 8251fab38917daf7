package store

import (
	"context"
	"slices"
	"time"

	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
)

// Access to the usage engine's internals for its tests.

// The limits that are tested at the limit and one past it.
const (
	MaxBatch        = maxBatch
	MaxShare        = maxShare
	SharedBatches   = sharedBatches
	MaxBatchApps    = maxBatchApps
	MaxQueued       = maxQueued
	MaxQueuedPerApp = maxQueuedPerApp
	MaxBulkPerApp   = 16_384
	MaxBulkBatch    = 2 * maxBatch
	SingleLanes     = maxSingleLanes
	MinOptimistic   = minOptimistic
	MaxKeyedRows    = maxKeyedRows
	MaxMarks        = maxMarks
	BulkLanes       = bulkLanes
	RequestTimeout  = requestTimeout
)

// SetTimeouts sets the request and batch timeouts once no batch is running: a batch may
// outlast the answers to its requests.
func (u *Engine) SetTimeouts(use, batch time.Duration) {
	for _, l := range u.batchers() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for l.busy {
			l.idle.Wait()
		}
	}
	u.requestTimeout, u.batchTimeout = use, batch
}

// Splits is how many batches had to be halved.
func (u *Engine) Splits() int64 { return u.splits.Load() }

// Conflicts is how many optimistic batches were rolled back.
func (u *Engine) Conflicts() int64 { return u.conflicts.Load() }

// OneLane leaves one lane for single events and checks, before any is sent: then all
// that wait are in one queue, on Citus those of all workers.
func (u *Engine) OneLane() *Engine {
	u.places, _ = new(pg.DB).Places(context.Background(), u.log) // those of plain Postgres: there is nothing to fail
	for _, l := range u.singles[1:] {
		l.tracks.Close()
		l.checks.Close()
	}
	u.singles = u.singles[:1]
	return u
}

// Queued is how many tracks are queued.
func (u *Engine) Queued() int { return u.Stats().QueuedEvents }

// Busy reports whether a batch of tracks is running.
func (u *Engine) Busy() bool {
	return slices.ContainsFunc(u.singles, func(l *lane) bool {
		l.tracks.mu.Lock()
		defer l.tracks.mu.Unlock()
		return l.tracks.busy
	})
}

// Closing reports whether new requests are rejected because Close was called.
func (u *Engine) Closing() bool {
	last := u.bulks[len(u.bulks)-1].tracks
	last.mu.Lock()
	defer last.mu.Unlock()
	return last.queue.closed
}

func (u *Engine) cacheOf(app ids.ID, identity string) *usageCache {
	return u.singles[u.LaneOf(app, identity)].cache
}

// IsCached reports whether the wallet is in the cache.
func (u *Engine) IsCached(app ids.ID, identity string) bool {
	cache := u.cacheOf(app, identity)
	cache.mu.Lock()
	defer cache.mu.Unlock()
	return cache.wallets.Contains(walletKey{app, identity})
}

// ForcePessimistic has the wallet's requests decided under locks for the rest of a
// test, as if other nodes wrote it too.
func (u *Engine) ForcePessimistic(app ids.ID, identity string) {
	cache := u.cacheOf(app, identity)
	cache.mu.Lock()
	defer cache.mu.Unlock()
	cache.contended.Add(walletKey{app, identity}, time.Now().Add(time.Hour))
}

// LooksUpEventIDs reports whether the application has repeated an event id, so that its event
// ids were looked up first for a while.
func (u *Engine) LooksUpEventIDs(app ids.ID) bool {
	return slices.ContainsFunc(slices.Concat(u.singles, u.bulks), func(l *lane) bool {
		l.cache.mu.Lock()
		defer l.cache.mu.Unlock()
		return l.cache.duplicateHeavy.Contains(app)
	})
}

// Queue is the queue of a batcher, without the batcher.
type Queue struct{ queue fairQueue }

// NewQueue makes an empty one.
func NewQueue() *Queue { return &Queue{newFairQueue(singleLimits, false)} }

// NewQueueOfOneApp is the queue of a distributed database.
func NewQueueOfOneApp() *Queue { return &Queue{newFairQueue(singleLimits, true)} }

// NewBulkQueue is the queue of batches and groups.
func NewBulkQueue(oneApp bool) *Queue { return &Queue{newFairQueue(bulkLimits, oneApp)} }

// Push queues a request. It returns false when the queue is full.
func (q *Queue) Push(use Usage) bool { return q.pushOne(&request{Usage: use}) }

// PushGroup queues a group of this many events.
func (q *Queue) PushGroup(use Usage, events int) bool {
	return q.pushOne(&request{Usage: use, group: &group{members: make([]*request, events)}})
}

func (q *Queue) pushOne(r *request) bool {
	if !q.queue.hasRoom(r.Scope.AppID, r.weight()) {
		return false
	}
	q.queue.push(r)
	return true
}

// Take dequeues the next batch.
func (q *Queue) Take() []Usage {
	var requests []Usage
	for _, p := range q.queue.nextBatch() {
		requests = append(requests, p.Usage)
	}
	return requests
}

// Requeue puts back requests of the last batch.
func (q *Queue) Requeue(requests []Usage) {
	list := make([]*request, len(requests))
	for i, use := range requests {
		list[i] = &request{Usage: use}
	}
	q.queue.requeue(list)
}

// Close rejects every later request.
func (q *Queue) Close() { q.queue.closed = true }

// Size is how many requests are queued.
func (q *Queue) Size() int { return q.queue.size }

// Setting is a setting of the sessions that charge.
func (u *Engine) Setting(ctx context.Context, name string) (value string, err error) {
	err = u.singleWrites.QueryRow(ctx, `SELECT current_setting($1)`, name).Scan(&value)
	return value, err
}

// LaneOf is the lane of a wallet's single events. On plain Postgres its batches have the
// lane of the same number.
func (u *Engine) LaneOf(app ids.ID, identity string) int {
	return u.laneIndex(len(u.singles), &request{Usage: Usage{Scope: tenancy.Scope{AppID: app}, Identity: identity}})
}

// Place is the worker of an application.
func (u *Engine) Place(app ids.ID) int { return u.places.Of(app) }

// KeepSinglesRecent has the engine behave for the rest of a test as if single events
// arrived all the time.
func (u *Engine) KeepSinglesRecent() {
	u.lastSingle.at.Store(int64(time.Since(pg.ProcessStart) + time.Hour))
}

// BulkTurnTaken reports whether a bulk lane that takes turns is running.
func (u *Engine) BulkTurnTaken() bool {
	if !u.bulkTurn.TryLock() {
		return true
	}
	u.bulkTurn.Unlock()
	return false
}

// SplitPoint is where a failing batch of units of these sizes is halved; those above one are
// groups.
func SplitPoint(units ...int) int {
	var requests []*request
	for _, size := range units {
		var g *group
		if size > 1 {
			g = &group{}
		}
		for range size {
			requests = append(requests, &request{group: g})
		}
	}
	return splitPoint(requests)
}

// CachedFromAnother has the caches be those of a database with another history than the
// current one. With a connection to that database, too, only the next one tells the current.
func (u *Engine) CachedFromAnother(connected bool) {
	history := u.history.Load() + 1
	for _, l := range slices.Concat(u.singles, u.bulks) {
		l.cache.mu.Lock()
		l.cache.history = history
		l.cache.mu.Unlock()
	}
	if connected {
		u.history.Store(history)
	}
}

// Borrow readies a connection of the store's pool for the hot path.
func (u *Engine) Borrow(ctx context.Context) error {
	conn, err := u.singleWrites.borrow(ctx)
	if err == nil {
		conn.Release()
	}
	return err
}

// SetMaxRows bounds the rows of each lane's cache, before any request is sent.
func (u *Engine) SetMaxRows(rows int) {
	for _, l := range slices.Concat(u.singles, u.bulks) {
		l.cache.maxRows = rows
	}
}

// SetMaxItems bounds the features of each cached catalog, and the keys, before any request is
// sent.
func (u *Engine) SetMaxItems(items int) {
	for _, l := range slices.Concat(u.singles, u.bulks) {
		l.cache.maxItems = items
	}
}

// CachedItems is how many features and keys of an application the caches have.
func (u *Engine) CachedItems(app ids.ID) (features, keys int) {
	for _, l := range slices.Concat(u.singles, u.bulks) {
		l.cache.mu.Lock()
		if cached, found := l.cache.apps.Peek(app); found {
			features, keys = features+len(cached.features), keys+len(cached.keys)
		}
		l.cache.mu.Unlock()
	}
	return features, keys
}

// CachedRows is how many rows the caches count, how many they have, and the most keyed rows
// that one wallet has.
func (u *Engine) CachedRows() (counted, rows, most int) {
	for _, l := range slices.Concat(u.singles, u.bulks) {
		l.cache.mu.Lock()
		counted += l.cache.rows
		for _, w := range l.cache.wallets.Values() {
			rows += w.rows()
			most = max(most, w.keyedRows())
		}
		l.cache.mu.Unlock()
	}
	return counted, rows, most
}
