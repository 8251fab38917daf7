package store

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

// Several rows are changed by an upsert, not by UPDATE … FROM: an upsert finds each row by
// its key, in the order of the arrays, while a join may be planned in another order.

var (
	// A wallet with an unexpected version gets -1, which its domain wallet_version rejects.
	// A renamed one has another version too; its identity is compared to name the rule.
	chargeWallet = pg.Declare("charge wallet", `
		UPDATE wallets SET version = CASE WHEN version = $5::bigint AND identity = $4 THEN version + $2::bigint ELSE -1 END, last_seq = $6, charged = $7
		WHERE app_id = $1 AND id = $3`)

	chargeBalance = pg.Declare("charge balance", `
		UPDATE balances SET amount_nanocredits = $4
		WHERE app_id = $1 AND wallet_id = $2 AND credit_id = $3`)

	chargeWallets = pg.Declare("charge wallets", `
		INSERT INTO wallets (app_id, org_id, created_at, id, identity, version, last_seq, charged)
		SELECT s.app_id, s.org_id, 0, t.id, t.identity, t.version, t.seq, t.charged
		FROM app_state s CROSS JOIN unnest($3::uuid[], $4::text[], $5::bigint[], $6::bigint[], $7::boolean[])
			AS t (id, identity, version, seq, charged)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, id) DO UPDATE SET
			version = CASE WHEN wallets.version = excluded.version THEN wallets.version + $2::bigint ELSE -1 END,
			last_seq = excluded.last_seq, charged = excluded.charged`)

	chargeBalances = pg.Declare("charge balances", `
		INSERT INTO balances (app_id, org_id, wallet_id, credit_id, amount_nanocredits)
		SELECT s.app_id, s.org_id, t.wallet_id, t.credit_id, t.amount
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::uuid[], $4::numeric[]) AS t (wallet_id, credit_id, amount)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, wallet_id, credit_id) DO UPDATE SET amount_nanocredits = excluded.amount_nanocredits`)

	countUses = pg.Declare("count uses", `
		INSERT INTO counters (app_id, org_id, wallet_id, feature_id, period_start, period_end, used)
		SELECT s.app_id, s.org_id, t.wallet_id, t.feature_id, t.period_start, t.period_end, t.used
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[])
			AS t (wallet_id, feature_id, period_start, period_end, used)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, wallet_id, feature_id, period_start, period_end) DO UPDATE SET used = excluded.used`)

	countUse = pg.Declare("count use", `
		INSERT INTO counters (app_id, org_id, wallet_id, feature_id, period_start, period_end, used)
		SELECT s.app_id, s.org_id, $2::uuid, $3::uuid, $4::bigint, $5::bigint, $6::bigint FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id, wallet_id, feature_id, period_start, period_end) DO UPDATE SET used = excluded.used`)

	insertBilled = pg.Declare("insert billed periods", `
		INSERT INTO billed_periods (app_id, org_id, wallet_id, feature_id, period_start, period_end, entity_id, tx_id)
		SELECT s.app_id, s.org_id, t.wallet_id, t.feature_id, t.period_start, t.period_end, t.entity_id, t.tx_id
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[], $7::uuid[])
			AS t (wallet_id, feature_id, period_start, period_end, entity_id, tx_id)
		WHERE s.app_id = $1`)

	insertBilledPeriod = pg.Declare("insert billed period", `
		INSERT INTO billed_periods (app_id, org_id, wallet_id, feature_id, period_start, period_end, entity_id, tx_id)
		SELECT s.app_id, s.org_id, $2::uuid, $3::uuid, $4::bigint, $5::bigint, $6::text, $7::uuid FROM app_state s WHERE s.app_id = $1`)

	// The first event locks a feature's deduplication. If the feature has changed since
	// the decision, this fails with a division by zero, as for a changed epoch.
	lockDeduplication = pg.Declare("lock deduplication", `
		UPDATE features SET deduplication_locked = true, revision = revision / (revision = $3)::int
		WHERE app_id = $1 AND id = $2`)
)

