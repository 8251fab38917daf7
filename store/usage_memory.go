package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
)

// trackFromMemory settles the uses that are accepted by what the node remembers,
// in one round trip, and gives back the others. The transaction compares the
// epoch and every wallet's version, and fails as a whole when one has moved. A
// refusal never comes from memory.
func (u *Engine) trackFromMemory(uses []*pending) (rest []*pending) {
	now, err := u.now() // one for all: what is enough for this moment is not for the next
	if err != nil {
		return uses
	}
	known, rest := u.memory.part(uses, now)
	missing := u.memory.missing(rest)
	switch {
	case len(missing) == 0:
	case len(known) >= max(minFast, len(missing)) && putOff(missing):
		uses, rest = slices.DeleteFunc(uses, isPutOff), slices.DeleteFunc(rest, isPutOff)
		u.ahead.Add(int64(len(missing)))
		var reading sync.WaitGroup
		reading.Go(func() { u.readAhead(missing, now) })
		defer reading.Wait()
	case u.recollect(missing, now):
		known, rest = u.memory.part(uses, now)
	}
	if len(known) == 0 || (len(rest) > 0 && len(known) < minFast) {
		return uses
	}
	var batches []*appBatch
	err = u.inTransaction(u.writes, known, func(ctx context.Context, conn *pgx.Conn, parts []*appBatch, _ int64) error {
		batches = parts
		return u.remembered(ctx, conn, parts, now)
	})
	if err != nil {
		u.conflicts.Add(1)
		u.memory.distrust(batches, sqlState(err))
		return uses
	}
	for _, p := range known {
		if !p.settled {
			rest = append(rest, p)
		}
	}
	return rest
}

// putOff leaves uses to the next batch: they are read while this one is written, so
// the lane never waits for a read alone. None is put off twice.
func putOff(uses []*pending) bool {
	if slices.ContainsFunc(uses, func(p *pending) bool { return p.waited }) {
		return false
	}
	for _, p := range uses {
		p.putOff, p.waited = true, true
	}
	return true
}

func isPutOff(p *pending) bool { return p.putOff }

// readAhead recollects for the next batch, beside this one. Whatever goes wrong
// here, that batch will meet it again, and deal with it.
func (u *Engine) readAhead(uses []*pending, now int64) {
	defer func() {
		if cause := recover(); cause != nil {
			u.log.Error("reading ahead panicked", "cause", fmt.Sprint(cause))
		}
	}()
	u.recollect(uses, now)
}

// recollect reads what memory lacks for these uses, without locks, and reports
// whether it may have learnt something. It costs no more than the first half of a
// try under locks, and the batch stays one transaction.
func (u *Engine) recollect(uses []*pending, now int64) bool {
	err := u.inTransaction(u.reads, uses, func(ctx context.Context, conn *pgx.Conn, batches []*appBatch, _ int64) error {
		return u.study(ctx, conn, batches, now)
	})
	return err == nil // otherwise the locks will meet the same error, and deal with it
}

// study reads wallets into memory, in one round trip unless they need keyed facts
// too. Those may be of a later moment than the wallet's version: whoever writes by
// that version is told then.
func (u *Engine) study(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	p := newReading(ctx, conn)
	for _, b := range batches {
		if !u.memory.recallCatalog(b) {
			b.loadCatalog(p)
		}
		b.loadWallets(p)
	}
	if err := p.run(); err != nil {
		return err
	}
	if err := loadRest(newReading(ctx, conn), batches, now); err != nil {
		return err
	}
	for _, b := range batches {
		u.memory.learn(b)
	}
	return nil
}

// recallCatalog fills in the features and keys that the uses name, or reports that
// some are not remembered. Whether they still hold is for the transaction to say.
func (m *memory) recallCatalog(b *appBatch) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	app, known := m.apps.Get(b.scope.AppID)
	if !known {
		return false
	}
	for _, p := range b.uses {
		feature, key := app.features[p.FeatureKey], app.keys[p.KeyID]
		if feature == nil || key == nil {
			return false
		}
		if b.features[p.FeatureKey] == nil {
			copied := *feature // the batch may mark it as used, and memory is shared
			b.features[p.FeatureKey] = &copied
		}
		b.keys[p.KeyID] = key
	}
	b.epoch, b.ahead = app.epoch, app.ahead
	return true
}

// missing are the uses that reading could let memory decide. Wallets that other
// nodes write too are left to the locks.
func (m *memory) missing(uses []*pending) (list []*pending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range uses {
		if !isFresh(m.repeating, p.Scope.AppID) && !isFresh(m.contended, walletAddress{p.Scope.AppID, p.Identity}) {
			list = append(list, p)
		}
	}
	return list
}

