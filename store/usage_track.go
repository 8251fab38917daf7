package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

const (
	// The upper bound of the random backoff before a retry, per earlier attempt.
	batchBackoff    = 5 * time.Millisecond
	maxBatchBackoff = 100 * time.Millisecond
	// After this many unique violations a permanent error is assumed, not a race with another node.
	maxUniqueViolations = 8
	// Fewer requests than this are not worth a transaction of their own.
	minOptimistic = 8
	// The timeout of one attempt.
	batchTimeout = 8 * time.Second
)

// track resolves requests: from the cache where possible, the others under locks.
func (l *lane) track(requests []*request) {
	defer func() {
		if cause := recover(); cause != nil {
			l.cache.purge() // it may hold uncommitted state
			panic(cause)
		}
	}()
	rest := l.trackOptimistic(l.engine.dropExpired(expandGroups(requests)))
	if len(rest) > 0 {
		answerOthers(requests, rest) // what is recorded does not wait for the locks of others
	}
	l.engine.runUntilResolved(l.writes, rest, l.pessimistic)
}

// errWalletMissing is for a request that is accepted, or no longer, only because something
// changed between the two reads of one attempt. The next attempt creates its wallet, or none.
var errWalletMissing = errors.New("store: an accepted request has no wallet")

// attempt is one attempt at a batch, in a transaction of its own.
type attempt func(context.Context, *pgx.Conn, []*appBatch, int64) error

// runUntilResolved retries a batch until Postgres commits it or the requests expire. A
// batch that fails permanently is halved until the failing request is alone.
//
// Every attempt uses the transaction ids of the first. When the reply to a COMMIT is
// lost, the next attempt finds the committed events and recognizes them as its own.
func (e *Engine) runUntilResolved(on *hotPool, requests []*request, try attempt) {
	violations, reconnected := 0, false
	for tries := 1; len(requests) > 0; tries++ {
		if requests = e.dropExpired(requests); len(requests) == 0 {
			return
		}
		err := e.runAttempt(on, requests, try)
		if err == nil {
			return
		}
		if isClockError(err) {
			if err := e.awaitClock(requests); err != nil {
				e.log.Warn("usage rejected, database clock unknown", "requests", len(requests), "cause", err)
				for _, r := range requests {
					r.fail(err)
				}
				return
			}
			e.retries.Add(1)
			e.log.Warn("usage batch retried, clock differs from the database", "requests", len(requests), "tries", tries)
			if tries > 1 {
				backOff(tries) // they still differ after a new measurement
			}
			continue
		}
		if pg.SQLState(err) == pg.UniqueViolation {
			violations++
		}
		if isUnsupported(err) && !reconnected { // it may be an outdated prepared statement
			reconnected = true
			e.retries.Add(1)
			e.log.Warn("usage batch retried on another connection", "requests", len(requests), "cause", err)
			continue
		}
		if !isDeterministic(err) || (pg.SQLState(err) == pg.UniqueViolation && violations < maxUniqueViolations) {
			e.retries.Add(1)
			e.log.Warn("usage batch retried", "requests", len(requests), "tries", tries, "cause", err)
			backOff(tries)
			continue
		}
		middle := splitPoint(requests)
		if middle == 0 {
			e.log.Error("usage rejected by the database", "app", requests[0].Scope.AppID.Format(ids.Application), "cause", err)
			for _, r := range requests {
				r.fail(err)
			}
			return
		}
		e.splits.Add(1)
		e.log.Error("usage batch split", "requests", len(requests), "cause", err)
		e.runUntilResolved(on, requests[:middle], try)
		e.runUntilResolved(on, requests[middle:], try)
		return
	}
}

// backOff sleeps before another attempt, longer after each. The time is random, so that
// two nodes in conflict do not collide again.
func backOff(tries int) {
	time.Sleep(rand.N(min(batchBackoff*time.Duration(tries), maxBatchBackoff)))
}

// dropExpired fails requests whose deadline has passed or whose id is too old, and drops
// abandoned ones. A request that was never attempted was certainly not recorded; the
// others may have been committed.
func (e *Engine) dropExpired(requests []*request) []*request {
	now, oldest := time.Now(), e.oldestID()
	kept := requests[:0:0]
	for _, r := range requests {
		first := r
		if r.group != nil {
			first = r.group.members[0] // a group expires as a whole
		}
		switch {
		case !r.claim():
		case now.Before(r.deadline) && (r.TransactionID.IsZero() || slices.Compare(first.TransactionID[:], oldest[:]) >= 0):
			kept = append(kept, r)
		case r.lastErr == nil:
			r.fail(errOverloaded)
		default:
			r.fail(fmt.Errorf("store: out of time: %w", r.lastErr))
		}
	}
	return kept
}

// attemptDeadline is when an attempt ends: batchTimeout from now, or the latest
// deadline of its requests. The caller of a request with an earlier deadline returns by
// itself.
func (e *Engine) attemptDeadline(requests []*request) time.Time {
	var last time.Time
	for _, r := range requests {
		if r.deadline.After(last) {
			last = r.deadline
		}
	}
	if limit := time.Now().Add(e.batchTimeout); limit.Before(last) {
		return limit
	}
	return last
}

