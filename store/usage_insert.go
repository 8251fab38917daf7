package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
)

// decidedNow compares the time that the batch was decided for ($2, by the application's
// clock) with the database's: a machine that was suspended cannot notice that itself.
// $4 is the tolerance in milliseconds.
const decidedNow = `1 / (abs(date_part('epoch', statement_timestamp()) * 1000 + s.clock_offset - $2::bigint) < $4::bigint)::int = 1`

// sameEpoch fails with a division by zero when the catalog or a key has changed since the
// epoch that the batch was decided by, or when the decision time is not the database's.
const sameEpoch = `s.app_id = $1 AND 1 / (s.epoch = $3)::int = 1 AND ` + decidedNow

const (
	// An event has the organization of its application, so it doesn't store it.
	intoEvents     = `INSERT INTO usage_events (app_id, created_at, `
	valuesOfEvents = `) SELECT s.app_id, $2, `
)

// eventColumn is a column of usage_events and how it is filled.
type eventColumn struct {
	name   string
	kind   string // of Postgres
	values wire.Column
	put    func(c *wire.Column, r *record, now int64)
}

// plainColumns are those that every event has, and all that most have.
var plainColumns = []eventColumn{
	{"tx_id", "uuid", wire.UUIDColumn, func(c *wire.Column, r *record, _ int64) { c.ID(r.TransactionID) }},
	{"event_id", "bytea", wire.ByteaColumn, func(c *wire.Column, r *record, _ int64) { c.EventID(r.EventID) }},
	{"wallet_id", "uuid", wire.UUIDColumn, func(c *wire.Column, r *record, _ int64) { c.ID(r.WalletID) }},
	{"key_id", "uuid", wire.UUIDColumn, func(c *wire.Column, r *record, _ int64) { c.ID(r.keyID) }},
	{"seq", "bigint", wire.Int8Column, func(c *wire.Column, r *record, _ int64) { c.Int8(r.seq) }},
	{"price_number", "bigint", wire.Int8Column, func(c *wire.Column, r *record, _ int64) { c.Int8(r.priceNumber) }},
	{"quantity", "bigint", wire.Int8Column, func(c *wire.Column, r *record, _ int64) { c.Int8(r.Quantity) }},
	{"amount_nanocredits", "numeric", wire.NumericColumn, func(c *wire.Column, r *record, _ int64) { c.Amount(r.Charge.Amount) }},
	{"balance_after", "numeric", wire.NumericColumn, func(c *wire.Column, r *record, _ int64) { c.Amount(r.BalanceAfter) }},
}

// rareColumns come in two groups. A batch sends only the groups it needs: one event with
// an entity does not make it send what a limit needs.
var rareColumns = [...]struct {
	given   func(r *record, now int64) bool
	columns []eventColumn
}{
	{
		given: func(r *record, _ int64) bool { return r.EntityID != "" || !r.Period.IsZero() },
		columns: []eventColumn{
			{"entity_id", "text", wire.TextColumn, func(c *wire.Column, r *record, _ int64) { c.OptionalText(r.EntityID) }},
			{"period_start", "bigint", wire.Int8Column, func(c *wire.Column, r *record, _ int64) {
				optional(c, !r.Period.IsZero(), (*wire.Column).Int8, r.Period.Start)
			}},
			{"period_end", "bigint", wire.Int8Column, func(c *wire.Column, r *record, _ int64) {
				optional(c, !r.Period.IsZero(), (*wire.Column).Int8, r.Period.End)
			}},
			{"deduplicated_from", "uuid", wire.UUIDColumn, func(c *wire.Column, r *record, _ int64) { c.OptionalID(r.DeduplicatedFrom) }},
		},
	},
	{
		given: func(r *record, now int64) bool {
			return r.DebtAfter != 0 || r.OccurredAt != now || r.Charge.BasisPoints != metering.ListPrice || r.quoted() != nil ||
				r.Allowance.Limited()
		},
		columns: []eventColumn{
			{"debt_after", "numeric", wire.NumericColumn, func(c *wire.Column, r *record, _ int64) {
				optional(c, r.DebtAfter != 0, (*wire.Column).Amount, r.DebtAfter)
			}},
			{"occurred_at", "bigint", wire.Int8Column, func(c *wire.Column, r *record, now int64) {
				optional(c, r.OccurredAt != now, (*wire.Column).Int8, r.OccurredAt)
			}},
			{"basis_points", "integer", wire.Int4Column, func(c *wire.Column, r *record, _ int64) {
				optional(c, r.Charge.BasisPoints != metering.ListPrice, (*wire.Column).Int4, int32(r.Charge.BasisPoints))
			}},
			{"quoted_nanocredits", "numeric", wire.NumericColumn, func(c *wire.Column, r *record, _ int64) {
				quoted := r.quoted()
				optional(c, quoted != nil, (*wire.Column).Amount, pg.OrZero(quoted))
			}},
			{"allowance_limit", "bigint", wire.Int8Column, func(c *wire.Column, r *record, _ int64) {
				optional(c, r.Allowance.Limited(), (*wire.Column).Int8, r.Allowance.Limit)
			}},
			{"allowance_used", "bigint", wire.Int8Column, func(c *wire.Column, r *record, _ int64) {
				optional(c, r.Allowance.Limited(), (*wire.Column).Int8, r.Allowance.Used)
			}},
			{"allowance_start", "bigint", wire.Int8Column, func(c *wire.Column, r *record, _ int64) {
				optional(c, r.Allowance.Limited(), (*wire.Column).Int8, r.Allowance.Period.Start)
			}},
			{"allowance_end", "bigint", wire.Int8Column, func(c *wire.Column, r *record, _ int64) {
				optional(c, r.Allowance.Limited(), (*wire.Column).Int8, r.Allowance.Period.End)
			}},
			{"allowance_overage", "text", wire.TextColumn, func(c *wire.Column, r *record, _ int64) { c.OptionalText(string(r.Allowance.Overage)) }},
		},
	},
}

