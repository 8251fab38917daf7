package billing

import "purser/metering"

// The provider's objects as billing uses them. Times are in milliseconds; a missing id
// is empty and a missing time is zero.

// ProviderSubscription is a subscription as the provider reports it, with its invoices
// in any order. Those that may have been paid since the last report have to be
// included.
type ProviderSubscription struct {
	ID                string
	Status            ProviderStatus
	PriceID           string          // of its one item; it changes an hour before a renewal is charged
	Period            metering.Period // the current one, paid or not
	CancelAtPeriodEnd bool
	CancelAt          int64
	EndedAt           int64
	Pending           *ProviderPending // an update that waits for payment
	Next              *ProviderPhase   // the phase of its schedule that comes next
	Invoices          []ProviderInvoice
}

// EndsWithPeriod reports whether the current period is the last one. The provider's own
// portal sets a date and not the flag; a date in a later period leaves renewals to come.
func (s ProviderSubscription) EndsWithPeriod() bool {
	return s.CancelAtPeriodEnd || s.CancelAt > 0 && s.CancelAt <= s.Period.End
}

// ProviderStatus is the provider's status of a subscription.
type ProviderStatus string

const (
	ProviderIncomplete        ProviderStatus = "incomplete"
	ProviderIncompleteExpired ProviderStatus = "incomplete_expired"
	ProviderTrialing          ProviderStatus = "trialing"
	ProviderActive            ProviderStatus = "active"
	ProviderPastDue           ProviderStatus = "past_due"
	ProviderUnpaid            ProviderStatus = "unpaid"
	ProviderPaused            ProviderStatus = "paused"
	ProviderCanceled          ProviderStatus = "canceled"
)

// Terminal reports whether nothing can follow.
func (s ProviderStatus) Terminal() bool {
	return s == ProviderCanceled || s == ProviderIncompleteExpired
}

// ProviderPending is an update that the provider makes once it is paid.
type ProviderPending struct {
	PriceID   string
	ExpiresAt int64
}

// ProviderPhase is a later phase of a schedule.
type ProviderPhase struct {
	PriceID string
	At      int64
}

// ProviderInvoice is an invoice of a subscription.
type ProviderInvoice struct {
	ID         string
	Status     InvoiceStatus
	Reason     InvoiceReason
	CreatedAt  int64
	PaidAt     int64
	AmountDue  int64 // after the customer's balance
	AmountPaid int64
	// FromBalance is how much of it the customer's balance at the provider has paid.
	FromBalance int64
	// FinalizesAt is when a draft is finalized and charged; zero for any other
	// invoice.
	FinalizesAt int64
	Currency    string
	CustomerID  string
	IntentID    string
	ChargeID    string
	PaymentURL  string
	Lines       []ProviderLine
}

type InvoiceStatus string

// The statuses of an invoice.
const (
	InvoiceDraft         InvoiceStatus = "draft"
	InvoiceOpen          InvoiceStatus = "open"
	InvoicePaid          InvoiceStatus = "paid"
	InvoiceVoid          InvoiceStatus = "void"
	InvoiceUncollectible InvoiceStatus = "uncollectible"
)

// InvoiceReason is the provider's billing_reason. Only these three buy a period; the
// provider has others.
type InvoiceReason string

// The reasons that buy a period.
const (
	ReasonCreate InvoiceReason = "subscription_create"
	ReasonCycle  InvoiceReason = "subscription_cycle"
	ReasonUpdate InvoiceReason = "subscription_update"
)

type ProviderLine struct {
	Subscription bool // it bills a subscription, not an extra item
	Proration    bool
	PriceID      string
	AmountCents  int64 // before discounts and the customer's balance
	Period       metering.Period
}

type ProviderSession struct {
	ID             string
	Status         SessionStatus
	Paid           bool // the provider has confirmed the payment
	Failed         bool // a processing payment has failed
	Live           bool
	AmountTotal    int64
	Currency       string
	CustomerID     string
	SubscriptionID string
	IntentID       string
	ChargeID       string
	URL            string
	ExpiresAt      int64
}

// SessionStatus is the provider's status of a checkout session.
type SessionStatus string

// The statuses of a session. A complete one may still be unpaid: a bank debit
// takes days.
const (
	SessionOpen     SessionStatus = "open"
	SessionComplete SessionStatus = "complete"
	SessionExpired  SessionStatus = "expired"
)

// ProviderCharge is a charge with its refunds and disputes.
type ProviderCharge struct {
	ID          string
	IntentID    string
	AmountCents int64
	Refunds     []ProviderRefund
	Disputes    []ProviderDispute
}

// ProviderRefund is money sent back.
type ProviderRefund struct {
	ID          string
	AmountCents int64
	Status      string // failed and canceled ones did not happen
}

// ProviderDispute is a dispute. Movements counts its balance transactions: none for an
// inquiry, one when the money was withdrawn, two when it was reinstated.
type ProviderDispute struct {
	ID          string
	AmountCents int64
	Status      string
	Movements   int
}
