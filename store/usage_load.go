package store

import (
	"slices"
	"strings"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
	"purser/tenancy"
)

// Reads of the hot path look up their keys one by one, inside LATERAL. A plain join
// that was planned while the table was empty read a whole application per batch.

var (
	// One statement sees one snapshot, so it can read a whole wallet: one row per
	// balance, or one row without a balance.
	readWallets = pg.Declare("read wallets", `
		SELECT `+pg.Prefixed("w", ledger.WalletColumns)+`, b.credit_id, b.amount_nanocredits, b.debt_nanocredits,
			s.id, s.status, s.period_start, s.period_end, s.terms
		FROM unnest($2::text[]) AS t (identity) CROSS JOIN LATERAL (
			SELECT `+ledger.WalletColumns+`
			FROM wallets WHERE app_id = $1 AND identity = t.identity
			LIMIT 1) w LEFT JOIN LATERAL (
			SELECT credit_id, amount_nanocredits, debt_nanocredits
			FROM balances WHERE app_id = $1 AND wallet_id = w.id
			LIMIT 100) b ON true LEFT JOIN LATERAL (
			SELECT id, status, period_start, period_end, terms::text AS terms
			FROM subscriptions WHERE app_id = $1 AND wallet_id = w.id
			  AND status IN `+ledger.LiveStatuses+`
			LIMIT 1) s ON true`)

	readFeatures = pg.Declare("read features", `
		SELECT f.id, f.key, f.credit_id, c.key, f.cost_nanocredits, f.quantity_per_unit, f.pricing_mode,
			f.deduplication_period, f.deduplication_locked, f.revision, f.price_number
		FROM unnest($2::text[]) AS t (key) CROSS JOIN LATERAL (
			SELECT id, key, credit_id, cost_nanocredits, quantity_per_unit, pricing_mode,
				deduplication_period, deduplication_locked, revision, price_number
			FROM features WHERE app_id = $1 AND key = t.key
			LIMIT 1) f CROSS JOIN LATERAL (
			SELECT key FROM credits WHERE app_id = $1 AND id = f.credit_id
			LIMIT 1) c`)

	readKeys = pg.Declare("read keys", `
		SELECT k.id, k.permissions, k.expires_at, k.revoked, k.revoked_at, k.last_used_at, k.archived
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT id, array_to_string(permissions, ' ') AS permissions, expires_at, revoked, revoked_at, last_used_at, archived_at IS NOT NULL AS archived
			FROM api_keys WHERE app_id = $1 AND id = t.id
			LIMIT 1) k`)
)

// lockAndLoad locks the wallets and reads everything in later statements: a statement
// that waited for a lock may read old data beside it. A wallet that appears after the
// locks were taken is not locked and is treated as missing.
func (b *appBatch) lockAndLoad(p *wire.Pipe) {
	app, names := b.scope.AppID[:], b.encodedIdentities()
	b.locked = true
	locked := make(map[ids.ID]bool)
	p.Send(ledger.LockWallets, func(r *wire.Row) { locked[r.ID()] = true }, app, names)
	p.Send(readWallets, func(r *wire.Row) {
		if locked[r.FirstID()] {
			b.scanWallet(r)
		}
	}, app, names)
	b.loadEvents(p)
}

// loadWallets reads the wallets without locks.
func (b *appBatch) loadWallets(p *wire.Pipe) {
	p.Send(readWallets, b.scanWallet, b.scope.AppID[:], b.encodedIdentities())
}

// encodedIdentities are those of the requests, sorted and without duplicates.
func (b *appBatch) encodedIdentities() []byte {
	list, identities := make([]string, len(b.requests)), wire.TextColumn
	for i, u := range b.requests {
		list[i] = u.Identity
	}
	slices.Sort(list)
	for _, identity := range slices.Compact(list) {
		identities.Text(identity)
	}
	return identities.Encode(nil)
}

// loadCatalog reads the features and keys that the requests name. It reads the epoch
// first, so a price that changes in between fails the epoch check.
func (b *appBatch) loadCatalog(p *wire.Pipe) {
	var featureKeys, keyIDs = wire.TextColumn, wire.UUIDColumn
	for key := range uniqueValues(b.requests, func(u *request) string { return u.FeatureKey }) {
		featureKeys.Text(key)
	}
	for id := range uniqueValues(b.requests, func(u *request) ids.ID { return u.KeyID }) {
		keyIDs.ID(id)
	}
	app := b.scope.AppID[:]
	p.Send(pg.SelectEpoch, func(r *wire.Row) { b.epoch, b.clockOffset, b.databaseTime = r.Int8(), r.Int8(), r.Int8() }, app)
	p.Send(ledger.SelectPackedBefore, func(r *wire.Row) { b.packedBefore = r.Int8() }, app)
	p.Send(readFeatures, b.scanFeature, app, featureKeys.Encode(nil))
	p.Send(readKeys, b.scanKey, app, keyIDs.Encode(nil))
	b.rules = nil
	p.Send(ledger.ListAlertRules, b.scanRule, app)
}

