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
func (l *lane) trackOptimistic(requests []*request) (rest []*request) {
	now, err := l.engine.now() // one for all steps: state that decides a request now may not decide it later
	if err != nil {
		return requests
	}
	if l.ordered && repeatsEventID(requests) {
		return requests // their order matters across wallets
	}
	known, rest := l.partition(requests, now)
	missing := l.cache.misses(rest)
	switch {
	case len(missing) == 0:
	case !l.ordered && len(known) >= max(minOptimistic, len(missing)) && deferUncached(missing):
		requests, rest = slices.DeleteFunc(requests, isDeferred), slices.DeleteFunc(rest, isDeferred)
		l.engine.prefetched.Add(int64(len(missing)))
		var reading sync.WaitGroup
		reading.Go(func() { l.prefetchInBackground(missing, now) })
		defer reading.Wait()
	case l.prefetch(missing, now):
		known, rest = l.partition(requests, now)
	}
	if len(known) == 0 || (len(rest) > 0 && len(known) < minOptimistic) {
		return requests
	}
	var batches []*appBatch
	err = l.engine.runAttempt(l.writes, known, func(ctx context.Context, conn *pgx.Conn, parts []*appBatch, _ int64) error {
		batches = parts
		return l.optimistic(ctx, conn, parts, now)
	})
	if err != nil {
		l.engine.conflicts.Add(1)
		l.cache.invalidate(batches, pg.SQLState(err) == pg.UniqueViolation)
		return requests
	}
	for _, r := range known {
		if !r.resolved {
			rest = append(rest, r)
		}
	}
	return rest
}

// deferUncached marks cache misses for the next batch; they are prefetched while this one
// commits. A request is deferred at most once.
func deferUncached(requests []*request) bool {
	if slices.ContainsFunc(requests, func(r *request) bool { return r.wasDeferred }) {
		return false
	}
	for _, r := range requests {
		r.deferred, r.wasDeferred = true, true
	}
	return true
}

func isDeferred(r *request) bool { return r.deferred }

// prefetchInBackground fills the cache for the next batch while this one runs. Its
// errors are dropped: the next batch meets and handles them.
func (l *lane) prefetchInBackground(requests []*request, now int64) {
	defer func() {
		if cause := recover(); cause != nil {
			l.engine.log.Error("usage prefetch panicked", "cause", fmt.Sprint(cause))
		}
	}()
	l.prefetch(requests, now)
}

// prefetch reads cache misses without locks and reports whether the cache may have
// grown. It costs no more than the read half of a pessimistic attempt, and keeps the
// batch in one transaction.
func (l *lane) prefetch(requests []*request, now int64) bool {
	err := l.engine.runAttempt(l.engine.reads, requests, func(ctx context.Context, conn *pgx.Conn, batches []*appBatch, _ int64) error {
		return l.readThrough(ctx, conn, batches, now)
	})
	return err == nil // the pessimistic attempt meets and handles the same error
}

