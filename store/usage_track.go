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
)

const (
	// A batch that Postgres gave up is tried again after up to this much for each
	// earlier try.
	batchPause    = 5 * time.Millisecond
	maxBatchPause = 100 * time.Millisecond
	// So many tries may fail on a taken key before the batch itself is suspected.
	maxTaken = 8
	// Fewer uses than this are not worth a transaction of their own.
	minFast = 8
	// One round trip of a batch may take so long.
	batchTimeout = 8 * time.Second
)

// track settles uses: as many as can be from memory, the others under locks.
func (u *Engine) track(uses []*pending) {
	defer func() {
		if cause := recover(); cause != nil {
			u.memory.drop() // it may hold what was never committed
			panic(cause)
		}
	}()
	u.untilSettled(u.writes, u.trackFromMemory(u.dropExpired(uses)), u.locked)
}

// errWalletAbsent is for a use that is accepted only since the catalog changed
// between the two looks of one try. The next try makes its wallet too.
var errWalletAbsent = errors.New("store: a use is accepted that has no wallet yet")

// attempt is one try at a batch, in a transaction of its own.
type attempt func(context.Context, *pgx.Conn, []*appBatch, int64) error

// untilSettled tries a batch until Postgres takes it or the uses run out of time.
// One that Postgres will never take is halved until the culprit stands alone.
//
// Every try has the ids of the first. So when the reply to a COMMIT was lost, the
// next try finds what was committed, and knows it for its own.
func (u *Engine) untilSettled(on *hotPool, uses []*pending, try attempt) {
	taken := 0
	for tries := 1; len(uses) > 0; tries++ {
		if uses = u.dropExpired(uses); len(uses) == 0 {
			return
		}
		err := u.inTransaction(on, uses, try)
		if err == nil {
			return
		}
		if isUntimed(err) {
			if err := u.awaitClock(uses); err != nil {
				u.log.Warn("usage refused, the database's time is not known", "uses", len(uses), "cause", err)
				for _, p := range uses {
					p.refuse(err)
				}
				return
			}
			u.log.Warn("usage batch runs again, its time was not the database's", "uses", len(uses), "tries", tries)
			if tries > 1 {
				pause(tries) // the clock was measured again, and they still differ
			}
			continue
		}
		if sqlState(err) == uniqueViolation {
			taken++
		}
		if !isDeterministic(err) || (sqlState(err) == uniqueViolation && taken < maxTaken) {
			u.log.Warn("usage batch runs again", "uses", len(uses), "tries", tries, "cause", err)
			pause(tries)
			continue
		}
		if len(uses) == 1 {
			u.log.Error("usage refused by the database", "app", uses[0].Scope.AppID.Format(ids.Application), "cause", err)
			uses[0].refuse(err)
			return
		}
		u.splits.Add(1)
		u.log.Error("usage batch is split", "uses", len(uses), "cause", err)
		u.untilSettled(on, uses[:len(uses)/2], try)
		u.untilSettled(on, uses[len(uses)/2:], try)
		return
	}
}

// pause waits before another try, longer after each and never the same: two nodes
// that met once should not meet again.
func pause(tries int) {
	time.Sleep(rand.N(min(batchPause*time.Duration(tries), maxBatchPause)))
}

// dropExpired answers uses whose time is over, and drops those that their callers
// have given up. Nothing was done with those that were never tried; the others may
// have been committed.
func (u *Engine) dropExpired(uses []*pending) []*pending {
	now := time.Now()
	kept := uses[:0:0]
	for _, p := range uses {
		switch {
		case !p.takeOver():
		case now.Before(p.deadline):
			kept = append(kept, p)
		case p.failure == nil:
			p.refuse(errOverloaded)
		default:
			p.refuse(fmt.Errorf("store: out of time: %w", p.failure))
		}
	}
	return kept
}

// tryDeadline is when a try of the batch ends: no later than the last of its uses. A
// use whose deadline is earlier is answered then by its caller.
func (u *Engine) tryDeadline(uses []*pending) time.Time {
	var last time.Time
	for _, p := range uses {
		if p.deadline.After(last) {
			last = p.deadline
		}
	}
	if limit := time.Now().Add(u.batchTimeout); limit.Before(last) {
		return limit
	}
	return last
}

