package store

import (
	"context"

	"purser/ids"
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

// maxBulkWallets bounds the cache of the bulk lane.
const maxBulkWallets = 20_000

// openPools opens the connections of the lanes and of reads. The bulk lane connects
// with its first batch: most servers never see one.
func (u *Engine) openPools(ctx context.Context) (err error) {
	u.single = &lane{Engine: u, cache: newUsageCache(maxCachedWallets)}
	u.bulk = &lane{Engine: u, cache: newUsageCache(maxBulkWallets), ordered: true}
	if u.single.writes, err = u.store.openHotPool(ctx, keptWriteConns, &u.borrowed); err != nil {
		return err
	}
	if u.reads, err = u.store.openHotPool(ctx, keptReadConns, &u.borrowed); err != nil {
		u.single.writes.Close()
		return err
	}
	if u.bulk.writes, err = u.store.openHotPool(ctx, 0, &u.borrowed); err != nil {
		u.single.writes.Close()
		u.reads.Close()
	}
	return err
}

func (u *Engine) closePools() {
	u.single.writes.Close()
	u.bulk.writes.Close()
	u.reads.Close()
}

// evictWallet evicts a wallet that this node changed outside the engine.
func (u *Engine) evictWallet(app ids.ID, identity string) {
	u.single.cache.evictWallet(app, identity)
	u.bulk.cache.evictWallet(app, identity)
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
