package billing

import (
	"slices"

	"purser/ids"
	"purser/metering"
)

// Payment is a payment object of the provider, or a free period, with the credits that
// it granted. There is exactly one for each source: the ledger books a source once.
type Payment struct {
	Source Source

	// Credits is what was granted. It is empty for an object that grants nothing and
	// is stored only so that it is not processed again.
	Credits []Grant

	AmountCents  int64 // what was charged, and can be refunded
	BalanceCents int64 // what the customer's balance at the provider paid beside it
	Currency     string
	IntentID     string // the provider's payment intent and charge, by which
	ChargeID     string // refunds and disputes find their payment

	// Of a plan's grant:
	PlanID ids.ID
	Period metering.Period
	Free   bool

	// Money that the provider has returned, and the credits clawed back for it.
	RefundedCents int64
	DisputedCents int64
	LostCents     int64 // of DisputedCents, in disputes that are closed
	TakenBack     []Grant
}

// Source identifies what a payment came from.
type Source struct {
	Kind SourceKind
	ID   string
}

type SourceKind string

// The kinds of payment objects. A free period has no object at the provider.
const (
	Invoice    SourceKind = "invoice"
	Session    SourceKind = "session"
	FreePeriod SourceKind = "free_period"
)

// EntryKind is the kind of the payment's journal entries.
func (p Payment) EntryKind() metering.EntryKind {
	if p.Source.Kind == Session {
		return metering.EntryTopUp
	}
	return metering.EntryGrant
}

func hasPayment(payments []Payment, source Source) bool {
	return slices.ContainsFunc(payments, func(p Payment) bool { return p.Source == source })
}
