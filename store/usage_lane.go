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
	*Engine
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
	// coresForLanes is from how many cores on there are as many on plain Postgres. With
	// fewer, larger batches are worth more than a second transaction.
	coresForLanes = 4
	// bulkLanes is how many transactions of batches run at once on plain Postgres.
	bulkLanes = 2
	// maxBulkWallets bounds the caches of the bulk lanes.
	maxBulkWallets = 40_000
	// recently is how long after a single event or check the bulk lanes take turns.
	recently = time.Second
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
func (u *Engine) openPools(ctx context.Context) (err error) {
	if u.places, err = u.store.db.Places(ctx, u.log); err != nil {
		return err
	}
	lanes := u.lanes * u.places.Count()
	for _, pool := range []struct {
		opened     **hotPool
		kept, most int
	}{
		{&u.singleWrites, u.lanes, lanes + spareConns},
		{&u.reads, keptReadConns, u.store.readConns(lanes, u.places.Count())},
		{&u.bulkWrites, 0, u.store.bulkLaneCount(u.places.Count())},
	} {
		if *pool.opened, err = u.openHotPool(ctx, pool.kept, pool.most-pool.kept); err != nil {
			u.closePools()
			return err
		}
	}
	return nil
}

func (u *Engine) closePools() {
	for _, pool := range []*hotPool{u.singleWrites, u.bulkWrites, u.reads} {
		if pool != nil {
			pool.Close()
		}
	}
}

// openLanes starts the lanes, as many for every place.
func (u *Engine) openLanes() {
	lanes := u.lanes * u.places.Count()
	for range lanes {
		l := &lane{Engine: u, writes: u.singleWrites, cache: newUsageCache(maxCachedWallets / lanes)}
		l.tracks = newBatcher(u, EventBatch, singleLimits, u.noted(l.track))
		l.checks = newBatcher(u, CheckBatch, singleLimits, u.noted(l.check))
		u.singles = append(u.singles, l)
	}
	bulks := u.store.bulkLaneCount(u.places.Count())
	for range bulks {
		l := &lane{Engine: u, writes: u.bulkWrites, cache: newUsageCache(max(1, maxBulkWallets/bulks)), ordered: true}
		l.tracks = newBatcher(u, BulkBatch, bulkLimits, l.trackInTurn)
		u.bulks = append(u.bulks, l)
	}
}

// batchers are those of all lanes.
func (u *Engine) batchers() (list []*batcher) {
	for _, l := range u.singles {
		list = append(list, l.tracks, l.checks)
	}
	for _, l := range u.bulks {
		list = append(list, l.tracks)
	}
	return list
}

// trackInTurn tracks a batch. While single events or checks arrive, only one bulk lane
// runs at a time: two would take both cores of a small machine from them. On Citus the
// work is that of different workers.
func (u *lane) trackInTurn(requests []*request) {
	if !u.store.db.Distributed && u.lastSingle.isRecent() {
		u.bulkTurn.Lock()
		defer u.bulkTurn.Unlock()
	}
	u.track(requests)
}

// laneSeed spreads wallets over the lanes, differently in every process.
var laneSeed = maphash.MakeSeed()

// laneOf is the lane of a request's wallet, among those of the place where its
// application is: what one lane changes, the other need not read again, and a place that
// does not answer stops no other.
func (u *Engine) laneOf(lanes []*lane, p *request) *lane {
	return lanes[u.laneIndex(len(lanes), p)]
}

func (u *Engine) laneIndex(lanes int, p *request) int {
	return u.laneAt(lanes, u.places.Of(p.Scope.AppID), p.Identity)
}

func (u *Engine) laneAt(lanes, place int, identity string) int {
	each := lanes / u.places.Count()
	return place*each + int(maphash.String(laneSeed, identity)%uint64(each))
}

// moment is when something last happened, since the process started.
type moment struct{ at atomic.Int64 }

func (m *moment) set() { m.at.Store(int64(time.Since(pg.ProcessStart))) }

func (m *moment) isRecent() bool {
	at := m.at.Load()
	return at != 0 && time.Since(pg.ProcessStart)-time.Duration(at) < recently
}

// noted runs batches of single events or checks, and notes that there are any.
func (u *Engine) noted(run func([]*request)) func([]*request) {
	return func(batch []*request) {
		u.lastSingle.set()
		run(batch)
	}
}

// afterCommit wakes the sequencer of applications with new alerts, and evicts the wallets
// from other lanes that may have cached them: an event decided from the state before
// would fail its version check, and its wallet would count as contended. A wallet has one
// lane for single events and one for batches, but a batch that repeats an event id is
// decided in one lane.
func (u *lane) afterCommit(batches []*appBatch) {
	for _, b := range batches {
		if len(b.alerts) > 0 {
			u.store.db.NotificationsCommitted(b.scope)
		}
		for _, other := range u.bulks {
			if other != u {
				other.cache.evict(b.scope.AppID, maps.Keys(b.wallets))
			}
		}
		for i := 0; u.ordered && i < len(u.singles); i++ {
			u.singles[i].cache.evict(b.scope.AppID, maps.Keys(b.wallets))
		}
	}
}

// evictWallet evicts a wallet that this node changed outside the engine.
func (u *Engine) evictWallet(app ids.ID, identity string) {
	for _, l := range slices.Concat(u.singles, u.bulks) {
		l.cache.evict(app, slices.Values([]string{identity}))
	}
}

// partition separates requests that can be decided from the cache from the rest. In an
// ordered lane a wallet with one undecidable request is left to the rest as a whole.
func (u *lane) partition(requests []*request, now int64) (known, rest []*request) {
	known, rest = u.cache.partition(requests, now)
	if !u.ordered || len(known) == 0 || len(rest) == 0 {
		return known, rest
	}
	undecidable := make(map[walletKey]bool, len(rest))
	for _, p := range rest {
		undecidable[walletKey{p.Scope.AppID, p.Identity}] = true
	}
	known, rest = nil, nil
	for _, p := range requests {
		if undecidable[walletKey{p.Scope.AppID, p.Identity}] {
			rest = append(rest, p)
		} else {
			known = append(known, p)
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
	for _, p := range requests {
		key := eventKey{p.Scope.AppID, p.EventID}
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return false
}
