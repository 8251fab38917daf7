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
	// One statement sees one snapshot, so it can read a whole wallet: a row for each
	// balance and one for the subscription, whose terms may be long, or one row without any.
	readWallets = pg.Declare("read wallets", `
		SELECT `+pg.Prefixed("w", ledger.WalletColumns)+`, r.credit_id, r.amount_nanocredits, r.debt_nanocredits,
			r.id, r.status, r.period_start, r.period_end, r.terms
		FROM unnest($2::text[]) AS t (identity) CROSS JOIN LATERAL (
			SELECT `+ledger.WalletColumns+`
			FROM wallets WHERE app_id = $1 AND identity = t.identity
			LIMIT 1) w LEFT JOIN LATERAL (
			(SELECT credit_id, amount_nanocredits, debt_nanocredits,
				NULL::uuid AS id, NULL::text AS status, NULL::bigint AS period_start, NULL::bigint AS period_end, NULL::text AS terms
			FROM balances WHERE app_id = $1 AND wallet_id = w.id
			LIMIT 100)
			UNION ALL
			(SELECT NULL::uuid, NULL, NULL, id, status, period_start, period_end, terms::text
			FROM subscriptions WHERE app_id = $1 AND wallet_id = w.id
			  AND status IN `+ledger.LiveStatuses+`
			LIMIT 1)) r ON true`)

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
func (b *appBatch) lockAndLoad(pipe *wire.Pipe) {
	app, names := b.scope.AppID[:], b.encodedIdentities()
	b.locked = true
	locked := make(map[ids.ID]bool)
	pipe.Send(ledger.LockWallets, func(row *wire.Row) { locked[row.ID()] = true }, app, names)
	pipe.Send(readWallets, func(row *wire.Row) {
		if locked[row.FirstID()] {
			b.scanWallet(row)
		}
	}, app, names)
	b.loadEvents(pipe)
}

// loadWallets reads the wallets without locks.
func (b *appBatch) loadWallets(pipe *wire.Pipe) {
	pipe.Send(readWallets, b.scanWallet, b.scope.AppID[:], b.encodedIdentities())
}

// encodedIdentities are those of the requests, sorted and without duplicates.
func (b *appBatch) encodedIdentities() []byte {
	list, identities := make([]string, len(b.requests)), wire.TextColumn
	for i, r := range b.requests {
		list[i] = r.Identity
	}
	slices.Sort(list)
	for _, identity := range slices.Compact(list) {
		identities.Text(identity)
	}
	return identities.Encode(nil)
}

// loadCatalog reads the features and keys that the requests name. It reads the epoch
// first, so a price that changes in between fails the epoch check.
func (b *appBatch) loadCatalog(pipe *wire.Pipe) {
	var featureKeys, keyIDs = wire.TextColumn, wire.UUIDColumn
	for key := range uniqueValues(b.requests, func(r *request) string { return r.FeatureKey }) {
		featureKeys.Text(key)
	}
	for id := range uniqueValues(b.requests, func(r *request) ids.ID { return r.KeyID }) {
		keyIDs.ID(id)
	}
	app := b.scope.AppID[:]
	pipe.Send(pg.SelectEpoch, func(row *wire.Row) { b.epoch, b.clockOffset, b.databaseTime = row.Int8(), row.Int8(), row.Int8() }, app)
	pipe.Send(ledger.SelectPackedBefore, func(row *wire.Row) { b.packedBefore = row.Int8() }, app)
	pipe.Send(readFeatures, b.scanFeature, app, featureKeys.Encode(nil))
	pipe.Send(readKeys, b.scanKey, app, keyIDs.Encode(nil))
	b.rules = nil
	pipe.Send(ledger.ListAlertRules, b.scanRule, app)
}

// loadEvents reads the recorded events that have the requests' event ids.
func (b *appBatch) loadEvents(pipe *wire.Pipe) {
	eventIDs := wire.ByteaColumn
	for id := range uniqueValues(b.requests, func(r *request) string { return r.EventID }) {
		eventIDs.EventID(id)
	}
	pipe.Send(ledger.ReadEvents, b.scanEvent, b.scope.AppID[:], eventIDs.Encode(nil))
}

// scanWallet reads a wallet with one of its balances or its subscription. Further rows of the
// wallet add to it.
func (b *appBatch) scanWallet(row *wire.Row) {
	w := b.byID[row.FirstID()]
	if w == nil {
		w = b.newWallet(row)
	} else {
		row.SkipTo(ledger.WalletColumnCount)
	}
	if row.IsNull() {
		row.Skip(3)
	} else {
		w.state.Wallet.Balances = append(w.state.Wallet.Balances, metering.Balance{CreditID: row.ID(), Amount: row.Amount(), Debt: row.Amount()})
	}
	if !row.IsNull() && w.state.Subscription == nil {
		w.state.Subscription = readSubscription(row)
	}
}

func (b *appBatch) newWallet(row *wire.Row) *walletState {
	w := &walletState{}
	w.state.Wallet.ID = row.ID()
	w.state.Wallet.Identity = row.Text()
	if !row.IsNull() {
		w.state.Wallet.BillingPeriod = &metering.BillingPeriod{Interval: metering.Interval(row.Text()), Anchor: row.Int8()}
	} else {
		row.Skip(2)
	}
	w.state.Wallet.Charged = row.Bool()
	w.state.Wallet.CreatedAt = row.Int8()
	w.seq = row.Int8()
	w.loaded = row.Int8()
	w.version = w.loaded
	b.wallets[w.state.Wallet.Identity] = w
	b.byID[w.state.Wallet.ID] = w
	return w
}

