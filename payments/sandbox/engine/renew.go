package engine

// periodEnds starts the subscription's next period, or cancels the subscription.
func (a *Account) periodEnds(env Env, s *Subscription) {
	if s.Status != active && s.Status != pastDue || s.PeriodEnd > env.Now {
		return
	}
	if s.CancelAtPeriodEnd {
		a.cancelNow(env, s, "cancellation_requested")
		return
	}
	was := a.Render(s)
	if continues := a.enterNextPhase(env, s); !continues {
		a.cancelNow(env, s, "cancellation_requested")
		return
	}
	// A phase with another interval has moved the anchor here, so one rule serves both.
	s.PeriodStart = s.PeriodEnd
	s.PeriodEnd = a.interval(s.Items).following(s.Anchor, s.PeriodStart)
	a.setTimer(max(s.PeriodEnd, env.Now), periodEnds, s)
	lines := append(s.Prorations, a.linesFor(s.Items, s.PeriodStart, s.PeriodEnd)...)
	s.Prorations = nil
	s.LatestInvoice = a.newInvoice(env, s, reasonCycle, lines).ID
	a.emitChange(env, subscriptionUpdated, was, s)
}