// loadEvents reads the recorded events that have the requests' event ids.
func (b *appBatch) loadEvents(p *wire.Pipe) {
	eventIDs := wire.ByteaColumn
	for id := range uniqueValues(b.requests, func(u *request) string { return u.EventID }) {
		eventIDs.EventID(id)
	}
	p.Send(ledger.ReadEvents, b.scanEvent, b.scope.AppID[:], eventIDs.Encode(nil))
}

// scanWallet reads a wallet and one of its balances. Further rows of the wallet add a
// balance each.
func (b *appBatch) scanWallet(r *wire.Row) {
	w := b.byID[r.FirstID()]
	if w == nil {
		w = b.newWallet(r)
	} else {
		r.SkipTo(ledger.WalletColumnCount)
	}
	if r.IsNull() {
		r.Skip(3)
	} else {
		w.state.Wallet.Balances = append(w.state.Wallet.Balances, metering.Balance{CreditID: r.ID(), Amount: r.Amount(), Debt: r.Amount()})
	}
	if !r.IsNull() && w.state.Subscription == nil {
		w.state.Subscription = readSubscription(r)
	}
}

func (b *appBatch) newWallet(r *wire.Row) *walletState {
	w := &walletState{}
	w.state.Wallet.ID = r.ID()
	w.state.Wallet.Identity = r.Text()
	if !r.IsNull() {
		w.state.Wallet.BillingPeriod = &metering.BillingPeriod{Interval: metering.Interval(r.Text()), Anchor: r.Int8()}
	} else {
		r.Skip(2)
	}
	w.state.Wallet.Charged = r.Bool()
	w.state.Wallet.CreatedAt = r.Int8()
	w.seq = r.Int8()
	w.loaded = r.Int8()
	w.version = w.loaded
	b.wallets[w.state.Wallet.Identity] = w
	b.byID[w.state.Wallet.ID] = w
	return w
}

func (b *appBatch) scanFeature(r *wire.Row) {
	f := &pricedFeature{}
	f.ID, f.Key = r.ID(), r.Text()
	f.CreditID, f.CreditKey = r.ID(), r.Text()
	f.Cost = r.Amount()
	f.QuantityPerUnit = r.Int8()
	f.PricingMode = metering.PricingMode(r.Text())
	f.Deduplication = metering.Deduplication(r.Text())
	f.DeduplicationLocked = r.Bool()
	f.Revision = r.Int8()
	f.priceNumber = r.Int8()
	b.features[f.Key] = f
}

func (b *appBatch) scanKey(r *wire.Row) {
	k := &keys.APIKey{Scope: b.scope, ID: r.ID()}
	k.Permissions = tenancy.StoredPermissions(strings.Fields(r.Text()))
	k.ExpiresAt, k.Revoked, k.RevokedAt, k.LastUsedAt, k.Archived = r.Int8(), r.Bool(), r.Int8(), r.Int8(), r.Bool()
	b.keys[k.ID] = k
}

func readSubscription(r *wire.Row) *metering.Subscription {
	s := &metering.Subscription{ID: r.ID(), Status: metering.SubscriptionStatus(r.Text())}
	s.Period = metering.Period{Start: r.Int8(), End: r.Int8()}
	var err error
	if s.Terms, _, err = ledger.DecodeTerms(r.Bytes()); err != nil {
		r.Fail(err)
	}
	return s
}

