package engine

import (
	"cmp"

	"purser/payments/sandbox/persist"
)

// cancelLater schedules the cancellation of the subscription; zero clears it.
func (a *Account) cancelLater(env Env, s *Subscription, at Time, atPeriodEnd bool) {
	s.CancelAt, s.CancelAtPeriodEnd = at, atPeriodEnd
	if at == 0 {
		s.CanceledAt = 0
		return
	}
	s.CanceledAt = env.Now
	// The end of the period has a timer of its own.
	if !atPeriodEnd {
		a.setTimer(at, cancelDue, s)
	}
}

func (a *Account) cancelDue(env Env, s *Subscription) {
	if !s.ended() && s.CancelAt == env.Now {
		a.cancelNow(env, s, "cancellation_requested")
	}
}

// CancelSubscription cancels a subscription immediately.
func (a *Account) CancelSubscription(env Env, id string) (*Subscription, error) {
	s, err := Get(a.Subscriptions, "subscription", id)
	if err != nil || s.ended() {
		return nil, NotFound("subscription", id)
	}
	a.cancelNow(env, s, "cancellation_requested")
	return s, nil
}

// cancelNow cancels the subscription, its schedule and its pending update. Open invoices
// stay open, but are no longer collected automatically.
func (a *Account) cancelNow(env Env, s *Subscription, reason string) {
	if s.Pending != nil {
		invoice := a.Invoices.Get(s.Pending.Invoice)
		s.Pending = nil
		a.void(env, invoice)
	}
	for _, invoice := range a.Invoices.By(persist.ByLiveOf, s.ID) {
		invoice.Advances, invoice.NextAttempt = false, 0
	}
	if schedule := a.Schedules.Get(s.Schedule); schedule != nil {
		schedule.Status, schedule.CanceledAt = canceled, env.Now
		s.Schedule = ""
		a.emit(env, "subscription_schedule.canceled", schedule)
	}
	s.Status, s.EndedAt, s.EndReason = canceled, env.Now, reason
	s.CanceledAt = cmp.Or(s.CanceledAt, env.Now)
	a.emit(env, "customer.subscription.deleted", s)
}
