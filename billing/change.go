package billing

import (
	"bytes"
	"time"

	"purser/ids"
)

// Change is a wish to be on other terms, from the moment it is made until it has
// been paid for or can no longer be. The first purchase is one too.
type Change struct {
	ID   ids.ID
	Kind ChangeKind // Checkout, Upgrade or Downgrade

	// SubscriptionID is zero for a checkout that has made none yet.
	SubscriptionID ids.ID
	// Replaces is the subscription whose place a checkout takes; zero for none.
	Replaces ids.ID

	Target      Terms // frozen when it was asked for
	State       ChangeState
	RequestedAt int64

	// What the provider made of it, as far as it is known.
	SessionID  string
	InvoiceID  string
	PaymentURL string
	ExpiresAt  int64 // zero for a downgrade
}

// ChangeKind is what a change of plan amounts to.
type ChangeKind string

// The kinds of change.
const (
	StartFree ChangeKind = "start_free" // there is no subscription, and none has to be paid
	Checkout  ChangeKind = "checkout"   // paid for on a hosted page, as a subscription of its own
	Upgrade   ChangeKind = "upgrade"    // takes effect once paid, with a full new period
	Downgrade ChangeKind = "downgrade"  // takes effect with the renewal
	Keep      ChangeKind = "keep"       // stays on its plan: what was to change it is called off
)

// ChangeState is how far a change has come.
type ChangeState string

// The states of a change. A dropped one was called off, superseded or not paid in
// time; should the provider nevertheless report it as paid, then it is applied.
const (
	ChangeRequested ChangeState = "requested" // not yet seen at the provider
	ChangePending   ChangeState = "pending"   // seen there, waiting for payment or renewal
	ChangeApplied   ChangeState = "applied"
	ChangeDropped   ChangeState = "dropped"
)

// debitTime is how long a bank debit may take: the slowest scheme has 14 days.
const debitTime = int64(14 * 24 * time.Hour / time.Millisecond)

// After gives the change of a hosted checkout once the provider has said where
// its session stands. Whether it was paid is told by the subscription that the
// session made: until then a complete one waits for its debit.
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

// replaces reports whether the change would put another subscription in this
// one's place.
func (c Change) replaces(s Subscription) bool {
	return c.Kind == Checkout && !c.Replaces.IsZero() && c.Replaces == s.ID
}

// affects reports whether the subscription may still come to be on other terms,
// or give way to another, by the change.
func (c Change) affects(s Subscription) bool {
	open := c.State == ChangeRequested || c.State == ChangePending
	return open && (c.replaces(s) || c.Kind != Checkout && c.SubscriptionID == s.ID)
}

// requestedAfter orders changes by when they were asked for.
func (c Change) requestedAfter(d Change) bool {
	if c.RequestedAt != d.RequestedAt {
		return c.RequestedAt > d.RequestedAt
	}
	return bytes.Compare(c.ID[:], d.ID[:]) > 0
}

// Awaiting gives the subscription with the change that waits on a checkout page
// to put another in its place, if there is one.
func (s Subscription) Awaiting(changes []Change, now int64) Subscription {
	var latest *Change
	for i := range changes {
		c := &changes[i]
		if c.State == ChangePending && c.replaces(s) && now < c.ExpiresAt && (latest == nil || c.requestedAfter(*latest)) {
			latest = c
		}
	}
	s.Pending = nil
	if latest != nil && s.Live() {
		s.Pending = &PendingChange{Target: latest.Target, ExpiresAt: latest.ExpiresAt, PaymentURL: latest.PaymentURL}
	}
	return s
}
