package store

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

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

// optimistic is one attempt from the cache: decide, then verify versions and write in
// one round trip.
func (l *lane) optimistic(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	pipe := wire.NewPipe(ctx, conn)
	pipe.SendCommand(pg.BeginTx)
	l.cache.decideCached(l.engine.history.Load(), batches, func(b *appBatch) {
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
