package store

import (
	"context"
	"hash/maphash"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"purser/ids"
	"purser/store/internal/pg"
)

// lane is one path of usage to the database: it runs one transaction at a time and caches
// the wallets that it changes. Two lanes meet only in the database, as two nodes
// do, so a wallet that both change costs retries and never a wrong balance.
type lane struct {
	engine *Engine // what lanes share
	tracks *batcher
	checks *batcher // nil for batches and groups
	writes *hotPool
	cache  *usageCache
	// ordered lanes decide the requests of one wallet in the order of the queue.
	// Single requests have no order: their callers send them at the same time.
	ordered bool
}

const (
	// maxSingleLanes is how many transactions of single events run at once for each
	// place: while one waits for Postgres, the other decides.
	maxSingleLanes = 2
	// From coresForLanes cores on, plain Postgres has maxSingleLanes too. With fewer,
	// larger batches are worth more than a second transaction.
	coresForLanes = 4
	// bulkLanes is how many transactions of batches run at once on plain Postgres.
	bulkLanes = 2
	// maxBulkWallets bounds the caches of the bulk lanes.
	maxBulkWallets = 40_000
	// bulkYieldWindow is how long after a single event or check the bulk lanes take turns.
	bulkYieldWindow = time.Second
)

// singleLaneCount is how many lanes of single events each place has.
func (s *Store) singleLaneCount() int {
	if !s.db.Distributed && runtime.GOMAXPROCS(0) < coresForLanes {
		return 1
	}
	return maxSingleLanes
}

// bulkLaneCount is one for each worker on Citus: lanes that share workers would only wait
// for each other.
func (s *Store) bulkLaneCount(places int) int {
	if s.db.Distributed {
		return places
	}
	return bulkLanes
}

// openPools opens the connections of the lanes and of reads. The bulk lanes connect
// with their first batch: most servers never see one.
func (e *Engine) openPools(ctx context.Context) (err error) {
	if e.places, err = e.store.db.Places(ctx, e.log); err != nil {
		return err
	}
	lanes := e.lanes * e.places.Count()
	for _, pool := range []struct {
		opened     **hotPool
		kept, most int
	}{
		{&e.singleWrites, e.lanes, lanes + spareConns},
		{&e.reads, keptReadConns, e.store.readConns(lanes, e.places.Count())},
		{&e.bulkWrites, 0, e.store.bulkLaneCount(e.places.Count())},
	} {
		if *pool.opened, err = e.openHotPool(ctx, pool.kept, pool.most-pool.kept); err != nil {
			e.closePools()
			return err
		}
	}
	return nil
}

func (e *Engine) closePools() {
	for _, pool := range []*hotPool{e.singleWrites, e.bulkWrites, e.reads} {
		if pool != nil {
			pool.Close()
		}
	}
}

// openLanes starts the lanes, as many for every place.
func (e *Engine) openLanes() {
	lanes := e.lanes * e.places.Count()
	for range lanes {
		l := &lane{engine: e, writes: e.singleWrites, cache: newUsageCache(maxCachedWallets / lanes)}
		l.tracks = newBatcher(e, EventBatch, singleLimits, e.recordingSingle(l.track))
		l.checks = newBatcher(e, CheckBatch, singleLimits, e.recordingSingle(l.check))
		e.singles = append(e.singles, l)
	}
	bulks := e.store.bulkLaneCount(e.places.Count())
	for range bulks {
		l := &lane{engine: e, writes: e.bulkWrites, cache: newUsageCache(max(1, maxBulkWallets/bulks)), ordered: true}
		l.tracks = newBatcher(e, BulkBatch, bulkLimits, l.trackInTurn)
		e.bulks = append(e.bulks, l)
	}
}

// batchers are those of all lanes.
func (e *Engine) batchers() (list []*batcher) {
	for _, l := range e.singles {
		list = append(list, l.tracks, l.checks)
	}
	for _, l := range e.bulks {
		list = append(list, l.tracks)
	}
	return list
}