// runAttempt runs one attempt at a batch, unless the clock cannot be trusted. It does not
// begin or commit: each attempt sends BEGIN and COMMIT itself.
func (e *Engine) runAttempt(on *hotPool, requests []*request, try attempt) (err error) {
	defer func() {
		for _, r := range requests {
			r.lastErr = err
		}
	}()
	ctx, cancel := context.WithDeadline(context.Background(), e.attemptDeadline(requests))
	defer cancel()
	conn, err := on.acquire(ctx)
	if err != nil {
		return err
	}
	defer pg.Release(conn)
	now, err := e.now()
	if err != nil {
		return err
	}
	resetAll(requests)
	err = try(ctx, conn.Conn(), groupByApp(requests), now)
	if err != nil {
		pg.Rollback(ctx, conn.Conn())
	}
	if isUnsupported(err) {
		_ = conn.Conn().Close(ctx) // its prepared statements go with it
	}
	return err
}

// pessimistic is one attempt under locks: read, decide, write.
func (l *lane) pessimistic(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	if err := l.loadLocked(ctx, conn, batches, now); err != nil {
		return err
	}
	for _, b := range batches {
		b.decide(now)
	}
	if prepareMissingWallets(batches) {
		// A first request that costs nothing needs a wallet: it is created, and
		// everything is read again.
		pg.Rollback(ctx, conn)
		if err := l.loadLocked(ctx, conn, batches, now); err != nil {
			return err
		}
		for _, b := range batches {
			b.decide(now)
			if len(b.missingWallets) > 0 || slices.ContainsFunc(b.ensured, func(made string) bool { return b.wallets[made] == nil || b.wallets[made].seq == 0 }) {
				return errWalletMissing
			}
		}
	}
	pipe := wire.NewPipe(ctx, conn)
	l.engine.write(pipe, batches, now)
	pipe.SendCommand(pg.CommitTx)
	if err := pipe.Run(); err != nil {
		return err
	}
	for _, b := range batches {
		b.markCommitted()
		l.cache.put(b)
	}
	l.afterCommit(batches)
	return nil
}

// loadLocked opens the transaction, locks every wallet and reads what the requests
// need.
func (l *lane) loadLocked(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	pipe := wire.NewPipe(ctx, conn)
	pipe.SendCommand(pg.BeginTx)
	for _, b := range batches {
		b.ensureMissingWallets(pipe, now)
	}
	epochs := make([]int64, len(batches))
	for i, b := range batches {
		b.lockAndLoad(pipe)
		if l.cache.lookupCatalog(b) {
			pipe.Send(pg.SelectEpoch, func(row *wire.Row) { epochs[i], _, b.databaseTime = row.Int8(), row.Int8(), row.Int8() }, b.scope.AppID[:])
		} else {
			b.loadCatalog(pipe)
			epochs[i] = -1
		}
	}
	if err := pipe.Run(); err != nil {
		return err
	}
	if err := l.engine.checkClock(batches, now); err != nil {
		return err
	}
	if err := reloadCatalogs(ctx, conn, batches, epochs); err != nil {
		return err
	}
	if err := loadPacked(ctx, conn, batches); err != nil {
		return err
	}
	return loadKeyedRows(wire.NewPipe(ctx, conn), batches, now)
}

// reloadCatalogs reads the catalogs whose stored epoch differs from the cached one. An
// epoch of -1 marks a catalog that was just read.
func reloadCatalogs(ctx context.Context, conn *pgx.Conn, batches []*appBatch, epochs []int64) error {
	pipe := wire.NewPipe(ctx, conn)
	for i, b := range batches {
		if epochs[i] >= 0 && epochs[i] != b.epoch {
			clear(b.features)
			clear(b.keys)
			b.loadCatalog(pipe)
		}
	}
	return pipe.Run()
}

// loadKeyedRows reads what depends on wallets and subscriptions.
func loadKeyedRows(pipe *wire.Pipe, batches []*appBatch, now int64) error {
	for _, b := range batches {
		b.resolve(now)
		for _, w := range b.wallets {
			w.state.Now = b.appTime(now)
		}
		b.sendKeyedReads(pipe)
	}
	return pipe.Run()
}

// prepareMissingWallets resets the batches for a second attempt that creates wallets
// for accepted requests without one. It returns false when there are none.
func prepareMissingWallets(batches []*appBatch) bool {
	if !slices.ContainsFunc(batches, func(b *appBatch) bool { return len(b.missingWallets) > 0 }) {
		return false
	}
	for _, b := range batches {
		fresh := newAppBatch(b.scope)
		fresh.requests, fresh.missingWallets, fresh.clockOffset = b.requests, b.missingWallets, b.clockOffset
		resetAll(fresh.requests)
		*b = *fresh
	}
	return true
}

func (b *appBatch) ensureMissingWallets(pipe *wire.Pipe, now int64) {
	if len(b.missingWallets) == 0 {
		return
	}
	made, identities := wire.UUIDColumn, wire.TextColumn
	for _, identity := range slices.Compact(slices.Sorted(slices.Values(b.missingWallets))) {
		made.ID(ids.New())
		identities.Text(identity)
	}
	b.ensured, b.missingWallets = b.missingWallets, nil
	pipe.Send(ledger.EnsureWallets, nil, b.scope.AppID[:], made.Encode(nil), identities.Encode(nil), int8Param(b.appTime(now)))
}

// isDeterministic reports an error that the same statements would meet again: bad data,
// a violated constraint, a missing privilege. A division by zero is not one: it says
// that the epoch or a feature has changed since it was read, or that the decision is too
// old.
func isDeterministic(err error) bool {
	state := pg.SQLState(err)
	if state == pg.DivisionByZero {
		return false
	}
	return strings.HasPrefix(state, "22") || strings.HasPrefix(state, "23") || strings.HasPrefix(state, "42") || isUnsupported(err)
}

// isUnsupported reports a statement that Postgres, or Citus behind it, cannot run.
func isUnsupported(err error) bool { return strings.HasPrefix(pg.SQLState(err), "0A") }
