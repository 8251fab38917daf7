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
func (l *lane) check(requests []*request) {
	l.engine.runUntilResolved(l.engine.reads, l.checkOptimistic(l.engine.dropExpired(requests)), l.checkSnapshot)
}

// checkSnapshot is one attempt at answering checks by reading everything in one
// snapshot.
func (l *lane) checkSnapshot(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) error {
	pipe := wire.NewPipe(ctx, conn)
	pipe.SendCommand(pg.BeginSnapshot)
	for _, b := range batches {
		b.loadCatalog(pipe)
		b.loadWallets(pipe)
	}
	if err := pipe.Run(); err != nil {
		return err
	}
	if err := l.engine.checkClock(batches, now); err != nil {
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
		l.cache.merge(b)
	}
	return nil
}

// decideEach decides every request independently of the others.
func (b *appBatch) decideEach(now int64) {
	for _, r := range b.requests {
		if r.resolved {
			continue
		}
		state := &metering.State{Now: b.appTime(now)}
		if w := b.wallets[r.Identity]; w != nil {
			state = &w.state
		}
		r.decision = metering.Decide(state, r.Usage.Usage)
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
func (l *lane) checkOptimistic(requests []*request) (rest []*request) {
	now, err := l.engine.now()
	if err != nil {
		return requests
	}
	cached, rest := l.cache.cachedStates(requests, now)
	if len(cached) == 0 {
		return requests
	}
	known := make([]*request, len(cached))
	for i, c := range cached {
		known[i] = c.request
	}
	var seen storedVersions
	err = l.engine.runAttempt(l.engine.reads, known, func(ctx context.Context, conn *pgx.Conn, batches []*appBatch, now int64) (err error) {
		if seen, err = readVersions(ctx, conn, batches); err != nil {
			return err
		}
		return l.engine.checkClock(batches, now)
	})
	for _, c := range cached {
		if err == nil && seen.matches(c) {
			c.request.decision = metering.Decide(&c.state, c.request.Usage.Usage)
			c.request.resolved = true
		} else {
			rest = append(rest, c.request)
		}
	}
	return rest
}

// cachedStates copies the cached state for each check. A wallet that a running batch
// has changed, and a key that may be rejected, are left out.
func (m *usageCache) cachedStates(requests []*request, now int64) (list []cachedState, rest []*request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range requests {
		w := m.lookupWallet(r, now)
		if w == nil || w.touched || !m.authorizes(r, now) {
			rest = append(rest, r)
			continue
		}
		app, _ := m.apps.Peek(r.Scope.AppID)
		feature := *r.Feature // a batch of tracks may mark it as used meanwhile
		r.Feature = &feature
		list = append(list, cachedState{request: r, state: w.copyFor(r.Usage.Usage), epoch: app.epoch, wallet: walletVersion{w.state.Wallet.ID, w.version}})
	}
	return list, rest
}

func (m *usageCache) authorizes(r *request, now int64) bool {
	app, _ := m.apps.Peek(r.Scope.AppID)
	key := app.keys[r.KeyID]
	return key.Usable(now) == nil && key.Permissions.Has(tenancy.EventsIngest)
}

// copyFor copies the state that one request needs.
func (w *walletState) copyFor(usage metering.Usage) metering.State {
	state := w.state
	state.Wallet.Balances = slices.Clone(state.Wallet.Balances)
	state.Events, state.Used, state.Billed = nil, nil, nil
	needed := w.state.Keys(usage)
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
	pipe := wire.NewReadPipe(ctx, conn)
	for _, b := range batches {
		app := b.scope.AppID
		pipe.Send(pg.SelectEpoch, func(row *wire.Row) { seen.epochs[app], _, b.databaseTime = row.Int8(), row.Int8(), row.Int8() }, app[:])
		pipe.Send(selectVersions, func(row *wire.Row) {
			identity := row.Text()
			seen.wallets[walletKey{app, identity}] = walletVersion{row.ID(), row.Int8()}
		}, app[:], b.encodedIdentities())
	}
	return seen, pipe.Run()
}

func (s storedVersions) matches(c cachedState) bool {
	wallet, found := s.wallets[walletKey{c.request.Scope.AppID, c.request.Identity}]
	return found && wallet == c.wallet && s.epochs[c.request.Scope.AppID] == c.epoch
}