// trackInTurn tracks a batch. While single events or checks arrive, only one bulk lane
// runs at a time: two would take both cores of a small machine from them. On Citus the
// work is that of different workers.
func (l *lane) trackInTurn(requests []*request) {
	if !l.engine.store.db.Distributed && l.engine.lastSingle.isRecent() {
		l.engine.bulkTurn.Lock()
		defer l.engine.bulkTurn.Unlock()
	}
	l.track(requests)
}

// laneSeed spreads wallets over the lanes, differently in every process.
var laneSeed = maphash.MakeSeed()

// laneOf is the lane of a request's wallet, among those of the place where its
// application is: what one lane changes, the other need not read again, and a place that
// does not answer stops no other.
func (e *Engine) laneOf(lanes []*lane, r *request) *lane {
	return lanes[e.laneIndex(len(lanes), r)]
}

func (e *Engine) laneIndex(lanes int, r *request) int {
	return e.laneAt(lanes, e.places.Of(r.Scope.AppID), r.Identity)
}

func (e *Engine) laneAt(lanes, place int, identity string) int {
	each := lanes / e.places.Count()
	return place*each + int(maphash.String(laneSeed, identity)%uint64(each))
}

// lastTime is when something last happened, since the process started.
type lastTime struct{ at atomic.Int64 }

func (t *lastTime) set() { t.at.Store(int64(time.Since(pg.ProcessStart))) }

func (t *lastTime) isRecent() bool {
	at := t.at.Load()
	return at != 0 && time.Since(pg.ProcessStart)-time.Duration(at) < bulkYieldWindow
}

// recordingSingle wraps run: it records when single events or checks last ran.
func (e *Engine) recordingSingle(run func([]*request)) func([]*request) {
	return func(batch []*request) {
		e.lastSingle.set()
		run(batch)
	}
}

// afterCommit wakes the sequencer of applications with new alerts, and evicts the wallets
// from other lanes that may have cached them: an event decided from the state before
// would fail its version check, and its wallet would count as contended. A wallet has one
// lane for single events and one for batches, but a batch that repeats an event id is
// decided in one lane.
func (l *lane) afterCommit(batches []*appBatch) {
	for _, b := range batches {
		if len(b.alerts) > 0 {
			l.engine.store.db.NotificationsCommitted(b.scope)
		}
		for _, other := range l.engine.bulks {
			if other != l {
				other.cache.evict(b.scope.AppID, maps.Keys(b.wallets))
			}
		}
		for i := 0; l.ordered && i < len(l.engine.singles); i++ {
			l.engine.singles[i].cache.evict(b.scope.AppID, maps.Keys(b.wallets))
		}
	}
}

// evictWallet evicts a wallet that this node changed outside the engine.
func (e *Engine) evictWallet(app ids.ID, identity string) {
	for _, l := range slices.Concat(e.singles, e.bulks) {
		l.cache.evict(app, slices.Values([]string{identity}))
	}
}

// partition separates requests that can be decided from the cache from the rest. In an
// ordered lane a wallet with one undecidable request is left to the rest as a whole.
func (l *lane) partition(requests []*request, now int64) (known, rest []*request) {
	known, rest = l.cache.partition(requests, now)
	if !l.ordered || len(known) == 0 || len(rest) == 0 {
		return known, rest
	}
	undecidable := make(map[walletKey]bool, len(rest))
	for _, r := range rest {
		undecidable[walletKey{r.Scope.AppID, r.Identity}] = true
	}
	known, rest = nil, nil
	for _, r := range requests {
		if undecidable[walletKey{r.Scope.AppID, r.Identity}] {
			rest = append(rest, r)
		} else {
			known = append(known, r)
		}
	}
	return known, rest
}

// repeatsEventID reports whether two requests of an application have the same event id:
// the first in the queue is the one that counts, whichever wallet it is for.
func repeatsEventID(requests []*request) bool {
	type eventKey struct {
		app [16]byte
		id  string
	}
	seen := make(map[eventKey]bool, len(requests))
	for _, r := range requests {
		key := eventKey{r.Scope.AppID, r.EventID}
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return false
}