func (b *appBatch) scanFeature(row *wire.Row) {
	f := &pricedFeature{}
	f.ID, f.Key = row.ID(), row.Text()
	f.CreditID, f.CreditKey = row.ID(), row.Text()
	f.Cost = row.Amount()
	f.QuantityPerUnit = row.Int8()
	f.PricingMode = metering.PricingMode(row.Text())
	f.Deduplication = metering.Deduplication(row.Text())
	f.DeduplicationLocked = row.Bool()
	f.Revision = row.Int8()
	f.priceNumber = row.Int8()
	b.features[f.Key] = f
}

func (b *appBatch) scanKey(row *wire.Row) {
	k := &keys.APIKey{Scope: b.scope, ID: row.ID()}
	k.Permissions = tenancy.StoredPermissions(strings.Fields(row.Text()))
	k.ExpiresAt, k.Revoked, k.RevokedAt, k.LastUsedAt, k.Archived = row.Int8(), row.Bool(), row.Int8(), row.Int8(), row.Bool()
	b.keys[k.ID] = k
}

func readSubscription(row *wire.Row) *metering.Subscription {
	s := &metering.Subscription{ID: row.ID(), Status: metering.SubscriptionStatus(row.Text())}
	s.Period = metering.Period{Start: row.Int8(), End: row.Int8()}
	var err error
	if s.Terms, _, err = ledger.DecodeTerms(row.Bytes()); err != nil {
		row.Fail(err)
	}
	return s
}

func (b *appBatch) scanEvent(row *wire.Row) {
	event := &metering.Event{TransactionID: row.ID(), EventID: row.EventID(), WalletID: row.ID()}
	row.Int8() // the price number; its feature comes below
	event.Quantity, event.CreatedAt = row.Int8(), row.Int8()
	event.OccurredAt = event.CreatedAt
	if row.IsNull() {
		row.Skip(1)
	} else {
		event.OccurredAt = row.Int8()
	}
	event.Period = metering.Period{Start: row.Int8(), End: row.Int8()}
	event.DeduplicatedFrom = row.ID()
	event.Charge.Amount = row.Amount()
	if row.IsNull() {
		row.Skip(1)
	} else {
		quoted := row.Amount()
		event.Quoted = &quoted
	}
	event.EntityID = row.Text()
	event.FeatureID = row.ID()
	if metering.PricingMode(row.Text()) == metering.Callback && event.Quoted == nil {
		event.Quoted = &event.Charge.Amount
	}
	if !row.IsNull() {
		var err error
		if event.Properties, err = metering.ParseProperties(row.Text()); err != nil {
			row.Fail(err)
		}
	}
	b.events[event.EventID] = event
}

// sendKeyedReads reads the counters and billed periods that the requests need, which
// depend on wallets and subscriptions.
func (b *appBatch) sendKeyedReads(pipe *wire.Pipe) {
	counters, billed, entities := newPeriodKeys(), newPeriodKeys(), wire.TextColumn
	for _, r := range b.requests {
		w := b.wallets[r.Identity]
		if r.resolved || w == nil {
			continue
		}
		needed := w.state.Keys(r.Usage.Usage)
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
		b.loadMarks(pipe)
	}
	if counters.wallet.Count > 0 {
		pipe.Send(ledger.ReadCounters, b.scanCounter, append([][]byte{b.scope.AppID[:]}, wire.EncodeAll(counters.columns())...)...)
	}
	if billed.wallet.Count > 0 {
		pipe.Send(ledger.ReadBilled, b.scanBilled, append([][]byte{b.scope.AppID[:]}, wire.EncodeAll(append(billed.columns(), entities))...)...)
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

func (b *appBatch) scanCounter(row *wire.Row) {
	w := b.byID[row.ID()]
	key := metering.CounterKey{FeatureID: row.ID(), Period: metering.Period{Start: row.Int8(), End: row.Int8()}}
	w.setCounter(key, row.Int8())
}

func (b *appBatch) scanBilled(row *wire.Row) {
	w := b.byID[row.ID()]
	key := metering.BilledKey{FeatureID: row.ID(), Period: metering.Period{Start: row.Int8(), End: row.Int8()}, EntityID: row.Text()}
	w.setBilled(key, row.ID())
}

// resolve sets the feature of each request and fails those whose key is not usable, key
// errors first. Keys expire by the real clock, not by the application's.
func (b *appBatch) resolve(now int64) {
	for _, r := range b.requests {
		if r.resolved {
			continue
		}
		if err := b.authorizeKey(r, now); err != nil {
			r.fail(err)
			continue
		}
		feature, known := b.features[r.FeatureKey]
		if !known {
			r.fail(fault.New(fault.FeatureNotFound))
			continue
		}
		r.Feature = &feature.Feature
	}
}

// authorizeKey fails a request whose key is not usable, unless an earlier attempt has
// committed it: the key was usable then.
func (b *appBatch) authorizeKey(r *request, now int64) error {
	if event := b.events[r.EventID]; event != nil && event.TransactionID == r.TransactionID {
		return nil
	}
	if r.byMember {
		return nil
	}
	key, known := b.keys[r.KeyID]
	if !known {
		return fault.New(fault.InvalidAPIKey)
	}
	if err := key.Usable(now); err != nil {
		return err
	}
	return key.Permissions.Require(tenancy.EventsIngest)
}
