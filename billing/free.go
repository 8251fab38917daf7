package billing

import (
	"strconv"

	"purser/ids"
	"purser/metering"
)

// maxFreePeriods is how many periods one call renews at most: two years of months. A
// subscription that is still behind is renewed by the next call.
const maxFreePeriods = 24

// StartFreeSubscription starts a free subscription and settles its first period.
// payments are the identity's earlier grants.
func StartFreeSubscription(id ids.ID, identity string, terms Terms, payments []Payment, now int64) (Subscription, []Payment) {
	s := Subscription{
		ID:        id,
		Identity:  identity,
		Status:    metering.StatusActive,
		Begun:     true,
		Period:    terms.Interval.Containing(now, now),
		Anchor:    now,
		Terms:     terms,
		CreatedAt: now,
	}
	return s, freePayment(s, payments)
}

// RenewFree renews a free subscription up to the period of now, with the changes and
// credits of each period in between, at most maxFreePeriods.
func RenewFree(s Subscription, payments []Payment, now int64) (Subscription, []Payment) {
	var settled []Payment
	for range maxFreePeriods {
		if s.Ended() || now < s.Period.End {
			break
		}
		if s = s.renewPeriod(); s.Ended() {
			break
		}
		fresh := freePayment(s, payments)
		settled, payments = append(settled, fresh...), concat(payments, fresh)
	}
	return s, settled
}

// renewPeriod moves a free subscription past the end of its period.
func (s Subscription) renewPeriod() Subscription {
	at := s.Period.End
	if s.CancelAtPeriodEnd {
		return s.End(at)
	}
	if s.Scheduled != nil {
		if s.Scheduled.Target.Interval != s.Terms.Interval {
			s.Anchor = at
		}
		s.Terms, s.Scheduled = s.Scheduled.Target, nil
	}
	s.Period = s.Terms.Interval.Containing(s.Anchor, at)
	return s
}

// freePayment is the settlement of the subscription's period, unless it was settled
// before.
func freePayment(s Subscription, payments []Payment) []Payment {
	p := Payment{
		Source: Source{FreePeriod, s.ID.Format(ids.Subscription) + ":" + strconv.FormatInt(s.Period.Start, 10)},
		Free:   true,
		PlanID: s.Terms.PlanID,
		Period: s.Period,
	}
	if hasPayment(payments, p.Source) {
		return nil
	}
	if freeGrantDue(payments, p.PlanID, p.Period) {
		p.Credits = s.Terms.credits()
	}
	return []Payment{p}
}

// freeGrantDue allows a free plan one grant per identity in any overlapping period:
// cancelling and starting again grants nothing.
func freeGrantDue(payments []Payment, planID ids.ID, period metering.Period) bool {
	for i := range payments {
		p := &payments[i]
		if p.Free && p.PlanID == planID && len(p.Credits) > 0 && overlap(p.Period, period) {
			return false
		}
	}
	return true
}

// concat never writes into the caller's slice.
func concat(a, b []Payment) []Payment { return append(a[:len(a):len(a)], b...) }

// Schedule sets a change at the next renewal of a free subscription.
func (s Subscription) Schedule(target Terms) Subscription {
	s.Scheduled = &ScheduledChange{Target: target, EffectiveAt: s.Period.End}
	return s
}

// ClearChanges removes the scheduled and pending change of a free subscription.
func (s Subscription) ClearChanges() Subscription {
	s.Scheduled, s.Pending = nil, nil
	return s
}

// Cancel applies the order to a free subscription.
func (s Subscription) Cancel(o CancelOrder) Subscription {
	s.CancelAtPeriodEnd = o.CancelAtPeriodEnd
	if o.ReleaseScheduled {
		s.Scheduled = nil
	}
	if o.VoidPending {
		s.Pending = nil
	}
	return s
}
