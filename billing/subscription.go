package billing

import (
	"purser/ids"
	"purser/metering"
)

// Subscription attaches terms to an identity, period by period.
type Subscription struct {
	ID       ids.ID
	Identity string

	// ProviderID is the provider's id. A free subscription that was started here has
	// none: it renews by the calendar, without the provider.
	ProviderID string
	// ConnectionID is the account that holds it; zero for a local one.
	ConnectionID ids.ID

	Status metering.SubscriptionStatus
	// Begun says that a period was paid, or free. Until then Period is the one that
	// the payment is for.
	Begun bool
	// Duplicate marks a subscription that was bought while another was live. It never comes
	// into force: it is cancelled at the provider and its payments are refunded.
	Duplicate bool

	Period metering.Period // the last one that was paid
	Anchor int64           // billing anchor of a free one
	Terms  Terms

	CancelAtPeriodEnd bool
	Scheduled         *ScheduledChange // nil for none
	Pending           *PendingChange   // nil for none

	CreatedAt int64
	EndedAt   int64 // zero until it has ended
}

// ScheduledChange is a downgrade that waits for the renewal.
type ScheduledChange struct {
	Target      Terms
	EffectiveAt int64
	// Billed says that the renewal on the target's terms is invoiced and waits to be
	// charged. The provider does not change such an invoice back: only a payment for
	// another plan replaces it.
	Billed bool
}

// PendingChange is an upgrade that waits for its payment. The current terms apply
// meanwhile.
type PendingChange struct {
	Target     Terms
	ExpiresAt  int64
	PaymentURL string // where to pay; empty when there is no such page
}

// Begin is a subscription that a checkout created at the provider, before its payment
// is known.
func Begin(id ids.ID, identity, providerID string, bought Change, now int64) Subscription {
	return Subscription{
		ID:         id,
		Identity:   identity,
		ProviderID: providerID,
		Status:     metering.StatusIncomplete,
		Terms:      bought.Target,
		CreatedAt:  now,
	}
}

// Local reports whether the subscription is free and not at the provider.
func (s Subscription) Local() bool { return s.ProviderID == "" }

// PaymentHold reports whether a payment is overdue, which suspends the plan's
// benefits.
func (s Subscription) PaymentHold() bool {
	return s.Status == metering.StatusPastDue || s.Status == metering.StatusUnpaid
}

// downgradeBilled reports whether the scheduled downgrade is invoiced and only its
// charge is outstanding.
func (s Subscription) downgradeBilled() bool { return s.Scheduled != nil && s.Scheduled.Billed }

// InUse reports whether the identity has a plan by it, in force or suspended.
func (s Subscription) InUse() bool { return s.Status.InUse() }

// Ended reports whether it has ended, which is final.
func (s Subscription) Ended() bool { return s.Status == metering.StatusCanceled }

// PendingAt is the pending change at a time. An expired one counts as none, also
// before the provider reports it.
func (s Subscription) PendingAt(now int64) *PendingChange {
	if s.Pending == nil || now >= s.Pending.ExpiresAt {
		return nil
	}
	return s.Pending
}

// End is the subscription after its end, without scheduled or pending changes.
func (s Subscription) End(at int64) Subscription {
	if s.Ended() {
		return s
	}
	s.Status, s.EndedAt = metering.StatusCanceled, at
	s.Scheduled, s.Pending = nil, nil
	return s
}
