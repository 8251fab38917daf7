package billing

import (
	"purser/ids"
	"purser/metering"
)

// Subscription attaches terms to an identity, period by period.
type Subscription struct {
	ID       ids.ID
	Identity string

	// ProviderID is what the provider calls it. A free one that was started here
	// has none: it renews by the calendar, and nobody has to be asked.
	ProviderID string
	// ConnectionID is the account where the provider has it; zero for one that runs
	// here.
	ConnectionID ids.ID

	Status metering.SubscriptionStatus
	// Begun says that a period of it was paid, or free. Until then Period is the
	// one that the payment is for.
	Begun bool
	// Extra marks one that was bought while another was live. It never comes into
	// force: it is cancelled at the provider and its payments are given back.
	Extra bool

	Period metering.Period // the last one that was paid
	Anchor int64           // from which the periods of a free one count
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
	// Billed says that the renewal on the target's terms is billed and waits to be
	// charged. The provider does not take such a bill back to the terms of before: only
	// a payment for another plan replaces it.
	Billed bool
}

// PendingChange is an upgrade that waits for its payment. The terms of before
// hold meanwhile.
type PendingChange struct {
	Target     Terms
	ExpiresAt  int64
	PaymentURL string // where to pay; empty when there is no such page
}

// Begin is a subscription that a checkout brought into being at the provider,
// before anything is known about its payment.
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

// Local reports whether the subscription is free and unknown to the provider.
func (s Subscription) Local() bool { return s.ProviderID == "" }

// PaymentHold reports whether a payment is outstanding, so that the plan's
// benefits rest.
func (s Subscription) PaymentHold() bool {
	return s.Status == metering.StatusPastDue || s.Status == metering.StatusUnpaid
}

// downgradeBilled reports whether a downgrade is billed, and only its charge is outstanding.
func (s Subscription) downgradeBilled() bool { return s.Scheduled != nil && s.Scheduled.Billed }

// Live reports whether the identity has a plan by it, in force or resting.
func (s Subscription) Live() bool { return s.Status.Live() }

// Ended reports whether it is over, for good.
func (s Subscription) Ended() bool { return s.Status == metering.StatusCanceled }

// PendingAt is the change that waits for payment at the moment. One that has
// expired is none, also before the provider says so.
func (s Subscription) PendingAt(now int64) *PendingChange {
	if s.Pending == nil || now >= s.Pending.ExpiresAt {
		return nil
	}
	return s.Pending
}

// End gives the subscription once it is over. Nothing waits on it any more.
func (s Subscription) End(at int64) Subscription {
	if s.Ended() {
		return s
	}
	s.Status, s.EndedAt = metering.StatusCanceled, at
	s.Scheduled, s.Pending = nil, nil
	return s
}
