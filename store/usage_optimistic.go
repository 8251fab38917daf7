package store

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

// trackOptimistic commits the requests that are accepted by cached state, in one round
// trip, and returns the others. The transaction compares the epoch and every wallet's
// version and fails as a whole on a mismatch. A denial is never decided from the cache.
func (u *lane) trackOptimistic(requests []*request) (rest []*request) {
	now, err := u.now() // one for all steps: state that decides a request now may not decide it later
	if err != nil {
		return requests
	}
	if u.ordered && repeatsEventID(requests) {
		return requests // their order matters across wallets
	}
	known, rest := u.partition(requests, now)
	missing := u.cache.misses(rest)
	switch {
	case len(missing) == 0:
	case !u.ordered && len(known) >= max(minOptimistic, len(missing)) && deferUncached(missing):
		requests, rest = slices.DeleteFunc(requests, isDeferred), slices.DeleteFunc(rest, isDeferred)
		u.prefetched.Add(int64(len(missing)))
		var reading sync.WaitGroup
		reading.Go(func() { u.prefetchInBackground(missing, now) })
		defer reading.Wait()
	case u.prefetch(missing, now):
		known, rest = u.partition(requests, now)
	}
	if len(known) == 0 || (len(rest) > 0 && len(known) < minOptimistic) {
		return requests
	}
	var batches []*appBatch
	err = u.inTransaction(u.writes, known, func(ctx context.Context, conn *pgx.Conn, parts []*appBatch, _ int64) error {
		batches = parts
		return u.optimistic(ctx, conn, parts, now)
	})
	if err != nil {
		u.conflicts.Add(1)
		u.cache.invalidate(batches, pg.SQLState(err))
		return requests
	}
	for _, p := range known {
		if !p.resolved {
			rest = append(rest, p)
		}
	}
	return rest
}

// deferUncached moves cache misses to the next batch and prefetches them while this one
// commits. A request is deferred at most once.
func deferUncached(requests []*request) bool {
	if slices.ContainsFunc(requests, func(p *request) bool { return p.wasDeferred }) {
		return false
	}
	for _, p := range requests {
		p.deferred, p.wasDeferred = true, true
	}
	return true
}

func isDeferred(p *request) bool { return p.deferred }

// prefetchInBackground fills the cache for the next batch while this one runs. Its
// errors are dropped: the next batch meets and handles them.
func (u *lane) prefetchInBackground(requests []*request, now int64) {
	defer func() {
		if cause := recover(); cause != nil {
			u.log.Error("usage prefetch panicked", "cause", fmt.Sprint(cause))
		}
	}()
	u.prefetch(requests, now)
}

// prefetch reads cache misses without locks and reports whether the cache may have
// grown. It costs no more than the read half of a pessimistic attempt, and keeps the
// batch in one transaction.
func (u *lane) prefetch(requests []*request, now int64) bool {
	err := u.inTransaction(u.reads, requests, func(ctx context.Context, conn *pgx.Conn, batches []*appBatch, _ int64) error {
		return u.readThrough(ctx, conn, batches, now)
	})
	return err == nil // the pessimistic attempt meets and handles the same error
}

// readThrough reads wallets into the cache, in one round trip unless they need keyed
// rows too. Those may be newer than the wallet's version: the version check fails the
// write then.
func (u *lane) readThrough(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	p := wire.NewReadPipe(ctx, conn)
	for _, b := range batches {
		if !u.cache.lookupCatalog(b) {
			b.loadCatalog(p)
		}
		b.loadWallets(p)
	}
	if err := p.Run(); err != nil {
		return err
	}
	if err := loadKeyedRows(wire.NewReadPipe(ctx, conn), batches, now); err != nil {
		return err
	}
	for _, b := range batches {
		u.cache.merge(b)
	}
	return nil
}

// lookupCatalog fills in the features and keys that the requests name. It returns false
// when one is not cached. The transaction checks that they are current.
func (m *usageCache) lookupCatalog(b *appBatch) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	app, known := m.apps.Get(b.scope.AppID)
	if !known {
		return false
	}
	for _, p := range b.requests {
		feature, key := app.features[p.FeatureKey], app.keys[p.KeyID]
		if feature == nil || key == nil {
			return false
		}
		if b.features[p.FeatureKey] == nil {
			copied := *feature // the batch may mark it as used, and the cache is shared
			b.features[p.FeatureKey] = &copied
		}
		b.keys[p.KeyID] = key
	}
	b.epoch, b.clockOffset, b.rules, b.packedBefore = app.epoch, app.clockOffset, app.rules, app.packedBefore
	return true
}

// misses are the requests that a read could make decidable from the cache. Contended
// wallets and events that may be packed are left to the pessimistic path.
func (m *usageCache) misses(requests []*request) (list []*request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range requests {
		app, known := m.apps.Peek(p.Scope.AppID)
		if !isActive(m.duplicateHeavy, p.Scope.AppID) && !isActive(m.contended, walletKey{p.Scope.AppID, p.Identity}) && !(known && mayRepeatPacked(p, app.packedBefore)) {
			list = append(list, p)
		}
	}
	return list
}

// optimistic is one attempt from the cache: decide, then verify versions and write in
// one round trip.
func (u *lane) optimistic(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	p := wire.NewPipe(ctx, conn)
	p.SendCommand(pg.BeginTx)
	u.cache.lookup(u.server.Load(), batches, func(b *appBatch) {
		b.resolve(now)
		b.decideAccepted(now, u.ordered)
	})
	u.write(p, batches, now)
	p.SendCommand(pg.CommitTx)
	if err := p.Run(); err != nil {
		return err
	}
	for _, b := range batches {
		for _, use := range b.requests {
			use.resolved = use.decision.New
		}
	}
	u.cache.putCommitted(batches)
	u.afterCommit(batches)
	return nil
}

