package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/tenancy"
)

var readVersions = declare("read versions", `
	SELECT t.identity, w.version
	FROM unnest($2::text[]) AS t (identity) CROSS JOIN LATERAL (
		SELECT version FROM wallets WHERE app_id = $1 AND identity = t.identity
		LIMIT 1) w`)

// check settles checks: the same reading and the same decision as for uses,
// without locks and without a trace.
func (u *Engine) check(uses []*pending) {
	u.untilSettled(u.reads, u.checkFromMemory(u.dropExpired(uses)), u.snapshot)
}

// snapshot is one try at answering checks by reading everything, as of one moment.
func (u *Engine) snapshot(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	p := newPipe(ctx, conn)
	p.frame(beginningSnapshot)
	for _, b := range batches {
		b.loadCatalog(p)
		b.loadWallets(p)
	}
	if err := p.run(); err != nil {
		return err
	}
	if err := u.checkClock(batches, now); err != nil {
		return err
	}
	if err := loadRest(newPipe(ctx, conn), batches, now); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, ending.sql); err != nil {
		return err
	}
	for _, b := range batches {
		b.ask(now)
		u.memory.learn(b)
	}
	return nil
}

// ask decides every use by itself, as if it were the only one.
func (b *appBatch) ask(now int64) {
	for _, p := range b.uses {
		if p.settled {
			continue
		}
		state := &metering.State{Now: b.at(now)}
		if w := b.wallets[p.Identity]; w != nil {
			state = &w.state
		}
		p.decision = metering.Decide(state, p.Usage.Usage)
	}
}

// glimpse is a copy of what memory holds for one check.
type glimpse struct {
	use     *pending
	state   metering.State
	epoch   int64
	version int64
}

// checkFromMemory answers the checks that can be answered from memory, once the
// stored versions are seen to be the remembered ones, and gives back the others.
func (u *Engine) checkFromMemory(uses []*pending) (rest []*pending) {
	now, err := u.now()
	if err != nil {
		return uses
	}
	glimpses, rest := u.memory.glimpses(uses, now)
	if len(glimpses) == 0 {
		return uses
	}
	known := make([]*pending, len(glimpses))
	for i, g := range glimpses {
		known[i] = g.use
	}
	var seen sighting
	err = u.inTransaction(u.reads, known, func(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) (err error) {
		if seen, err = sight(ctx, conn, batches); err != nil {
			return err
		}
		return u.checkClock(batches, now)
	})
	for _, g := range glimpses {
		if err == nil && seen.confirms(g) {
			g.use.decision = metering.Decide(&g.state, g.use.Usage.Usage)
			g.use.settled = true
		} else {
			rest = append(rest, g.use)
		}
	}
	return rest
}

// glimpses copies what is remembered for each check. A wallet that a batch is
// changing at this moment, and a key that may be refused, are left out.
func (m *memory) glimpses(uses []*pending, now int64) (list []glimpse, rest []*pending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range uses {
		w := m.find(p, now)
		if w == nil || w.touched || !m.admits(p, now) {
			rest = append(rest, p)
			continue
		}
		app, _ := m.apps.Peek(p.Scope.AppID)
		feature := *p.Feature // the lane of uses may mark it as used meanwhile
		p.Feature = &feature
		list = append(list, glimpse{use: p, state: w.copyFor(p.Usage.Usage), epoch: app.epoch, version: w.version})
	}
	return list, rest
}

func (m *memory) admits(p *pending, now int64) bool {
	app, _ := m.apps.Peek(p.Scope.AppID)
	key := app.keys[p.KeyID]
	return key.Usable(now) == nil && key.Permissions.Has(tenancy.EventsIngest)
}

// copyFor copies what one use needs.
func (w *walletState) copyFor(use metering.Usage) metering.State {
	state := w.state
	state.Wallet.Balances = slices.Clone(state.Wallet.Balances)
	state.Events, state.Used, state.Billed = nil, nil, nil
	needed := w.state.Keys(use)
	if used, known := w.state.Used[needed.Counter]; known {
		state.Used = map[metering.CounterKey]int64{needed.Counter: used}
	}
	if transaction, billed := w.state.Billed[needed.Billed]; billed {
		state.Billed = map[metering.BilledKey]ids.ID{needed.Billed: transaction}
	}
	return state
}

// sighting is which versions are stored.
type sighting struct {
	epochs   map[ids.ID]int64
	versions map[walletAddress]int64
}

// sight reads the epochs and versions in one round trip. The epoch comes first: a
// price that changes in between makes no difference to a wallet.
func sight(ctx context.Context, conn *pgx.Conn, batches []*appBatch) (sighting, error) {
	seen := sighting{epochs: make(map[ids.ID]int64), versions: make(map[walletAddress]int64)}
	p := newReading(ctx, conn)
	for _, b := range batches {
		app := b.scope.AppID
		identities := textColumn
		for _, identity := range b.identities() {
			identities.text(identity)
		}
		p.send(selectEpoch, func(r *row) { seen.epochs[app], _, b.databaseTime = r.int8(), r.int8(), r.int8() }, app[:])
		p.send(readVersions, func(r *row) {
			identity := r.text()
			seen.versions[walletAddress{app, identity}] = r.int8()
		}, app[:], identities.encode(nil))
	}
	return seen, p.run()
}

func (s sighting) confirms(g glimpse) bool {
	version, found := s.versions[walletAddress{g.use.Scope.AppID, g.use.Identity}]
	return found && version == g.version && s.epochs[g.use.Scope.AppID] == g.epoch
}
