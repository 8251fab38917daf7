package billing

import (
	"slices"

	"purser/ids"
	"purser/metering"
)

// Payment is a money object of the provider, or a free period, and the credits
// that it brought. There is one for each source, for ever: the source is the key
// under which the ledger takes it once.
type Payment struct {
	Source Source

	// Credits is what came in. It is empty for an object that was looked at and
	// brings nothing, so that it is not looked at again.
	Credits []Grant

	AmountCents int64 // what was paid
	Currency    string
	IntentID    string // the provider's payment intent and charge, by which
	ChargeID    string // refunds and disputes find their payment

	// Of a plan's grant:
	PlanID ids.ID
	Period metering.Period
	Free   bool

	// What the provider took back of the money, and what was therefore taken back
	// of the credits. Zero at first.
	RefundedCents int64
	DisputedCents int64
	TakenBack     []Grant
}

// Source names what a payment came from.
type Source struct {
	Kind SourceKind
	ID   string
}

// SourceKind is the kind of a money object.
type SourceKind string

// The kinds of money objects. A free period has no object at the provider.
const (
	Invoice    SourceKind = "invoice"
	Session    SourceKind = "session"
	FreePeriod SourceKind = "free_period"
)

// EntryKind is how the journal calls what the payment brings.
func (p Payment) EntryKind() metering.EntryKind {
	if p.Source.Kind == Session {
		return metering.EntryTopUp
	}
	return metering.EntryGrant
}

func hasPayment(payments []Payment, source Source) bool {
	return slices.ContainsFunc(payments, func(p Payment) bool { return p.Source == source })
}
