package metering

import "purser/fault"

// Reversed is what the reversals of an event have returned so far.
type Reversed struct {
	Amount Amount
	Full   bool
}

// Reversal is the decision to return a charge, or a part of it.
type Reversal struct {
	Amount Amount
	// Full is set when nothing of the charge is left. The event then no longer counts
	// against its allowance, and its deduplication period is not billed.
	Full bool
}

// Reverse decides the reversal of an event. Without an amount it returns what is left of
// the charge, which may be zero for usage that an allowance covered. The sum of all
// reversals never exceeds the charge.
func (e *Event) Reverse(earlier Reversed, requested *Amount) (Reversal, error) {
	if !e.DeduplicatedFrom.IsZero() {
		return Reversal{}, fault.Newf(fault.EventNotReversible, "This event was deduplicated and cost nothing. Reverse the charged event instead.")
	}
	left, ok := e.Charge.Amount.Sub(earlier.Amount)
	if !ok {
		return Reversal{}, fault.New(fault.ReversalTooLarge)
	}
	amount := left
	switch {
	case requested != nil && *requested == 0:
		return Reversal{}, fault.Newf(fault.InvalidRequest, "The amount must be greater than zero.")
	case requested != nil && *requested > left:
		return Reversal{}, fault.Newf(fault.ReversalTooLarge, "%s nanocredits of this charge are left to reverse.", left)
	case requested != nil:
		amount = *requested
	case earlier.Full:
		return Reversal{}, fault.Newf(fault.EventNotReversible, "This event was already fully reversed.")
	}
	return Reversal{Amount: amount, Full: amount == left}, nil
}

// Counter is what a full reversal returns to: the counter of the event's allowance. Its
// period is zero when no limit counted the event.
func (e *Event) Counter() CounterKey {
	return CounterKey{FeatureID: e.FeatureID, Period: e.Allowance.Period}
}

// Billed is the deduplication period that the event was charged for, or has no period.
func (e *Event) Billed() BilledKey {
	return BilledKey{FeatureID: e.FeatureID, EntityID: e.EntityID, Period: e.Period}
}