// remembered is one try from memory: decide, then check and write in one trip.
func (u *Engine) remembered(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	p := newPipe(ctx, conn)
	p.frame(beginning)
	u.memory.recall(batches, func(b *appBatch) {
		b.admit(now)
		b.decideAccepted(now)
	})
	u.apply(p, batches, now)
	p.frame(ending)
	if err := p.run(); err != nil {
		return err
	}
	for _, b := range batches {
		for _, use := range b.uses {
			use.settled = use.decision.New
		}
	}
	u.memory.settle(batches)
	return nil
}

// decideAccepted takes the uses that memory accepts and leaves the others as if
// they had not been asked.
func (b *appBatch) decideAccepted(now int64) {
	for _, use := range b.uses {
		if use.err != nil { // the key may work again, the feature may be there: look
			use.reset()
			continue
		}
		w := b.wallets[use.Identity]
		if w == nil {
			continue // forgotten since memory was asked for it
		}
		w.state.Now, w.state.Events = b.at(now), b.events
		if !w.knows(use.Usage.Usage) {
			continue // read again since then, for another use
		}
		d := metering.Decide(&w.state, use.Usage.Usage)
		if d.Verdict != metering.Accepted || !d.New {
			continue
		}
		use.decision = d
		b.take(w, use)
	}
}

const (
	// A wallet on which another node was faster is locked for this long.
	contention = 3 * time.Second
	// An application that repeats event ids has them looked up first for this long.
	repetition = 100 * time.Millisecond
)

// distrust forgets what failed, and notes why, so that the next batch does not
// fail again. The same uses now run under locks; that will show which wallets had
// moved.
func (m *memory) distrust(batches []*appBatch, state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.suspects)
	for _, b := range batches {
		if state == uniqueViolation {
			m.repeating.Add(b.scope.AppID, time.Now().Add(repetition))
		}
		m.apps.Remove(b.scope.AppID)
		for identity, w := range b.wallets {
			address := walletAddress{b.scope.AppID, identity}
			m.suspects[address] = w.version
			m.wallets.Remove(address)
		}
	}
}

// drop forgets everything.
func (m *memory) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apps.Purge()
	m.wallets.Purge()
}

// changed drops a wallet that something else than a use has changed on this node.
// A batch that has it in hand will find out by its version.
func (m *memory) changed(app ids.ID, identity string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wallets.Remove(walletAddress{app, identity})
}

// part tells the uses that can be decided from memory from the others.
func (m *memory) part(uses []*pending, now int64) (known, rest []*pending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range uses {
		if m.find(p, now) != nil && !isFresh(m.repeating, p.Scope.AppID) {
			known = append(known, p)
		} else {
			rest = append(rest, p)
		}
	}
	return known, rest
}

// find gives the wallet of a use and fills in its feature, if both and the key are
// remembered and nothing else has to be looked up.
func (m *memory) find(p *pending, now int64) *walletState {
	app, known := m.apps.Get(p.Scope.AppID)
	if !known || app.keys[p.KeyID] == nil || app.features[p.FeatureKey] == nil {
		return nil
	}
	w, known := m.wallets.Get(walletAddress{p.Scope.AppID, p.Identity})
	if !known {
		return nil
	}
	p.Feature = &app.features[p.FeatureKey].Feature
	w.state.Now = now + app.ahead
	if !w.knows(p.Usage.Usage) {
		return nil
	}
	return w
}

// recall fills batches with what is remembered for their uses, and has them
// decided. From then until settle or distrust the wallets they touch are theirs.
func (m *memory) recall(batches []*appBatch, decide func(*appBatch)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range batches {
		app, known := m.apps.Get(b.scope.AppID)
		if !known {
			continue
		}
		b.epoch, b.ahead, b.features, b.keys = app.epoch, app.ahead, app.features, app.keys
		for _, p := range b.uses {
			if w, known := m.wallets.Get(walletAddress{b.scope.AppID, p.Identity}); known {
				b.wallets[p.Identity] = w
				b.byID[w.state.Wallet.ID] = w
			}
		}
		decide(b)
	}
}

// settle keeps what a batch from memory has committed.
func (m *memory) settle(batches []*appBatch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range batches {
		b.committed()
		for identity, w := range b.wallets {
			m.keepWallet(b.scope.AppID, identity, w)
		}
	}
}