// readThrough reads wallets into the cache, in one round trip unless they need keyed
// rows too. Those may be newer than the wallet's version: the version check fails the
// write then.
func (l *lane) readThrough(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	pipe := wire.NewReadPipe(ctx, conn)
	for _, b := range batches {
		if !l.cache.lookupCatalog(b) {
			b.loadCatalog(pipe)
		}
		b.loadWallets(pipe)
	}
	if err := pipe.Run(); err != nil {
		return err
	}
	if err := loadKeyedRows(wire.NewReadPipe(ctx, conn), batches, now); err != nil {
		return err
	}
	for _, b := range batches {
		l.cache.merge(b)
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
	for _, r := range b.requests {
		feature, key := app.features[r.FeatureKey], app.keys[r.KeyID]
		if feature == nil || key == nil {
			return false
		}
		if b.features[r.FeatureKey] == nil {
			copied := *feature // the batch may mark it as used, and the cache is shared
			b.features[r.FeatureKey] = &copied
		}
		b.keys[r.KeyID] = key
	}
	b.epoch, b.clockOffset, b.rules, b.packedBefore = app.epoch, app.clockOffset, app.rules, app.packedBefore
	return true
}

// misses are the requests that a read could make decidable from the cache. Contended
// wallets and events that may be packed are left to the pessimistic path.
func (m *usageCache) misses(requests []*request) (list []*request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range requests {
		app, known := m.apps.Peek(r.Scope.AppID)
		if !isActive(m.duplicateHeavy, r.Scope.AppID) && !isActive(m.contended, walletKey{r.Scope.AppID, r.Identity}) && !(known && mayRepeatPacked(r, app.packedBefore)) {
			list = append(list, r)
		}
	}
	return list
}

// optimistic is one attempt from the cache: decide, then verify versions and write in
// one round trip.
func (l *lane) optimistic(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	pipe := wire.NewPipe(ctx, conn)
	pipe.SendCommand(pg.BeginTx)
	l.cache.lookup(l.engine.server.Load(), batches, func(b *appBatch) {
		b.resolve(now)
		b.decideAccepted(now, l.ordered)
	})
	l.engine.write(pipe, batches, now)
	pipe.SendCommand(pg.CommitTx)
	if err := pipe.Run(); err != nil {
		return err
	}
	for _, b := range batches {
		for _, r := range b.requests {
			r.resolved = r.decision.New
		}
	}
	l.cache.putCommitted(batches)
	l.afterCommit(batches)
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
	for _, r := range unit {
		// The cache may be stale about the key or the feature, and it has no packed events:
		// they are read.
		if r.err != nil || mayRepeatPacked(r, b.packedBefore) {
			resetAll(unit)
			return false
		}
	}
	w := b.wallets[unit[0].Identity]
	if w == nil {
		return false // evicted since partition
	}
	w.state.Now, w.state.Events = b.appTime(now), b.events
	for _, r := range unit {
		if !w.canDecide(r.Usage.Usage) {
			return false // replaced since partition, by a read for another request
		}
	}
	if unit[0].group != nil {
		return b.acceptGroup(w, unit)
	}
	r := unit[0]
	d := metering.Decide(&w.state, r.Usage.Usage)
	if d.Verdict != metering.Accepted || !d.New {
		return false
	}
	if b.needsMarks(w, &d) {
		return false // under locks they are read
	}
	r.decision = d
	b.apply(w, r)
	b.raise(w, &r.decision)
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

// invalidate evicts the state of a failed batch. The pessimistic retry shows which wallets
// had changed and which applications repeat event ids, so that the next batch does not fail
// again.
func (m *usageCache) invalidate(batches []*appBatch, repeated bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.conflicting)
	clear(m.repeating)
	for _, b := range batches {
		m.repeating[b.scope.AppID] = repeated
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
	for _, r := range requests {
		if m.lookupWallet(r, now) != nil && !isActive(m.duplicateHeavy, r.Scope.AppID) {
			known = append(known, r)
		} else {
			rest = append(rest, r)
		}
	}
	return known, rest
}

// lookupWallet returns the cached wallet of a request and fills in its feature. It
// returns nil when the wallet, feature or key is not cached, or a keyed row is missing.
func (m *usageCache) lookupWallet(r *request, now int64) *walletState {
	app, known := m.apps.Get(r.Scope.AppID)
	if !known || app.keys[r.KeyID] == nil || app.features[r.FeatureKey] == nil || mayRepeatPacked(r, app.packedBefore) {
		return nil
	}
	w, known := m.wallets.Get(walletKey{r.Scope.AppID, r.Identity})
	if !known {
		return nil
	}
	r.Feature = &app.features[r.FeatureKey].Feature
	w.state.Now = now + app.clockOffset
	if !w.canDecide(r.Usage.Usage) {
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
		for _, r := range b.requests {
			if w, known := m.wallets.Get(walletKey{b.scope.AppID, r.Identity}); known {
				b.wallets[r.Identity] = w
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
