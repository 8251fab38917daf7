package billing

import (
	"strconv"

	"purser/ids"
	"purser/metering"
)

// maxFreePeriods is how many periods one step renews at most: two years of
// months. A subscription that is still behind is renewed again.
const maxFreePeriods = 24

// StartFreeSubscription begins a free subscription here, now, and settles its
// first period. The payments are what the identity was granted before.
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

// RenewFree brings a free subscription that runs here to the period of now:
// whatever was to happen at the turns in between happens, each turn with the
// credits of its period. When it is far behind, it gets closer.
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

// renewPeriod takes a free subscription past the end of its period.
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

// freePayment is the settlement of the subscription's period, unless it was
// settled before.
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

// freeGrantDue holds a free plan to one grant an identity in any stretch of time:
// to cancel and start again inside a period mints nothing.
func freeGrantDue(payments []Payment, planID ids.ID, period metering.Period) bool {
	for i := range payments {
		p := &payments[i]
		if p.Free && p.PlanID == planID && len(p.Credits) > 0 && overlap(p.Period, period) {
			return false
		}
	}
	return true
}

// concat never writes into the caller's list.
func concat(a, b []Payment) []Payment { return append(a[:len(a):len(a)], b...) }

// Schedule gives a free subscription that runs here with a change at its next turn.
func (s Subscription) Schedule(target Terms) Subscription {
	s.Scheduled = &ScheduledChange{Target: target, EffectiveAt: s.Period.End}
	return s
}

// ClearChanges gives a free subscription that runs here with nothing that would change
// its plan.
func (s Subscription) ClearChanges() Subscription {
	s.Scheduled, s.Pending = nil, nil
	return s
}

// Cancel gives a free subscription that runs here after the order.
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
