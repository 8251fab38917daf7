package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

// Existing rows are changed by upserts, not by UPDATE … FROM: an upsert finds each row
// by its key, in the order of the arrays, while a join may be planned in another order.

const plainEventColumns = `
	app_id, org_id, created_at, tx_id, event_id, wallet_id, key_id, seq, price_number, quantity,
	amount_nanocredits, balance_after`

// decidedNow compares the time that the batch was decided for ($2, by the application's
// clock) with the database's: a machine that was suspended cannot notice that itself.
// $4 is the tolerance in milliseconds.
const decidedNow = `1 / (abs(date_part('epoch', statement_timestamp()) * 1000 + s.clock_offset - $2::bigint) < $4::bigint)::int = 1`

var (
	// Each insert fails with a division by zero when the catalog or a key has changed
	// since the epoch that the batch was decided by, or when the decision time is not
	// the database's.
	//
	// Most events need only the plain columns, half of all.
	insertPlainEvents = pg.Declare("insert plain events", `
		INSERT INTO usage_events (`+plainEventColumns+`)
		SELECT s.app_id, s.org_id, $2, t.tx_id, t.event_id, t.wallet_id, t.key_id, t.seq, t.price_number, t.quantity,
			t.amount, t.balance_after
		FROM app_state s CROSS JOIN unnest($5::uuid[], $6::bytea[], $7::uuid[], $8::uuid[], $9::bigint[], $10::bigint[],
			$11::bigint[], $12::numeric[], $13::numeric[])
			AS t (tx_id, event_id, wallet_id, key_id, seq, price_number, quantity, amount, balance_after)
		WHERE s.app_id = $1 AND 1 / (s.epoch = $3)::int = 1 AND `+decidedNow)

	// A batch of one event uses scalar parameters, for two thirds of the cost.
	insertPlainEvent = pg.Declare("insert plain event", `
		INSERT INTO usage_events (`+plainEventColumns+`)
		SELECT s.app_id, s.org_id, $2, $5::uuid, $6::bytea, $7::uuid, $8::uuid, $9::bigint, $10::bigint,
			$11::bigint, $12::numeric, $13::numeric
		FROM app_state s
		WHERE s.app_id = $1 AND 1 / (s.epoch = $3)::int = 1 AND `+decidedNow)

	chargeWallet = pg.Declare("charge wallet", `
		UPDATE wallets SET version = CASE WHEN version = $4::bigint - 1 THEN $4::bigint ELSE -1 END, last_seq = $5, charged = $6
		WHERE app_id = $1 AND id = $2 AND identity = $3`)

	chargeBalance = pg.Declare("charge balance", `
		UPDATE balances SET amount_nanocredits = $4
		WHERE app_id = $1 AND wallet_id = $2 AND credit_id = $3`)

	insertEvents = pg.Declare("insert events", `
		INSERT INTO usage_events (`+plainEventColumns+`, debt_after, occurred_at, entity_id, period_start, period_end,
			deduplicated_from, basis_points, quoted_nanocredits,
			allowance_limit, allowance_used, allowance_start, allowance_end, allowance_overage)
		SELECT s.app_id, s.org_id, $2, t.tx_id, t.event_id, t.wallet_id, t.key_id, t.seq, t.price_number, t.quantity,
			t.amount, t.balance_after, t.debt_after, t.occurred_at, t.entity_id, t.period_start, t.period_end,
			t.deduplicated_from, t.basis_points, t.quoted,
			t.allowance_limit, t.allowance_used, t.allowance_start, t.allowance_end, t.allowance_overage
		FROM app_state s CROSS JOIN unnest($5::uuid[], $6::bytea[], $7::uuid[], $8::uuid[], $9::bigint[], $10::bigint[],
			$11::bigint[], $12::numeric[], $13::numeric[], $14::numeric[], $15::bigint[], $16::text[], $17::bigint[], $18::bigint[],
			$19::uuid[], $20::integer[], $21::numeric[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[], $26::text[])
			AS t (tx_id, event_id, wallet_id, key_id, seq, price_number, quantity,
				amount, balance_after, debt_after, occurred_at, entity_id, period_start, period_end,
				deduplicated_from, basis_points, quoted,
				allowance_limit, allowance_used, allowance_start, allowance_end, allowance_overage)
		WHERE s.app_id = $1 AND 1 / (s.epoch = $3)::int = 1 AND `+decidedNow)

	// A wallet with an unexpected version gets -1, which a CHECK constraint rejects.
	chargeWallets = pg.Declare("charge wallets", `
		INSERT INTO wallets (app_id, org_id, created_at, id, identity, version, last_seq, charged)
		SELECT s.app_id, s.org_id, 0, t.id, t.identity, t.version, t.seq, t.charged
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[])
			AS t (id, identity, version, seq, charged)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, id) DO UPDATE SET
			version = CASE WHEN wallets.version = excluded.version - 1 THEN excluded.version ELSE -1 END,
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

	insertBilled = pg.Declare("insert billed periods", `
		INSERT INTO billed_periods (app_id, org_id, wallet_id, feature_id, period_start, period_end, entity_id, tx_id)
		SELECT s.app_id, s.org_id, t.wallet_id, t.feature_id, t.period_start, t.period_end, t.entity_id, t.tx_id
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[], $7::uuid[])
			AS t (wallet_id, feature_id, period_start, period_end, entity_id, tx_id)
		WHERE s.app_id = $1`)

	// The first event locks a feature's deduplication. If the feature has changed since
	// the decision, this fails with a division by zero, as for a changed epoch.
	lockDeduplication = pg.Declare("lock deduplication", `
		UPDATE features SET deduplication_locked = true, revision = revision / (revision = $3)::int
		WHERE app_id = $1 AND id = $2`)
)

// record is an event with its sequence number, price and API key.
type record struct {
	metering.Event
	keyID       ids.ID
	priceNumber int64
	seq         int64
}

// write sends the changes of the batches: all wallets, then all events, then all
// features. A transaction that waits for an event id which another node is writing
// holds no lock that the other may need.
func (u *Engine) write(p *pipe, batches []*appBatch, now int64) {
	changed := slices.DeleteFunc(slices.Clone(batches), func(b *appBatch) bool { return len(b.records) == 0 })
	for _, b := range changed {
		b.writeWallets(p)
	}
	for _, b := range changed {
		b.writeEvents(p, b.appTime(now), u.clockTolerance)
	}
	for _, b := range changed {
		b.writePeriods(p)
		for _, feature := range slices.SortedFunc(maps.Keys(b.newlyUsed), byFeatureID) {
			p.send(lockDeduplication, nil, b.scope.AppID[:], feature.ID[:], int8Param(feature.Revision))
		}
	}
}

// writeEvents inserts the events in the order of their ids, so that two nodes which
// insert the same ids cannot deadlock.
func (b *appBatch) writeEvents(p *pipe, now, tolerance int64) {
	slices.SortFunc(b.records, func(a, b record) int { return cmp.Compare(a.EventID, b.EventID) })
	columns := []column{uuidColumn, byteaColumn, uuidColumn, uuidColumn, int8Column, int8Column, int8Column, numericColumn, numericColumn}
	plain := true
	for i := range b.records {
		r := &b.records[i]
		columns[0].id(r.TransactionID)
		columns[1].eventID(r.EventID)
		columns[2].id(r.WalletID)
		columns[3].id(r.keyID)
		columns[4].int8(r.seq)
		columns[5].int8(r.priceNumber)
		columns[6].int8(r.Quantity)
		columns[7].amount(r.Charge.Amount)
		columns[8].amount(r.BalanceAfter)
		plain = plain && r.plain(now)
	}
	one, many := insertPlainEvent, insertPlainEvents
	if !plain {
		one, many = insertEvents, insertEvents
		columns = append(columns, b.rareColumns(now)...)
	}
	p.sendRows(one, many, columns, b.scope.AppID[:], int8Param(now), int8Param(b.epoch), int8Param(tolerance))
}

// plain reports whether every rare column of the record is NULL.
func (r *record) plain(now int64) bool {
	return r.DebtAfter == 0 && r.OccurredAt == now && r.EntityID == "" && r.Period.IsZero() &&
		r.Charge.BasisPoints == metering.ListPrice && r.quoted() == nil && !r.Allowance.Limited()
}

// quoted is the amount that the caller asked to charge, or nil when it equals the
// charge.
func (r *record) quoted() *metering.Amount {
	if r.Quoted != nil && *r.Quoted == r.Charge.Amount && r.DeduplicatedFrom.IsZero() {
		return nil
	}
	return r.Quoted
}

func (b *appBatch) rareColumns(now int64) []column {
	columns := []column{numericColumn, int8Column, textColumn, int8Column, int8Column, uuidColumn, int4Column, numericColumn,
		int8Column, int8Column, int8Column, int8Column, textColumn}
	for i := range b.records {
		r := &b.records[i]
		optional(&columns[0], r.DebtAfter != 0, (*column).amount, r.DebtAfter)
		optional(&columns[1], r.OccurredAt != now, (*column).int8, r.OccurredAt)
		columns[2].optionalText(r.EntityID)
		optional(&columns[3], !r.Period.IsZero(), (*column).int8, r.Period.Start)
		optional(&columns[4], !r.Period.IsZero(), (*column).int8, r.Period.End)
		columns[5].optionalID(r.DeduplicatedFrom)
		optional(&columns[6], r.Charge.BasisPoints != metering.ListPrice, (*column).int4, int32(r.Charge.BasisPoints))
		quoted := r.quoted()
		optional(&columns[7], quoted != nil, (*column).amount, pg.OrZero(quoted))
		limited := r.Allowance.Limited()
		optional(&columns[8], limited, (*column).int8, r.Allowance.Limit)
		optional(&columns[9], limited, (*column).int8, r.Allowance.Used)
		optional(&columns[10], limited, (*column).int8, r.Allowance.Period.Start)
		optional(&columns[11], limited, (*column).int8, r.Allowance.Period.End)
		columns[12].optionalText(string(r.Allowance.Overage))
	}
	return columns
}

func optional[T any](c *column, given bool, write func(*column, T), value T) {
	if given {
		write(c, value)
	} else {
		c.null()
	}
}

// writeWallets advances each wallet by one version and writes its balances, in the
// order of identities: the lock order of every writer.
func (b *appBatch) writeWallets(p *pipe) {
	wallets := []column{uuidColumn, textColumn, int8Column, int8Column, boolColumn}
	balances := []column{uuidColumn, uuidColumn, numericColumn}
	for _, w := range b.touchedWallets() {
		wallets[0].id(w.state.Wallet.ID)
		wallets[1].text(w.state.Wallet.Identity)
		wallets[2].int8(w.version + 1)
		wallets[3].int8(w.seq)
		wallets[4].bool(w.state.Wallet.Charged)
		for _, balance := range w.charged {
			balances[0].id(w.state.Wallet.ID)
			balances[1].id(balance.CreditID)
			balances[2].amount(balance.Amount)
		}
	}
	p.sendRows(chargeWallet, chargeWallets, wallets, b.scope.AppID[:])
	p.sendRows(chargeBalance, chargeBalances, balances, b.scope.AppID[:])
}

// writePeriods writes the counters after the batch, one row each, and the billed
// periods.
func (b *appBatch) writePeriods(p *pipe) {
	counters := []column{uuidColumn, uuidColumn, int8Column, int8Column, int8Column}
	billed := []column{uuidColumn, uuidColumn, int8Column, int8Column, textColumn, uuidColumn}
	type counter struct {
		wallet ids.ID
		metering.CounterKey
	}
	done := make(map[counter]bool)
	for i := range b.records {
		r := &b.records[i]
		if !r.DeduplicatedFrom.IsZero() {
			continue
		}
		if key := (counter{r.WalletID, metering.CounterKey{FeatureID: r.FeatureID, Period: r.Allowance.Period}}); r.Allowance.Limited() && !done[key] {
			done[key] = true
			counters[0].id(r.WalletID)
			counters[1].id(r.FeatureID)
			counters[2].int8(key.Period.Start)
			counters[3].int8(key.Period.End)
			counters[4].int8(b.byID[r.WalletID].state.Used[key.CounterKey])
		}
		if !r.Period.IsZero() {
			billed[0].id(r.WalletID)
			billed[1].id(r.FeatureID)
			billed[2].int8(r.Period.Start)
			billed[3].int8(r.Period.End)
			billed[4].text(r.EntityID)
			billed[5].id(r.TransactionID)
		}
	}
	p.sendRows(countUses, countUses, counters, b.scope.AppID[:])
	p.sendRows(insertBilled, insertBilled, billed, b.scope.AppID[:])
}

func byFeatureID(a, b *metering.Feature) int { return bytes.Compare(a.ID[:], b.ID[:]) }

func encodeAll(columns []column) [][]byte {
	values := make([][]byte, len(columns))
	for i := range columns {
		values[i] = columns[i].encode(make([]byte, 0, 20+len(columns[i].data)))
	}
	return values
}

func int8Param(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }
