package billing

// Transition is what happened to a subscription between two stored states.
type Transition string

// The transitions. Of several at once the first in this order counts.
const (
	Unchanged     Transition = ""
	Ended         Transition = "ended"
	PaymentFailed Transition = "payment_failed"
	Started       Transition = "started"
	Renewed       Transition = "renewed"
	Updated       Transition = "updated"
)

// TransitionFrom compares a subscription with its earlier state, nil for none. One that
// never began, and a duplicate, tell nothing.
func (s Subscription) TransitionFrom(before *Subscription) Transition {
	if s.Duplicate || !s.Begun {
		return Unchanged
	}
	if before == nil || !before.Begun {
		if s.Ended() {
			return Unchanged
		}
		return Started
	}
	switch {
	case s.Ended() && !before.Ended():
		return Ended
	case s.PaymentHold() && !before.PaymentHold():
		return PaymentFailed
	case s.Period.Start > before.Period.Start:
		return Renewed
	case s.Status != before.Status, s.Terms.PlanKey != before.Terms.PlanKey, s.Terms.PriceID != before.Terms.PriceID,
		s.CancelAtPeriodEnd != before.CancelAtPeriodEnd, (s.Scheduled == nil) != (before.Scheduled == nil), (s.Pending == nil) != (before.Pending == nil):
		return Updated
	}
	return Unchanged
}
