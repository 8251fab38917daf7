package verify

import (
	"purser/ids"
	"purser/metering"
	"purser/store/internal/wire"
)

// verifiedEntry is one entry of a wallet as it is stored: a row of the journal, or
// a usage event with its charge.
type verifiedEntry struct {
	wallet       ids.ID
	org          ids.ID
	id           ids.ID // of the journal's row, or the event's transaction
	seq          int64
	createdAt    int64
	balanceAfter metering.Amount
	debtAfter    metering.Amount

	// Of a row of the journal:
	kind           metering.EntryKind
	credit         ids.ID // of an event: by its price
	delta          metering.Delta
	idempotencyKey optionalValue[string]
	sourceKind     optionalValue[string]
	sourceID       optionalValue[string]

	// Of a reversal: what it returned. The price, quantity and periods below are those
	// of its event.
	reversed optionalValue[metering.Amount]
	whole    bool

	// Of an event:
	event       bool
	eventID     string // as it is stored
	keyID       ids.ID
	priceNumber int64
	quantity    int64
	amount      metering.Amount
	occurredAt  optionalValue[int64]
	periodStart optionalValue[int64]
	periodEnd   optionalValue[int64]
	limit       optionalValue[int64]
	used        optionalValue[int64]
	limitStart  optionalValue[int64]
	limitEnd    optionalValue[int64]
	basisPoints optionalValue[int64]
	quoted      optionalValue[metering.Amount]
	debtStored  optionalValue[metering.Amount]
	original    ids.ID // that it was deduplicated from; zero when it was accepted
	overage     optionalValue[string]
	entityID    optionalValue[string]
}

// optionalValue is a column that may be NULL.
type optionalValue[T any] struct {
	value T
	set   bool
}

func (e *verifiedEntry) occurred() int64 {
	if e.occurredAt.set {
		return e.occurredAt.value
	}
	return e.createdAt
}

func (e *verifiedEntry) period() metering.Period {
	return metering.Period{Start: e.periodStart.value, End: e.periodEnd.value}
}

func (e *verifiedEntry) allowancePeriod() metering.Period {
	return metering.Period{Start: e.limitStart.value, End: e.limitEnd.value}
}

func (e *verifiedEntry) accepted() bool { return e.event && e.original.IsZero() }

const verifiedEventColumns = `
	wallet_id, seq, org_id, tx_id, key_id, price_number, quantity, created_at, occurred_at, period_start, period_end,
	allowance_limit, allowance_used, allowance_start, allowance_end, basis_points, amount_nanocredits, balance_after, debt_after,
	quoted_nanocredits, deduplicated_from, allowance_overage, event_id, entity_id`

// readEvent reads an event. One that names no organization has that of its application,
// which seals include.
func (e *verifiedEntry) readEvent(r *wire.Row, ofApp ids.ID) {
	e.event, e.kind = true, metering.EntryCharge
	e.wallet, e.seq = r.ID(), r.Int8()
	named := !r.IsNull()
	e.org, e.id, e.keyID = r.ID(), r.ID(), r.ID()
	if !named {
		e.org = ofApp
	}
	e.priceNumber, e.quantity, e.createdAt = r.Int8(), r.Int8(), r.Int8()
	e.occurredAt, e.periodStart, e.periodEnd = optionalInt(r), optionalInt(r), optionalInt(r)
	e.limit, e.used, e.limitStart, e.limitEnd = optionalInt(r), optionalInt(r), optionalInt(r), optionalInt(r)
	e.basisPoints.set = !r.IsNull()
	e.basisPoints.value = int64(r.Int4())
	e.amount, e.balanceAfter = r.Amount(), r.Amount()
	e.debtStored, e.quoted = optionalAmount(r), optionalAmount(r)
	e.debtAfter = e.debtStored.value
	e.original = r.ID()
	e.overage = optionalText(r)
	e.eventID = r.Text()
	e.entityID = optionalText(r)
	e.delta = metering.Delta{Amount: e.amount, Out: true}
}

func (e *verifiedEntry) readJournal(r *wire.Row) {
	e.wallet, e.seq, e.org, e.id = r.ID(), r.Int8(), r.ID(), r.ID()
	e.kind, e.credit = metering.EntryKind(r.Text()), r.ID()
	e.delta = metering.Delta{Amount: r.Amount(), Out: r.Bool()}
	e.balanceAfter, e.debtAfter = r.Amount(), r.Amount()
	e.idempotencyKey = optionalText(r)
	e.createdAt = r.Int8()
	e.sourceKind, e.sourceID = optionalText(r), optionalText(r)
}

func optionalInt(r *wire.Row) optionalValue[int64] {
	set := !r.IsNull()
	return optionalValue[int64]{r.Int8(), set}
}

func optionalAmount(r *wire.Row) optionalValue[metering.Amount] {
	set := !r.IsNull()
	return optionalValue[metering.Amount]{r.Amount(), set}
}

func optionalText(r *wire.Row) optionalValue[string] {
	set := !r.IsNull()
	return optionalValue[string]{r.Text(), set}
}