// inTransaction runs one try of a batch on a connection of the hot path. Without a
// clock that can be trusted nothing is tried.
func (u *Engine) inTransaction(on *hotPool, uses []*pending, try attempt) (err error) {
	defer func() {
		for _, p := range uses {
			p.failure = err
		}
	}()
	ctx, cancel := context.WithDeadline(context.Background(), u.tryDeadline(uses))
	defer cancel()
	conn, err := on.acquire(ctx)
	if err != nil {
		return err
	}
	defer release(conn)
	now, err := u.now()
	if err != nil {
		return err
	}
	for _, p := range uses {
		p.reset()
	}
	err = try(ctx, conn.Conn(), byApplication(uses), now)
	if err != nil {
		rollback(ctx, conn.Conn())
	}
	return err
}

// locked is one try under locks: read, decide, write.
func (u *Engine) locked(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	if err := u.loadLocked(ctx, conn, batches, now); err != nil {
		return err
	}
	for _, b := range batches {
		b.decide(now)
	}
	if makeWallets(batches) {
		// Someone's first use costs nothing. Their wallet is made first, and
		// everything is read once more.
		rollback(ctx, conn)
		if err := u.loadLocked(ctx, conn, batches, now); err != nil {
			return err
		}
		for _, b := range batches {
			b.decide(now)
			if len(b.absent) > 0 {
				return errWalletAbsent
			}
		}
	}
	p := newPipe(ctx, conn)
	u.apply(p, batches, now)
	p.frame(ending)
	if err := p.run(); err != nil {
		return err
	}
	for _, b := range batches {
		b.committed()
		u.memory.keep(b)
	}
	return nil
}

// loadLocked opens the transaction, locks every wallet and reads what the uses need.
func (u *Engine) loadLocked(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	p := newPipe(ctx, conn)
	p.frame(beginning)
	for _, b := range batches {
		b.ensureAbsent(p, now)
	}
	epochs := make([]int64, len(batches))
	for i, b := range batches {
		b.lockAndLoad(p)
		if u.memory.recallCatalog(b) {
			p.send(selectEpoch, func(r *row) { epochs[i], _, b.databaseTime = r.int8(), r.int8(), r.int8() }, b.scope.AppID[:])
		} else {
			b.loadCatalog(p)
			epochs[i] = -1
		}
	}
	if err := p.run(); err != nil {
		return err
	}
	if err := u.checkClock(batches, now); err != nil {
		return err
	}
	if err := reloadCatalogs(ctx, conn, batches, epochs); err != nil {
		return err
	}
	return loadRest(newPipe(ctx, conn), batches, now)
}

// reloadCatalogs reads the features and keys of applications whose epoch is no
// longer the one that memory had them by. None was read, and none is old, at -1.
func reloadCatalogs(ctx context.Context, conn *pgx.Conn, batches []*appBatch, epochs []int64) error {
	p := newPipe(ctx, conn)
	for i, b := range batches {
		if epochs[i] >= 0 && epochs[i] != b.epoch {
			clear(b.features)
			clear(b.keys)
			b.loadCatalog(p)
		}
	}
	return p.run()
}

// loadRest reads what only shows once wallets and subscriptions are known.
func loadRest(p *pipe, batches []*appBatch, now int64) error {
	for _, b := range batches {
		b.admit(now)
		for _, w := range b.wallets {
			w.state.Now = b.at(now)
		}
		b.loadKeyed(p)
	}
	return p.run()
}

// makeWallets prepares a second try for uses that are accepted and have no wallet
// yet, and reports whether there are any.
func makeWallets(batches []*appBatch) bool {
	again := false
	for _, b := range batches {
		again = again || len(b.absent) > 0
	}
	if !again {
		return false
	}
	for _, b := range batches {
		fresh := newAppBatch(b.scope)
		fresh.uses, fresh.absent, fresh.ahead = b.uses, b.absent, b.ahead
		for _, u := range fresh.uses {
			u.reset()
		}
		*b = *fresh
	}
	return true
}

func (b *appBatch) ensureAbsent(p *pipe, now int64) {
	if len(b.absent) == 0 {
		return
	}
	made, identities := uuidColumn, textColumn
	for _, identity := range slices.Compact(slices.Sorted(slices.Values(b.absent))) {
		made.id(ids.New())
		identities.text(identity)
	}
	b.absent = nil
	p.send(ensureWallets, nil, b.scope.AppID[:], made.encode(nil), identities.encode(nil), int8Param(b.at(now)))
}

// isDeterministic reports an error that the same statements will meet again: bad
// data, a violated rule, a missing right. A division by zero is none: it says that
// the epoch has moved since it was read.
func isDeterministic(err error) bool {
	state := sqlState(err)
	if state == divisionByZero {
		return false
	}
	return strings.HasPrefix(state, "22") || strings.HasPrefix(state, "23") || strings.HasPrefix(state, "42")
}
