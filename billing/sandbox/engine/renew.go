package engine

// periodEnds begins the subscription's next period, or ends the subscription.
func (w *Account) periodEnds(m Clock, s *Subscription) {
	if s.Status != active && s.Status != pastDue || s.PeriodEnd > m.Now {
		return
	}
	if s.CancelAtPeriodEnd {
		w.end(m, s, "cancellation_requested")
		return
	}
	was := w.Render(s)
	if goesOn := w.turnSchedule(m, s); !goesOn {
		w.end(m, s, "cancellation_requested")
		return
	}
	// A change of interval has moved the anchor here, so one rule serves both.
	s.PeriodStart = s.PeriodEnd
	s.PeriodEnd = w.interval(s.Items).following(s.Anchor, s.PeriodStart)
	w.setTimer(max(s.PeriodEnd, m.Now), periodEnds, s)
	lines := append(s.Prorations, w.linesFor(s.Items, s.PeriodStart, s.PeriodEnd)...)
	s.Prorations = nil
	invoice, err := w.newInvoice(m, s, reasonCycle, lines)
	if err != nil {
		// The sandbox is full: it cannot renew, and says so by ending.
		w.end(m, s, "payment_failed")
		return
	}
	s.LatestInvoice = invoice.ID
	w.emitChange(m, subscriptionUpdated, was, s)
}