func optional[T any](c *wire.Column, given bool, write func(*wire.Column, T), value T) {
	if given {
		write(c, value)
	} else {
		c.Null()
	}
}

// eventInsert inserts events with some of the groups of rare columns. A batch of one
// event uses scalar parameters, for two thirds of the cost.
type eventInsert struct {
	columns   []eventColumn
	one, many pg.Statement
}

// eventInserts are the inserts by the set of groups: bit n is for the group n.
var eventInserts = func() (inserts [1 << len(rareColumns)]eventInsert) {
	for groups := range inserts {
		name, columns := "events", slices.Clone(plainColumns)
		for n, group := range rareColumns {
			if groups&(1<<n) != 0 {
				name, columns = name+" with "+group.columns[0].name, append(columns, group.columns...)
			}
		}
		var names, arrays, scalars []string
		for i, c := range columns {
			names = append(names, c.name)
			arrays = append(arrays, fmt.Sprintf("$%d::%s[]", firstEventColumn+i, c.kind))
			scalars = append(scalars, fmt.Sprintf("$%d::%s", firstEventColumn+i, c.kind))
		}
		list := strings.Join(names, ", ")
		inserts[groups] = eventInsert{
			columns: columns,
			one: pg.Declare("insert one of "+name, intoEvents+list+valuesOfEvents+strings.Join(scalars, ", ")+
				` FROM app_state s WHERE `+sameEpoch),
			many: pg.Declare("insert "+name, intoEvents+list+valuesOfEvents+pg.Prefixed("t", list)+
				` FROM app_state s CROSS JOIN unnest(`+strings.Join(arrays, ", ")+`) AS t (`+list+`) WHERE `+sameEpoch),
		}
	}
	return inserts
}()

// firstEventColumn is the first parameter after the application, the time, the epoch and
// the tolerance.
const firstEventColumn = 5

// writeEvents inserts the events in the order of their ids, so that two nodes which
// insert the same ids cannot deadlock.
func (b *appBatch) writeEvents(pipe *wire.Pipe, now, tolerance int64) {
	sorted := make([]*record, len(b.records)) // a record is hundreds of bytes
	for i := range b.records {
		sorted[i] = &b.records[i]
	}
	slices.SortFunc(sorted, func(a, b *record) int { return cmp.Compare(a.EventID, b.EventID) })
	insert := &eventInserts[b.rareGroups(now)]
	columns := make([]wire.Column, len(insert.columns))
	for i, c := range insert.columns {
		columns[i] = c.values
		for _, r := range sorted {
			c.put(&columns[i], r, now)
		}
	}
	pipe.SendRows(insert.one, insert.many, columns, b.scope.AppID[:], int8Param(now), int8Param(b.epoch), int8Param(tolerance))
}

// rareGroups is the set of groups of rare columns that the records need.
func (b *appBatch) rareGroups(now int64) (groups int) {
	for i := range b.records {
		for n := range rareColumns {
			if groups&(1<<n) == 0 && rareColumns[n].given(&b.records[i], now) {
				groups |= 1 << n
			}
		}
	}
	return groups
}

// record is an event with its sequence number, price and API key.
type record struct {
	metering.Event
	wallet      *walletState
	keyID       ids.ID
	priceNumber int64
	seq         int64
}

// quoted is the amount that the caller asked to charge, or nil when it equals the
// charge.
func (r *record) quoted() *metering.Amount {
	if r.Quoted != nil && *r.Quoted == r.Charge.Amount && r.DeduplicatedFrom.IsZero() {
		return nil
	}
	return r.Quoted
}
