package engine

import "purser/billing/sandbox/persist"

// cancelLater sets when the subscription will end; zero takes that back.
func (w *Account) cancelLater(m Clock, s *Subscription, at Time, atPeriodEnd bool) {
	s.CancelAt, s.CancelAtPeriodEnd = at, atPeriodEnd
	if at == 0 {
		s.CanceledAt = 0
		return
	}
	s.CanceledAt = m.Now
	// The end of the period has a timer of its own.
	if !atPeriodEnd {
		w.setTimer(at, cancelDue, s)
	}
}

func (w *Account) cancelDue(m Clock, s *Subscription) {
	if !s.ended() && s.CancelAt == m.Now {
		w.end(m, s, "cancellation_requested")
	}
}

// CancelSubscription ends it at once.
func (w *Account) CancelSubscription(m Clock, id string) (*Subscription, error) {
	s, err := Get(w.Subscriptions, "subscription", id)
	if err != nil || s.ended() {
		return nil, NotFound("subscription", id)
	}
	w.end(m, s, "cancellation_requested")
	return s, nil
}

// end cancels the subscription, and everything that would go on by itself.
// Invoices that are open stay so, but nothing is taken for them any more.
func (w *Account) end(m Clock, s *Subscription, reason string) {
	if s.Pending != nil {
		invoice := w.Invoices.Get(s.Pending.Invoice)
		s.Pending = nil
		w.void(m, invoice)
	}
	for _, invoice := range w.Invoices.By(persist.ByLiveOf, s.ID) {
		invoice.Advances, invoice.NextAttempt = false, 0
	}
	if schedule := w.Schedules.Get(s.Schedule); schedule != nil {
		schedule.Status, schedule.CanceledAt = canceled, m.Now
		s.Schedule = ""
		w.emit(m, "subscription_schedule.canceled", schedule)
	}
	s.Status, s.EndedAt, s.EndReason = canceled, m.Now, reason
	if s.CanceledAt == 0 {
		s.CanceledAt = m.Now
	}
	w.emit(m, "customer.subscription.deleted", s)
}
