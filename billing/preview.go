package billing

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
)

// PreviewInput is what a change of plan is previewed from.
type PreviewInput struct {
	Subscription *Subscription // live, or incomplete; nil for none
	Plan         Plan          // the requested one
	Changes      []Change      // neither applied nor dropped
	Payments     []Payment     // the identity's free periods
	Balances     []metering.Balance
}

// Preview is what a request to change plans would do by the stored state. The provider
// is not asked, so it may still decline the payment.
type Preview struct {
	Kind        PreviewKind
	EffectiveAt int64 // now, or the renewal
	ChargeCents int64 // what the change charges at EffectiveAt
	Currency    string
	Grants      []Grant // credited at EffectiveAt
	Limits      []LimitChange
	Multipliers []MultiplierChange

	// The plans of the scheduled and the pending change that the request cancels; empty
	// for none.
	ReleasesScheduled, ReleasesPending string

	Needs     PreviewNeeds
	RefusedBy fault.Code // empty when it is not refused
}

// Version is equal for previews that show the same effect. The present time, of an
// immediate change, is left out: it would differ at every look.
func (p Preview) Version() string {
	if p.RefusedBy = ""; p.Kind != PreviewDowngrade {
		p.EffectiveAt = 0
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic("billing: a preview can't be encoded: " + err.Error()) // it has no such types
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// PreviewKind is how a change shows to the customer.
type PreviewKind string

const (
	PreviewStart     PreviewKind = "start"
	PreviewUpgrade   PreviewKind = "upgrade"
	PreviewDowngrade PreviewKind = "downgrade"
	PreviewSame      PreviewKind = "same"
)

// PreviewNeeds is what the customer has to bring.
type PreviewNeeds string

// What a change needs. A saved payment method is charged at once; where the customer has
// none, the change continues in a checkout.
const (
	NeedsNothing       PreviewNeeds = "nothing"
	NeedsPaymentMethod PreviewNeeds = "payment_method"
	NeedsCheckout      PreviewNeeds = "checkout"
)

// LimitChange is the allowance of a feature before and after; nil for none.
type LimitChange struct {
	FeatureKey string
	From, To   *metering.Limit
}

// MultiplierChange is the price of a feature before and after, in basis points of the
// list price.
type MultiplierChange struct {
	FeatureKey string
	From, To   int64
}

// PreviewChange is what Change would do at the time: it makes the same decision.
func PreviewChange(s PreviewInput, now int64) Preview {
	order, refusal := classifyChange(s.Subscription, s.Plan, s.Changes)
	p := Preview{EffectiveAt: now, Currency: order.Target.Currency, Needs: NeedsNothing}
	var from Terms
	if s.Subscription != nil && !s.Subscription.Ended() {
		from = s.Subscription.Terms
		p.releases(*s.Subscription, order, now)
	}
	granted := order.Target.credits()
	switch order.Kind {
	case StartFree:
		p.Kind = PreviewStart
		_, settled := StartFreeSubscription(ids.ID{}, "", order.Target, s.Payments, now)
		granted = creditsOf(settled)
	case Keep:
		p.Kind, granted = PreviewSame, nil
	case Downgrade:
		p.Kind, p.EffectiveAt, p.ChargeCents = PreviewDowngrade, s.Subscription.renewsAt(now), order.Target.AmountCents
		if s.Subscription.Local() {
			_, settled := RenewFree(s.Subscription.Schedule(order.Target), s.Payments, p.EffectiveAt)
			granted = creditsOf(settled)
		} else if order.Target.Free() && !freeGrantDue(s.Payments, order.Target.PlanID, order.Target.Interval.Containing(p.EffectiveAt, p.EffectiveAt)) {
			granted = nil
		}
	case Upgrade:
		p.Kind, p.Needs, p.ChargeCents = PreviewUpgrade, NeedsPaymentMethod, order.Target.AmountCents
	case Checkout:
		p.Kind, p.Needs, p.ChargeCents = PreviewUpgrade, NeedsCheckout, order.Target.AmountCents
		if from.PlanID.IsZero() {
			p.Kind = PreviewStart
		}
	}
	p.Grants = granted
	p.Limits, p.Multipliers = limitChanges(from, order.Target), multiplierChanges(from, order.Target)
	if refusal == nil {
		refusal = order.CheckRoom(s.Balances)
	}
	if refusal == nil && order.Kind == StartFree {
		refusal = CheckRoom(s.Balances, granted)
	}
	if f, ok := errors.AsType[*fault.Fault](refusal); ok {
		p.RefusedBy = f.Code
	}
	return p
}

// renewsAt is the next renewal that a change can still wait for: at the end of the period,
// or one period later when the provider has billed that renewal. The provider keeps the
// day of the first period, which is the later day of the two: a shorter month lacks it.
func (s Subscription) renewsAt(now int64) int64 {
	if s.Local() || now < s.Period.End && !s.downgradeBilled() {
		return s.Period.End
	}
	interval, anchor := s.Terms.Interval, s.Period.Start
	if time.UnixMilli(anchor).UTC().Day() < time.UnixMilli(s.Period.End).UTC().Day() {
		anchor = s.Period.End
	}
	if s.downgradeBilled() && s.Scheduled.Target.Interval != interval {
		interval, anchor = s.Scheduled.Target.Interval, s.Period.End
	}
	return interval.Containing(anchor, max(now, s.Period.End)).End
}

// releases names the changes that the order cancels. An invoiced downgrade stays until a
// payment for another plan replaces it.
func (p *Preview) releases(current Subscription, order ChangeOrder, now int64) {
	if order.ReleaseScheduled && (order.Kind != Keep || !current.downgradeBilled()) {
		p.ReleasesScheduled = current.Scheduled.Target.PlanKey
	}
	if pending := current.PendingAt(now); pending != nil && order.VoidPending {
		p.ReleasesPending = pending.Target.PlanKey
	}
}

func creditsOf(payments []Payment) (credits []Grant) {
	for _, p := range payments {
		credits = append(credits, p.Credits...)
	}
	return credits
}

// limitChanges lists the features that either terms limit, those of the new terms first.
func limitChanges(from, to Terms) (changes []LimitChange) {
	for i := range to.Limits {
		after := &to.Limits[i]
		changes = append(changes, LimitChange{after.FeatureKey, limitOf(from, after.FeatureID), after})
	}
	for i := range from.Limits {
		if before := &from.Limits[i]; limitOf(to, before.FeatureID) == nil {
			changes = append(changes, LimitChange{before.FeatureKey, before, nil})
		}
	}
	return changes
}

func limitOf(t Terms, feature ids.ID) *metering.Limit {
	for i := range t.Limits {
		if t.Limits[i].FeatureID == feature {
			return &t.Limits[i]
		}
	}
	return nil
}

// multiplierChanges lists the features whose price either terms multiply.
func multiplierChanges(from, to Terms) (changes []MultiplierChange) {
	before, after := from.Metering(), to.Metering()
	for _, m := range to.Multipliers {
		changes = append(changes, MultiplierChange{m.FeatureKey, before.BasisPoints(m.FeatureID), m.BasisPoints})
	}
	for _, m := range from.Multipliers {
		if !multiplies(to, m.FeatureID) {
			changes = append(changes, MultiplierChange{m.FeatureKey, m.BasisPoints, after.BasisPoints(m.FeatureID)})
		}
	}
	return changes
}

func multiplies(t Terms, feature ids.ID) bool {
	return slices.ContainsFunc(t.Multipliers, func(m metering.Multiplier) bool { return m.FeatureID == feature })
}