// write sends the changes of the batches: all wallets, then all events, then all
// features. A transaction that waits for an event id which another node is writing
// holds no lock that the other may need.
func (e *Engine) write(pipe *wire.Pipe, batches []*appBatch, now int64) {
	changed := slices.DeleteFunc(slices.Clone(batches), func(b *appBatch) bool { return len(b.records)+len(b.alerts) == 0 })
	for _, b := range changed {
		b.writeWallets(pipe)
	}
	for _, b := range changed {
		b.writeEvents(pipe, b.appTime(now), e.clockTolerance)
	}
	for _, b := range changed {
		b.writePeriods(pipe)
		b.writeProperties(pipe)
		for _, feature := range slices.SortedFunc(maps.Keys(b.newlyUsed), byFeatureID) {
			pipe.Send(lockDeduplication, nil, b.scope.AppID[:], feature.ID[:], int8Param(feature.Revision))
		}
		b.writeAlerts(pipe)
	}
}

// writeWallets advances the version of each wallet and writes its balances, in the order
// of identities: the lock order of every writer.
func (b *appBatch) writeWallets(pipe *wire.Pipe) {
	id, identity, version, seq, charged := wire.UUIDColumn, wire.TextColumn, wire.Int8Column, wire.Int8Column, wire.BoolColumn
	wallet, credit, amount := wire.UUIDColumn, wire.UUIDColumn, wire.NumericColumn
	for _, w := range b.touchedWallets() {
		id.ID(w.state.Wallet.ID)
		identity.Text(w.state.Wallet.Identity)
		version.Int8(w.version)
		seq.Int8(w.seq)
		charged.Bool(w.state.Wallet.Charged)
		for _, balance := range w.newBalances {
			wallet.ID(w.state.Wallet.ID)
			credit.ID(balance.CreditID)
			amount.Amount(balance.Amount)
		}
	}
	b.step = pg.VersionStep()
	pipe.SendRows(chargeWallet, chargeWallets, []wire.Column{id, identity, version, seq, charged}, b.scope.AppID[:], int8Param(b.step))
	pipe.SendRows(chargeBalance, chargeBalances, []wire.Column{wallet, credit, amount}, b.scope.AppID[:])
}

// writePeriods writes the counters after the batch, one row each, and the billed
// periods.
func (b *appBatch) writePeriods(pipe *wire.Pipe) {
	b.writeCounters(pipe)
	wallet, feature, start, end, entity, transaction := wire.UUIDColumn, wire.UUIDColumn, wire.Int8Column, wire.Int8Column, wire.TextColumn, wire.UUIDColumn
	for i := range b.records {
		r := &b.records[i]
		if !r.DeduplicatedFrom.IsZero() || r.Period.IsZero() {
			continue
		}
		wallet.ID(r.WalletID)
		feature.ID(r.FeatureID)
		start.Int8(r.Period.Start)
		end.Int8(r.Period.End)
		entity.Text(r.EntityID)
		transaction.ID(r.TransactionID)
	}
	pipe.SendRows(insertBilledPeriod, insertBilled, []wire.Column{wallet, feature, start, end, entity, transaction}, b.scope.AppID[:])
}

func (b *appBatch) writeCounters(pipe *wire.Pipe) {
	wallet, feature, start, end, used := wire.UUIDColumn, wire.UUIDColumn, wire.Int8Column, wire.Int8Column, wire.Int8Column
	type counter struct {
		wallet ids.ID
		metering.CounterKey
	}
	var done map[counter]bool
	for i := range b.records {
		r := &b.records[i]
		if !r.DeduplicatedFrom.IsZero() {
			continue
		}
		if key := (counter{r.WalletID, metering.CounterKey{FeatureID: r.FeatureID, Period: r.Allowance.Period}}); r.Allowance.Limited() && !done[key] {
			if done == nil {
				done = make(map[counter]bool)
			}
			done[key] = true
			wallet.ID(r.WalletID)
			feature.ID(r.FeatureID)
			start.Int8(key.Period.Start)
			end.Int8(key.Period.End)
			used.Int8(r.wallet.state.Used[key.CounterKey])
		}
	}
	pipe.SendRows(countUse, countUses, []wire.Column{wallet, feature, start, end, used}, b.scope.AppID[:])
}

func byFeatureID(a, b *metering.Feature) int { return bytes.Compare(a.ID[:], b.ID[:]) }

func int8Param(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }
