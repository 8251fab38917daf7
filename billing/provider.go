package billing

import "purser/metering"

// What the provider says, in our words. Times are milliseconds; an id that is
// absent is empty and a time that is absent is zero.

// ProviderSubscription is a subscription as it stands at the provider, with its
// invoices. Those that may have been paid since the last look have to be among
// them, in any order.
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

// ProviderStatus is the provider's own word for where a subscription stands.
type ProviderStatus string

// The statuses of the provider.
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

// ProviderPhase is what a schedule will make of a subscription.
type ProviderPhase struct {
	PriceID string
	At      int64
}

// ProviderInvoice is a bill for a subscription.
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
	// FinalizesAt is when a draft is finalised and charged; zero for any other invoice.
	FinalizesAt int64
	Currency    string
	CustomerID  string
	IntentID    string
	ChargeID    string
	PaymentURL  string
	Lines       []ProviderLine
}

// InvoiceStatus is how far an invoice has come.
type InvoiceStatus string

// The statuses of an invoice.
const (
	InvoiceDraft         InvoiceStatus = "draft"
	InvoiceOpen          InvoiceStatus = "open"
	InvoicePaid          InvoiceStatus = "paid"
	InvoiceVoid          InvoiceStatus = "void"
	InvoiceUncollectible InvoiceStatus = "uncollectible"
)

// InvoiceReason is why the provider made an invoice. Only these three buy a
// period; the provider has others.
type InvoiceReason string

// The reasons that buy a period.
const (
	ReasonCreate InvoiceReason = "subscription_create"
	ReasonCycle  InvoiceReason = "subscription_cycle"
	ReasonUpdate InvoiceReason = "subscription_update"
)

// ProviderLine is one line of an invoice.
type ProviderLine struct {
	Subscription bool // it bills a subscription, and not something thrown in
	Proration    bool
	PriceID      string
	AmountCents  int64 // before discounts and the customer's balance
	Period       metering.Period
}

// ProviderSession is a hosted checkout.
type ProviderSession struct {
	ID             string
	Status         SessionStatus
	Paid           bool // the provider has confirmed the payment
	Failed         bool // a payment that was under way has failed
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

// SessionStatus is how far a hosted checkout has come.
type SessionStatus string

// The statuses of a session. A complete one may still be unpaid: a bank debit
// takes days.
const (
	SessionOpen     SessionStatus = "open"
	SessionComplete SessionStatus = "complete"
	SessionExpired  SessionStatus = "expired"
)

// ProviderCharge is what was collected for a payment, and what of it went back.
type ProviderCharge struct {
	ID       string
	IntentID string
	Refunds  []ProviderRefund
	Disputes []ProviderDispute
}

// ProviderRefund is money sent back.
type ProviderRefund struct {
	ID          string
	AmountCents int64
	Status      string // failed and canceled ones did not happen
}

// ProviderDispute is money that the holder's bank asks back. Movements counts
// its balance transactions: none for an inquiry, one when the money was
// withdrawn, two when it was reinstated.
type ProviderDispute struct {
	ID          string
	AmountCents int64
	Status      string
	Movements   int
}
