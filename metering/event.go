package metering

import "purser/ids"

// Usage is a request to use a feature, as the caller described it. A check has no
// event id and no transaction.
type Usage struct {
	// TransactionID is created before the first attempt and kept through retries, so
	// that a commit whose response was lost is recognised.
	TransactionID ids.ID
	EventID       string
	Feature       *Feature
	EntityID      string // empty for none, which is an entity of its own
	Quantity      int64  // from 1 to MaxQuantity
	Amount        *Amount
	OccurredAt    *int64 // now, when nil
	Properties    Properties
}

func (u *Usage) occurredAt(now int64) int64 {
	if u.OccurredAt != nil {
		return *u.OccurredAt
	}
	return now
}

// Event is the record of accepted or deduplicated usage, with everything that explains
// its amount.
type Event struct {
	TransactionID    ids.ID
	EventID          string // the caller's, unique in the application
	WalletID         ids.ID
	FeatureID        ids.ID
	CreditID         ids.ID
	EntityID         string
	Quantity         int64
	Quoted           *Amount // what the caller of a callback feature asked to charge
	OccurredAt       int64
	CreatedAt        int64
	Period           Period // of deduplication; zero when the feature has none
	DeduplicatedFrom ids.ID // the transaction that was charged; zero when this one was accepted
	Charge           Charge
	Allowance        Allowance // zero when no limit counts this usage
	BalanceAfter     Amount
	DebtAfter        Amount
	Properties       Properties
}

// Charge is how an amount came about. A fixed price is Price of its fields; a
// callback charge is ceil(quoted × Billable ÷ quantity) of its event.
type Charge struct {
	Amount          Amount
	PricingMode     PricingMode
	Cost            Amount // as the feature had it; of no effect when priced by callback
	QuantityPerUnit int64
	BasisPoints     int64
	Billable        int64 // the part of the quantity that no allowance covered
	FeatureRevision int64
}

// Allowance is the state of a limit before the usage, and the part that it covered. The
// zero Allowance is that of a feature without a limit; such usage is not counted, so
// usage paid before a plan takes nothing from the plan's allowance.
type Allowance struct {
	Limit   int64
	Used    int64 // before the usage
	Covered int64 // the included part of the quantity
	Period  Period
	Overage Overage
}

func (a Allowance) Limited() bool { return a.Overage != "" }

// Remaining is the rest of the limit before the usage. It is never negative, although
// Used exceeds the limit with paid overage, or after a change to terms with a lower
// limit.
func (a Allowance) Remaining() int64 { return max(0, a.Limit-a.Used) }

// UsedAfter is the counter of the allowance's period once the event is stored:
// the whole quantity counts, covered or paid.
func (e *Event) UsedAfter() int64 { return e.Allowance.Used + e.Quantity }

// Entry is the journal entry of an accepted event. The store assigns its sequence
// number in the wallet.
func (e *Event) Entry() Entry {
	return Entry{
		ID:           e.TransactionID,
		WalletID:     e.WalletID,
		Kind:         EntryCharge,
		CreditID:     e.CreditID,
		Delta:        Delta{Amount: e.Charge.Amount, Out: true},
		BalanceAfter: e.BalanceAfter,
		DebtAfter:    e.DebtAfter,
		CreatedAt:    e.CreatedAt,
	}
}

// describes reports whether a repeat has the same fields as the first event. A repeat
// without occurredAt matches any.
func (e *Event) describes(walletID ids.ID, usage *Usage) bool {
	return e.WalletID == walletID &&
		e.FeatureID == usage.Feature.ID &&
		e.EntityID == usage.EntityID &&
		e.Quantity == usage.Quantity &&
		(usage.OccurredAt == nil || *usage.OccurredAt == e.OccurredAt) &&
		sameAmount(e.Quoted, usage.Amount) &&
		e.Properties == usage.Properties
}

func sameAmount(a, b *Amount) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
