package metering

import "purser/ids"

// Subscription is the part of a subscription that decides usage: its status, period and
// terms.
type Subscription struct {
	ID     ids.ID
	Status SubscriptionStatus

	// Period is the stored period, the last one that was paid. Around a renewal it lies
	// in the past until the renewal is paid; limits and deduplication by subscription
	// period use it until it moves.
	Period Period
	Terms  Terms
}

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

// InForce reports whether the plan's terms apply.
func (s SubscriptionStatus) InForce() bool {
	return s == StatusActive || s == StatusTrialing
}

// Suspended reports whether the plan's terms are suspended: limited features are refused,
// all others cost the list price.
func (s SubscriptionStatus) Suspended() bool {
	return s == StatusPastDue || s == StatusUnpaid || s == StatusPaused
}

// InUse reports whether the subscription is in force or suspended. One that never started
// or has ended counts as none.
func (s SubscriptionStatus) InUse() bool { return s.InForce() || s.Suspended() }

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

type LimitPeriod string

// A limit counts by the calendar month of the usage, or by the subscription's period.
const (
	LimitMonth   LimitPeriod = "month"
	LimitBilling LimitPeriod = "billing"
)

// Overage says how usage beyond the allowance is handled.
type Overage string

// Beyond the allowance usage is refused, or the rest is paid from the balance.
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
