package store

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"

	"purser/ids"
	"purser/store/internal/pg"
)

// lane is one path of usage to the database: it commits on connections of its own and
// caches the wallets that it changes. Two lanes meet only in the database, as two nodes
// do, so a wallet that both change costs retries and never a wrong balance.
type lane struct {
	*Engine
	writes *hotPool
	cache  *usageCache
	// ordered lanes decide the requests of one wallet in the order of the queue.
	// Single requests have no order: their callers send them at the same time.
	ordered bool
}

const (
	// bulkLanes is how many transactions of batches run at once. While one waits for
	// Postgres, the other decides.
	bulkLanes = 2
	// maxBulkWallets bounds the cache of each bulk lane.
	maxBulkWallets = 20_000
	// recently is how long after a single event or check the bulk lanes take turns.
	recently = time.Second
)

// openPools opens the connections of the lanes and of reads. The bulk lanes connect
// with their first batch: most servers never see one.
func (u *Engine) openPools(ctx context.Context) (err error) {
	u.single = &lane{Engine: u, cache: newUsageCache(maxCachedWallets)}
	if u.single.writes, err = u.store.openHotPool(ctx, keptWriteConns, spareConns, &u.borrowed); err != nil {
		return err
	}
	if u.reads, err = u.store.openHotPool(ctx, keptReadConns, spareConns, &u.borrowed); err != nil {
		u.single.writes.Close()
		return err
	}
	if u.bulkWrites, err = u.store.openHotPool(ctx, 0, bulkLanes, &u.borrowed); err != nil {
		u.single.writes.Close()
		u.reads.Close()
	}
	return err
}

func (u *Engine) closePools() {
	u.single.writes.Close()
	u.bulkWrites.Close()
	u.reads.Close()
}

// openBulkLanes starts the lanes of batches and groups. On Citus there is one: lanes
// that share workers would only wait for each other.
func (u *Engine) openBulkLanes() {
	count := bulkLanes
	if u.store.db.Distributed {
		count = 1
	}
	for range count {
		l := &lane{Engine: u, writes: u.bulkWrites, cache: newUsageCache(maxBulkWallets), ordered: true}
		u.bulk = append(u.bulk, l)
		u.bulks = append(u.bulks, newBatcher(u, BulkBatch, bulkLimits, l.trackInTurn))
	}
}

// trackInTurn tracks a batch. While single events or checks arrive, only one bulk lane
// runs at a time: two would take both cores of a small machine from them.
func (u *lane) trackInTurn(requests []*request) {
	if u.lastSingle.isRecent() {
		u.bulkTurn.Lock()
		defer u.bulkTurn.Unlock()
	}
	u.track(requests)
}

// laneSeed spreads wallets over the lanes, differently in every process.
var laneSeed = maphash.MakeSeed()

// bulkLane is the lane of a wallet's batches: what one lane changes, the other need not
// read again.
func (u *Engine) bulkLane(identity string) int {
	return int(maphash.String(laneSeed, identity) % uint64(len(u.bulks)))
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

// evictWallet evicts a wallet that this node changed outside the engine.
func (u *Engine) evictWallet(app ids.ID, identity string) {
	u.single.cache.evictWallet(app, identity)
	for _, l := range u.bulk {
		l.cache.evictWallet(app, identity)
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