func (b *appBatch) scanEvent(r *wire.Row) {
	e := &metering.Event{TransactionID: r.ID(), EventID: r.EventID(), WalletID: r.ID()}
	r.Int8() // the price number; its feature comes below
	e.Quantity, e.CreatedAt = r.Int8(), r.Int8()
	e.OccurredAt = e.CreatedAt
	if r.IsNull() {
		r.Skip(1)
	} else {
		e.OccurredAt = r.Int8()
	}
	e.Period = metering.Period{Start: r.Int8(), End: r.Int8()}
	e.DeduplicatedFrom = r.ID()
	e.Charge.Amount = r.Amount()
	if r.IsNull() {
		r.Skip(1)
	} else {
		quoted := r.Amount()
		e.Quoted = &quoted
	}
	e.EntityID = r.Text()
	e.FeatureID = r.ID()
	if metering.PricingMode(r.Text()) == metering.Callback && e.Quoted == nil {
		e.Quoted = &e.Charge.Amount
	}
	if !r.IsNull() {
		var err error
		if e.Properties, err = metering.ParseProperties(r.Text()); err != nil {
			r.Fail(err)
		}
	}
	b.events[e.EventID] = e
}

// sendKeyedReads reads the counters and billed periods that the requests need, which
// depend on wallets and subscriptions.
func (b *appBatch) sendKeyedReads(p *wire.Pipe) {
	counters, billed, entities := newPeriodKeys(), newPeriodKeys(), wire.TextColumn
	for _, u := range b.requests {
		w := b.wallets[u.Identity]
		if u.resolved || w == nil {
			continue
		}
		needed := w.state.Keys(u.Usage.Usage)
		if key := needed.Counter; !key.Period.IsZero() && !w.hasCounter(key) {
			w.setCounter(key, 0)
			counters.add(w.state.Wallet.ID, key.FeatureID, key.Period)
		}
		if key := needed.Billed; !key.Period.IsZero() && !w.hasBilled(key) {
			w.setUnbilled(key)
			billed.add(w.state.Wallet.ID, key.FeatureID, key.Period)
			entities.Text(key.EntityID)
		}
	}
	if b.locked {
		b.loadMarks(p)
	}
	if counters.wallet.Count > 0 {
		p.Send(ledger.ReadCounters, b.scanCounter, append([][]byte{b.scope.AppID[:]}, wire.EncodeAll(counters.columns())...)...)
	}
	if billed.wallet.Count > 0 {
		p.Send(ledger.ReadBilled, b.scanBilled, append([][]byte{b.scope.AppID[:]}, wire.EncodeAll(append(billed.columns(), entities))...)...)
	}
}

// periodKeys are the columns of the keys of counters and billed periods.
type periodKeys struct{ wallet, feature, start, end wire.Column }

func newPeriodKeys() periodKeys {
	return periodKeys{wallet: wire.UUIDColumn, feature: wire.UUIDColumn, start: wire.Int8Column, end: wire.Int8Column}
}

func (k *periodKeys) add(wallet, feature ids.ID, period metering.Period) {
	k.wallet.ID(wallet)
	k.feature.ID(feature)
	k.start.Int8(period.Start)
	k.end.Int8(period.End)
}

// columns are in the order of the statements' parameters.
func (k *periodKeys) columns() []wire.Column {
	return []wire.Column{k.wallet, k.feature, k.start, k.end}
}

func (b *appBatch) scanCounter(r *wire.Row) {
	w := b.byID[r.ID()]
	key := metering.CounterKey{FeatureID: r.ID(), Period: metering.Period{Start: r.Int8(), End: r.Int8()}}
	w.setCounter(key, r.Int8())
}

func (b *appBatch) scanBilled(r *wire.Row) {
	w := b.byID[r.ID()]
	key := metering.BilledKey{FeatureID: r.ID(), Period: metering.Period{Start: r.Int8(), End: r.Int8()}, EntityID: r.Text()}
	w.setBilled(key, r.ID())
}

// resolve sets the feature of each request and fails those whose key is not usable, key
// errors first. Keys expire by the real clock, not by the application's.
func (b *appBatch) resolve(now int64) {
	for _, u := range b.requests {
		if u.resolved {
			continue
		}
		if err := b.authorizeKey(u, now); err != nil {
			u.fail(err)
			continue
		}
		feature, known := b.features[u.FeatureKey]
		if !known {
			u.fail(fault.New(fault.FeatureNotFound))
			continue
		}
		u.Feature = &feature.Feature
	}
}

// authorizeKey fails a request whose key is not usable, unless an earlier attempt has
// committed it: the key was usable then.
func (b *appBatch) authorizeKey(u *request, now int64) error {
	if e := b.events[u.EventID]; e != nil && e.TransactionID == u.TransactionID {
		return nil
	}
	if u.byMember {
		return nil
	}
	key, known := b.keys[u.KeyID]
	if !known {
		return fault.New(fault.InvalidAPIKey)
	}
	if err := key.Usable(now); err != nil {
		return err
	}
	return key.Permissions.Require(tenancy.EventsIngest)
}
