package store

import (
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/tenancy"
)

// Reads of the hot path look up their keys one by one, inside LATERAL. A plain join
// that was planned while the table was empty read a whole application per batch.

const usageEventColumns = `
	tx_id, event_id, wallet_id, price_number, quantity, created_at, occurred_at,
	period_start, period_end, deduplicated_from, amount_nanocredits, quoted_nanocredits, entity_id`

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
			  AND status IN ('active', 'trialing', 'past_due', 'unpaid', 'paused')
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
		SELECT k.id, k.permissions, k.expires_at, k.revoked, k.revoked_at, k.last_used_at
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (
			SELECT id, array_to_string(permissions, ' ') AS permissions, expires_at, revoked, revoked_at, last_used_at
			FROM api_keys WHERE app_id = $1 AND id = t.id
			LIMIT 1) k`)

	readEvents = pg.Declare("read events", `
		SELECT `+pg.Prefixed("e", usageEventColumns)+`, p.feature_id, p.pricing_mode
		FROM unnest($2::bytea[]) AS t (event_id) CROSS JOIN LATERAL (
			SELECT `+usageEventColumns+`
			FROM usage_events WHERE app_id = $1 AND event_id = t.event_id
			LIMIT 1) e CROSS JOIN LATERAL (
			SELECT feature_id, pricing_mode FROM prices WHERE app_id = $1 AND number = e.price_number
			LIMIT 1) p`)

	readCounters = pg.Declare("read counters", `
		SELECT c.wallet_id, c.feature_id, c.period_start, c.period_end, c.used
		FROM unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[]) AS t (wallet_id, feature_id, period_start, period_end)
		CROSS JOIN LATERAL (
			SELECT wallet_id, feature_id, period_start, period_end, used
			FROM counters WHERE app_id = $1 AND wallet_id = t.wallet_id AND feature_id = t.feature_id
			  AND period_start = t.period_start AND period_end = t.period_end
			LIMIT 1) c`)

	readBilled = pg.Declare("read billed periods", `
		SELECT b.wallet_id, b.feature_id, b.period_start, b.period_end, b.entity_id, b.tx_id
		FROM unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[])
			AS t (wallet_id, feature_id, period_start, period_end, entity_id)
		CROSS JOIN LATERAL (
			SELECT wallet_id, feature_id, period_start, period_end, entity_id, tx_id
			FROM billed_periods WHERE app_id = $1 AND wallet_id = t.wallet_id AND feature_id = t.feature_id
			  AND period_start = t.period_start AND period_end = t.period_end AND entity_id = t.entity_id
			LIMIT 1) b`)
)

// lockAndLoad locks the wallets and reads everything in later statements: a statement
// that waited for a lock may read old data beside it. A wallet that appears after the
// locks were taken is not locked and is treated as missing.
func (b *appBatch) lockAndLoad(p *pipe) {
	app, names := b.scope.AppID[:], b.encodedIdentities()
	locked := make(map[ids.ID]bool)
	p.send(ledger.LockWallets, func(r *row) { locked[r.id()] = true }, app, names)
	p.send(readWallets, func(r *row) {
		if locked[ids.ID(r.values[0])] {
			b.scanWallet(r)
		}
	}, app, names)
	b.loadEvents(p)
}

// loadWallets reads the wallets without locks.
func (b *appBatch) loadWallets(p *pipe) {
	p.send(readWallets, b.scanWallet, b.scope.AppID[:], b.encodedIdentities())
}

func (b *appBatch) encodedIdentities() []byte {
	identities := textColumn
	for _, identity := range b.identities() {
		identities.text(identity)
	}
	return identities.encode(nil)
}

// loadCatalog reads the features and keys that the requests name. It reads the epoch
// first, so a price that changes in between fails the epoch check.
func (b *appBatch) loadCatalog(p *pipe) {
	var featureKeys, keyIDs = textColumn, uuidColumn
	for key := range b.uniqueValues(func(u *request) string { return u.FeatureKey }) {
		featureKeys.text(key)
	}
	seen := make(map[ids.ID]bool)
	for _, u := range b.requests {
		if !seen[u.KeyID] {
			seen[u.KeyID] = true
			keyIDs.id(u.KeyID)
		}
	}
	app := b.scope.AppID[:]
	p.send(pg.SelectEpoch, func(r *row) { b.epoch, b.clockOffset, b.databaseTime = r.int8(), r.int8(), r.int8() }, app)
	p.send(readFeatures, b.scanFeature, app, featureKeys.encode(nil))
	p.send(readKeys, b.scanKey, app, keyIDs.encode(nil))
}

// loadEvents reads the recorded events that have the requests' event ids.
func (b *appBatch) loadEvents(p *pipe) {
	eventIDs := byteaColumn
	for id := range b.uniqueValues(func(u *request) string { return u.EventID }) {
		eventIDs.eventID(id)
	}
	p.send(readEvents, b.scanEvent, b.scope.AppID[:], eventIDs.encode(nil))
}

// scanWallet reads a wallet and one of its balances. Further rows of the wallet add a
// balance each.
func (b *appBatch) scanWallet(r *row) {
	w := b.byID[ids.ID(r.values[0])]
	if w == nil {
		w = b.newWallet(r)
	} else {
		r.next = ledger.WalletColumnCount
	}
	if r.isNull() {
		r.next += 3
	} else {
		w.state.Wallet.Balances = append(w.state.Wallet.Balances, metering.Balance{CreditID: r.id(), Amount: r.amount(), Debt: r.amount()})
	}
	if !r.isNull() && w.state.Subscription == nil {
		w.state.Subscription = r.subscription()
	}
}

func (b *appBatch) newWallet(r *row) *walletState {
	w := &walletState{}
	w.state.Wallet.ID = r.id()
	w.state.Wallet.Identity = r.text()
	if !r.isNull() {
		w.state.Wallet.BillingPeriod = &metering.BillingPeriod{Interval: metering.Interval(r.text()), Anchor: r.int8()}
	} else {
		r.next += 2
	}
	w.state.Wallet.Charged = r.bool()
	w.state.Wallet.CreatedAt = r.int8()
	w.seq = r.int8()
	w.loaded = r.int8()
	w.version = w.loaded
	b.wallets[w.state.Wallet.Identity] = w
	b.byID[w.state.Wallet.ID] = w
	return w
}

func (b *appBatch) scanFeature(r *row) {
	f := &pricedFeature{}
	f.ID, f.Key = r.id(), r.text()
	f.CreditID, f.CreditKey = r.id(), r.text()
	f.Cost = r.amount()
	f.QuantityPerUnit = r.int8()
	f.PricingMode = metering.PricingMode(r.text())
	f.Deduplication = metering.Deduplication(r.text())
	f.DeduplicationLocked = r.bool()
	f.Revision = r.int8()
	f.priceNumber = r.int8()
	b.features[f.Key] = f
}

func (b *appBatch) scanKey(r *row) {
	k := &keys.APIKey{Scope: b.scope, ID: r.id()}
	k.Permissions = storedPermissions(r.text())
	k.ExpiresAt, k.Revoked, k.RevokedAt, k.LastUsedAt = r.int8(), r.bool(), r.int8(), r.int8()
	b.keys[k.ID] = k
}

func (r *row) subscription() *metering.Subscription {
	s := &metering.Subscription{ID: r.id(), Status: metering.SubscriptionStatus(r.text())}
	s.Period = metering.Period{Start: r.int8(), End: r.int8()}
	var err error
	if s.Terms, _, err = ledger.DecodeTerms(r.bytes()); err != nil {
		r.err = err
	}
	return s
}

func (b *appBatch) scanEvent(r *row) {
	e := &metering.Event{TransactionID: r.id(), EventID: r.eventID(), WalletID: r.id()}
	r.int8() // the price number; its feature comes below
	e.Quantity, e.CreatedAt = r.int8(), r.int8()
	e.OccurredAt = e.CreatedAt
	if r.isNull() {
		r.next++
	} else {
		e.OccurredAt = r.int8()
	}
	e.Period = metering.Period{Start: r.int8(), End: r.int8()}
	e.DeduplicatedFrom = r.id()
	e.Charge.Amount = r.amount()
	if r.isNull() {
		r.next++
	} else {
		quoted := r.amount()
		e.Quoted = &quoted
	}
	e.EntityID = r.text()
	e.FeatureID = r.id()
	if metering.PricingMode(r.text()) == metering.Callback && e.Quoted == nil {
		e.Quoted = &e.Charge.Amount
	}
	b.events[e.EventID] = e
}

// sendKeyedReads reads the counters and billed periods that the requests need, which
// depend on wallets and subscriptions.
func (b *appBatch) sendKeyedReads(p *pipe) {
	counterColumns := [4]column{uuidColumn, uuidColumn, int8Column, int8Column}
	billedColumns := [5]column{uuidColumn, uuidColumn, int8Column, int8Column, textColumn}
	for _, u := range b.requests {
		w := b.wallets[u.Identity]
		if u.resolved || w == nil {
			continue
		}
		needed := w.state.Keys(u.Usage.Usage)
		if key := needed.Counter; !key.Period.IsZero() && !w.hasCounter(key) {
			w.setCounter(key, 0)
			counterColumns[0].id(w.state.Wallet.ID)
			counterColumns[1].id(key.FeatureID)
			counterColumns[2].int8(key.Period.Start)
			counterColumns[3].int8(key.Period.End)
		}
		if key := needed.Billed; !key.Period.IsZero() && !w.hasBilled(key) {
			w.setUnbilled(key)
			billedColumns[0].id(w.state.Wallet.ID)
			billedColumns[1].id(key.FeatureID)
			billedColumns[2].int8(key.Period.Start)
			billedColumns[3].int8(key.Period.End)
			billedColumns[4].text(key.EntityID)
		}
	}
	if counterColumns[0].count > 0 {
		p.send(readCounters, b.scanCounter, append([][]byte{b.scope.AppID[:]}, encodeAll(counterColumns[:])...)...)
	}
	if billedColumns[0].count > 0 {
		p.send(readBilled, b.scanBilled, append([][]byte{b.scope.AppID[:]}, encodeAll(billedColumns[:])...)...)
	}
}

func (b *appBatch) scanCounter(r *row) {
	w := b.byID[r.id()]
	key := metering.CounterKey{FeatureID: r.id(), Period: metering.Period{Start: r.int8(), End: r.int8()}}
	w.setCounter(key, r.int8())
}

func (b *appBatch) scanBilled(r *row) {
	w := b.byID[r.id()]
	key := metering.BilledKey{FeatureID: r.id(), Period: metering.Period{Start: r.int8(), End: r.int8()}, EntityID: r.text()}
	w.setBilled(key, r.id())
}

// authorize sets the feature of each request and fails those whose key is not usable,
// key errors first. Keys expire by the real clock, not by the application's.
func (b *appBatch) authorize(now int64) {
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
