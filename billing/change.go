package billing

import (
	"bytes"
	"time"

	"purser/ids"
)

// Change is a requested change of terms, from the request until it is paid or can no
// longer be. The first purchase is one too.
type Change struct {
	ID   ids.ID
	Kind ChangeKind // Checkout, Upgrade or Downgrade

	// SubscriptionID is zero for a checkout that has not created one yet.
	SubscriptionID ids.ID
	// Replaces is the subscription that a checkout replaces; zero for none.
	Replaces ids.ID

	Target      Terms // fixed when it was requested
	State       ChangeState
	RequestedAt int64

	// The provider's objects, as far as known.
	SessionID  string
	InvoiceID  string
	PaymentURL string
	ExpiresAt  int64 // zero for a downgrade
}

// ChangeKind is how a change of plan takes effect.
type ChangeKind string

const (
	StartFree ChangeKind = "start_free" // a first subscription, without payment
	Checkout  ChangeKind = "checkout"   // paid in a checkout session, as a new subscription
	Upgrade   ChangeKind = "upgrade"    // takes effect once paid, with a full new period
	Downgrade ChangeKind = "downgrade"  // takes effect at the renewal
	Keep      ChangeKind = "keep"       // keeps the plan and cancels scheduled and pending changes
)

type ChangeState string

// The states of a change. A dropped one was cancelled, superseded or not paid in
// time; if the provider still reports it as paid, it is applied.
const (
	ChangeRequested ChangeState = "requested" // not yet seen at the provider
	ChangePending   ChangeState = "pending"   // seen there, waiting for payment or renewal
	ChangeApplied   ChangeState = "applied"
	ChangeDropped   ChangeState = "dropped"
)

// debitTime is how long a bank debit may take: the slowest scheme has 14 days.
const debitTime = int64(14 * 24 * time.Hour / time.Millisecond)

// After applies the state of the checkout session to the change. Whether it was paid
// is decided by the subscription that the session creates: until then a complete
// session waits for its debit.
func (c Change) After(remote ProviderSession) Change {
	c.SessionID, c.ExpiresAt, c.PaymentURL = remote.ID, remote.ExpiresAt, remote.URL
	if remote.Status == SessionComplete && !remote.Paid {
		c.ExpiresAt, c.PaymentURL = remote.ExpiresAt+debitTime, ""
	}
	switch {
	case c.State == ChangeApplied:
	case remote.Status == SessionExpired:
		c.State = ChangeDropped
	default:
		c.State = ChangePending
	}
	return c
}

// replaces reports whether the change is a checkout that would replace s.
func (c Change) replaces(s Subscription) bool {
	return c.Kind == Checkout && !c.Replaces.IsZero() && c.Replaces == s.ID
}

// affects reports whether the open change could still alter or replace s.
func (c Change) affects(s Subscription) bool {
	open := c.State == ChangeRequested || c.State == ChangePending
	return open && (c.replaces(s) || c.Kind != Checkout && c.SubscriptionID == s.ID)
}

// requestedAfter orders changes by when they were requested.
func (c Change) requestedAfter(d Change) bool {
	if c.RequestedAt != d.RequestedAt {
		return c.RequestedAt > d.RequestedAt
	}
	return bytes.Compare(c.ID[:], d.ID[:]) > 0
}

// Awaiting sets Pending to the latest checkout that would replace s and can still be
// paid, or to nil.
func (s Subscription) Awaiting(changes []Change, now int64) Subscription {
	var latest *Change
	for i := range changes {
		c := &changes[i]
		if c.State == ChangePending && c.replaces(s) && now < c.ExpiresAt && (latest == nil || c.requestedAfter(*latest)) {
			latest = c
		}
	}
	s.Pending = nil
	if latest != nil && s.InUse() {
		s.Pending = &PendingChange{Target: latest.Target, ExpiresAt: latest.ExpiresAt, PaymentURL: latest.PaymentURL}
	}
	return s
}
