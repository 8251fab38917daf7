package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
	"purser/tenancy"
)

var selectVersions = pg.Declare("read versions", `
	SELECT t.identity, w.id, w.version
	FROM unnest($2::text[]) AS t (identity) CROSS JOIN LATERAL (
		SELECT id, version FROM wallets WHERE app_id = $1 AND identity = t.identity
		LIMIT 1) w`)

// check resolves checks: the same reads and decisions as track, without locks or
// writes.
func (u *lane) check(requests []*request) {
	u.runUntilResolved(u.reads, u.checkOptimistic(u.dropExpired(requests)), u.checkSnapshot)
}

// checkSnapshot is one attempt at answering checks by reading everything in one
// snapshot.
func (u *lane) checkSnapshot(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	p := wire.NewPipe(ctx, conn)
	p.SendCommand(pg.BeginSnapshot)
	for _, b := range batches {
		b.loadCatalog(p)
		b.loadWallets(p)
	}
	if err := p.Run(); err != nil {
		return err
	}
	if err := u.checkClock(batches, now); err != nil {
		return err
	}
	if err := loadKeyedRows(wire.NewPipe(ctx, conn), batches, now); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, pg.CommitTx.SQL); err != nil {
		return err
	}
	for _, b := range batches {
		b.decideEach(now)
		u.cache.merge(b)
	}
	return nil
}

// decideEach decides every request independently of the others.
func (b *appBatch) decideEach(now int64) {
	for _, p := range b.requests {
		if p.resolved {
			continue
		}
		state := &metering.State{Now: b.appTime(now)}
		if w := b.wallets[p.Identity]; w != nil {
			state = &w.state
		}
		p.decision = metering.Decide(state, p.Usage.Usage)
	}
}

// cachedState is a copy of the cached state that one check needs.
type cachedState struct {
	request *request
	state   metering.State
	epoch   int64
	wallet  walletVersion
}

// walletVersion is the state that a wallet has. An identity can get another wallet, which
// may have the same version.
type walletVersion struct {
	id      ids.ID
	version int64
}

// checkOptimistic answers checks from the cache once the stored versions are read to be
// the cached ones, and returns the others.
func (u *lane) checkOptimistic(requests []*request) (rest []*request) {
	now, err := u.now()
	if err != nil {
		return requests
	}
	cached, rest := u.cache.cachedStates(requests, now)
	if len(cached) == 0 {
		return requests
	}
	known := make([]*request, len(cached))
	for i, g := range cached {
		known[i] = g.request
	}
	var seen storedVersions
	err = u.inTransaction(u.reads, known, func(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) (err error) {
		if seen, err = readVersions(ctx, conn, batches); err != nil {
			return err
		}
		return u.checkClock(batches, now)
	})
	for _, g := range cached {
		if err == nil && seen.matches(g) {
			g.request.decision = metering.Decide(&g.state, g.request.Usage.Usage)
			g.request.resolved = true
		} else {
			rest = append(rest, g.request)
		}
	}
	return rest
}

// cachedStates copies the cached state for each check. A wallet that a running batch
// has changed, and a key that may be rejected, are left out.
func (m *usageCache) cachedStates(requests []*request, now int64) (list []cachedState, rest []*request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range requests {
		w := m.lookupWallet(p, now)
		if w == nil || w.touched || !m.authorizes(p, now) {
			rest = append(rest, p)
			continue
		}
		app, _ := m.apps.Peek(p.Scope.AppID)
		feature := *p.Feature // a batch of tracks may mark it as used meanwhile
		p.Feature = &feature
		list = append(list, cachedState{request: p, state: w.copyFor(p.Usage.Usage), epoch: app.epoch, wallet: walletVersion{w.state.Wallet.ID, w.version}})
	}
	return list, rest
}

func (m *usageCache) authorizes(p *request, now int64) bool {
	app, _ := m.apps.Peek(p.Scope.AppID)
	key := app.keys[p.KeyID]
	return key.Usable(now) == nil && key.Permissions.Has(tenancy.EventsIngest)
}

// copyFor copies the state that one request needs.
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

// storedVersions are the epochs and wallet versions in the database.
type storedVersions struct {
	epochs  map[ids.ID]int64
	wallets map[walletKey]walletVersion
}

// readVersions reads the epochs and versions in one round trip. The epoch comes first:
// a price that changes in between does not affect a wallet.
func readVersions(ctx context.Context, conn *pgx.Conn, batches []*appBatch) (storedVersions, error) {
	seen := storedVersions{epochs: make(map[ids.ID]int64), wallets: make(map[walletKey]walletVersion)}
	p := wire.NewReadPipe(ctx, conn)
	for _, b := range batches {
		app := b.scope.AppID
		p.Send(pg.SelectEpoch, func(r *wire.Row) { seen.epochs[app], _, b.databaseTime = r.Int8(), r.Int8(), r.Int8() }, app[:])
		p.Send(selectVersions, func(r *wire.Row) {
			identity := r.Text()
			seen.wallets[walletKey{app, identity}] = walletVersion{r.ID(), r.Int8()}
		}, app[:], b.encodedIdentities())
	}
	return seen, p.Run()
}

func (s storedVersions) matches(g cachedState) bool {
	wallet, found := s.wallets[walletKey{g.request.Scope.AppID, g.request.Identity}]
	return found && wallet == g.wallet && s.epochs[g.request.Scope.AppID] == g.epoch
}
