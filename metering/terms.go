package metering

import "purser/ids"

// Subscription is what the engine sees of a subscription: whether its terms
// hold, its period and the terms themselves.
type Subscription struct {
	ID     ids.ID
	Status SubscriptionStatus

	// Period is the one that is stored, which is the last that was paid. Around a
	// renewal it lies in the past until the renewal is paid; whatever counts by the
	// subscription's period counts by this one until it moves.
	Period Period
	Terms  Terms
}

// SubscriptionStatus is where a subscription stands.
type SubscriptionStatus string

// The statuses of a subscription.
const (
	StatusActive     SubscriptionStatus = "active"
	StatusTrialing   SubscriptionStatus = "trialing"
	StatusPastDue    SubscriptionStatus = "past_due"
	StatusUnpaid     SubscriptionStatus = "unpaid"
	StatusPaused     SubscriptionStatus = "paused"
	StatusIncomplete SubscriptionStatus = "incomplete"
	StatusCanceled   SubscriptionStatus = "canceled"
)

// InForce reports whether the plan's benefits hold.
func (s SubscriptionStatus) InForce() bool {
	return s == StatusActive || s == StatusTrialing
}

// Resting reports whether the plan's benefits are withheld for now: limited
// features are refused, all others cost the list price.
func (s SubscriptionStatus) Resting() bool {
	return s == StatusPastDue || s == StatusUnpaid || s == StatusPaused
}

// Live reports whether there is a subscription at all, in force or resting. One
// that never began or has ended is as good as none.
func (s SubscriptionStatus) Live() bool { return s.InForce() || s.Resting() }

// Terms are what a subscription copied from its plan. A feature is named at most
// once in each list.
type Terms struct {
	Limits      []Limit
	Multipliers []Multiplier
}

// Limit includes a quantity of a feature in each period.
type Limit struct {
	FeatureID  ids.ID
	FeatureKey string
	Limit      int64
	Period     LimitPeriod
	Overage    Overage
}

// LimitPeriod is the period in which a limit counts.
type LimitPeriod string

// A limit counts by the calendar month of the use, or by the subscription's own period.
const (
	LimitMonth   LimitPeriod = "month"
	LimitBilling LimitPeriod = "billing"
)

// Overage says what becomes of a use that the allowance does not cover.
type Overage string

// Past the allowance a use is refused, or its rest is paid from the balance.
const (
	OverageBlock   Overage = "block"
	OverageCredits Overage = "credits"
)

// Multiplier scales the price of a feature; ListPrice leaves it as it is.
type Multiplier struct {
	FeatureID   ids.ID
	FeatureKey  string
	BasisPoints int64
}

// MaxBasisPoints is the largest multiplier: a hundred times the list price.
const MaxBasisPoints int64 = 1_000_000

// Limit finds the limit of a feature. A plan has at most 100, so a scan is
// cheaper than a map that every load would have to build.
func (t Terms) Limit(featureID ids.ID) (Limit, bool) {
	for i := range t.Limits {
		if t.Limits[i].FeatureID == featureID {
			return t.Limits[i], true
		}
	}
	return Limit{}, false
}

// BasisPoints is the multiplier of a feature, ListPrice when it has none.
func (t Terms) BasisPoints(featureID ids.ID) int64 {
	for i := range t.Multipliers {
		if t.Multipliers[i].FeatureID == featureID {
			return t.Multipliers[i].BasisPoints
		}
	}
	return ListPrice
}