// decideAccepted applies the requests that cached state accepts and leaves the others
// undecided. In an ordered lane it leaves the later requests of the same wallet too.
func (b *appBatch) decideAccepted(now int64, ordered bool) {
	var undecided map[string]bool
	for i := 0; i < len(b.requests); {
		unit := unitAt(b.requests, i)
		i += len(unit)
		if identity := unit[0].Identity; (undecided[identity] || !b.acceptUnit(unit, now)) && ordered {
			if undecided == nil {
				undecided = make(map[string]bool)
			}
			undecided[identity] = true
		}
	}
}

// acceptUnit applies a request, or all requests of a group, if cached state accepts it.
func (b *appBatch) acceptUnit(unit []*request, now int64) bool {
	for _, use := range unit {
		// The cache may be stale about the key or the feature, and it has no packed events:
		// they are read.
		if use.err != nil || mayRepeatPacked(use, b.packedBefore) {
			resetAll(unit)
			return false
		}
	}
	w := b.wallets[unit[0].Identity]
	if w == nil {
		return false // evicted since partition
	}
	w.state.Now, w.state.Events = b.appTime(now), b.events
	for _, use := range unit {
		if !w.canDecide(use.Usage.Usage) {
			return false // replaced since partition, by a read for another request
		}
	}
	if unit[0].group != nil {
		return b.acceptGroup(w, unit)
	}
	use := unit[0]
	d := metering.Decide(&w.state, use.Usage.Usage)
	if d.Verdict != metering.Accepted || !d.New {
		return false
	}
	if b.needsMarks(w, &d) {
		return false // under locks they are read
	}
	use.decision = d
	b.apply(w, use)
	b.raise(w, &use.decision)
	return true
}

const (
	// contentionPeriod is how long a wallet is processed under locks after another node
	// changed it.
	contentionPeriod = 3 * time.Second
	// duplicatePeriod is how long event ids of an application are looked up first after
	// it sent a duplicate.
	duplicatePeriod = 100 * time.Millisecond
)

// invalidate evicts the state of a failed batch and records why, so that the next batch
// does not fail again. The pessimistic retry shows which wallets had changed.
func (m *usageCache) invalidate(batches []*appBatch, state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.conflicting)
	for _, b := range batches {
		if state == pg.UniqueViolation {
			m.duplicateHeavy.Add(b.scope.AppID, time.Now().Add(duplicatePeriod))
		}
		m.apps.Remove(b.scope.AppID)
		for identity, w := range b.wallets {
			address := walletKey{b.scope.AppID, identity}
			m.conflicting[address] = w.version
			m.wallets.Remove(address)
		}
	}
}

// purge evicts everything.
func (m *usageCache) purge() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apps.Purge()
	m.wallets.Purge()
}

// evict evicts wallets that another lane changed, or this node outside the engine. A
// batch that is using one fails its version check.
func (m *usageCache) evict(app ids.ID, identities iter.Seq[string]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wallets.Len() == 0 {
		return // as in the lanes of batches of most servers
	}
	for identity := range identities {
		m.wallets.Remove(walletKey{app, identity})
	}
}

// partition separates requests that can be decided from the cache from the rest.
func (m *usageCache) partition(requests []*request, now int64) (known, rest []*request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range requests {
		if m.lookupWallet(p, now) != nil && !isActive(m.duplicateHeavy, p.Scope.AppID) {
			known = append(known, p)
		} else {
			rest = append(rest, p)
		}
	}
	return known, rest
}

// lookupWallet returns the cached wallet of a request and fills in its feature. It
// returns nil when the wallet, feature or key is not cached, or a keyed row is missing.
func (m *usageCache) lookupWallet(p *request, now int64) *walletState {
	app, known := m.apps.Get(p.Scope.AppID)
	if !known || app.keys[p.KeyID] == nil || app.features[p.FeatureKey] == nil || mayRepeatPacked(p, app.packedBefore) {
		return nil
	}
	w, known := m.wallets.Get(walletKey{p.Scope.AppID, p.Identity})
	if !known {
		return nil
	}
	p.Feature = &app.features[p.FeatureKey].Feature
	w.state.Now = now + app.clockOffset
	if !w.canDecide(p.Usage.Usage) {
		return nil
	}
	return w
}

// lookup fills batches with cached state and has them decided under the mutex. From
// then until putCommitted or invalidate the batch owns the wallets that it touches. Another
// server may lack wallets that are cached: a standby that took over.
func (m *usageCache) lookup(server int64, batches []*appBatch, decide func(*appBatch)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server != server {
		m.apps.Purge()
		m.wallets.Purge()
	}
	m.server = server
	for _, b := range batches {
		app, known := m.apps.Get(b.scope.AppID)
		if !known {
			continue
		}
		b.epoch, b.clockOffset, b.features, b.keys, b.rules, b.packedBefore = app.epoch, app.clockOffset, app.features, app.keys, app.rules, app.packedBefore
		for _, p := range b.requests {
			if w, known := m.wallets.Get(walletKey{b.scope.AppID, p.Identity}); known {
				b.wallets[p.Identity] = w
				b.byID[w.state.Wallet.ID] = w
			}
		}
		decide(b)
	}
}

// putCommitted stores the state that an optimistic batch has committed.
func (m *usageCache) putCommitted(batches []*appBatch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range batches {
		b.markCommitted()
		for identity, w := range b.wallets {
			m.putWallet(b.scope.AppID, identity, w)
		}
	}
}
