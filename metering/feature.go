package metering

import (
	"cmp"

	"purser/fault"
	"purser/ids"
)

// PricingMode says where the charge of usage comes from.
type PricingMode string

// Fixed features have a price; for callback features the caller sends the amount.
const (
	Fixed    PricingMode = "fixed"
	Callback PricingMode = "callback"
)

// Deduplication is the period within which an entity is charged once.
type Deduplication string

// The periods of deduplication.
const (
	DeduplicateNone    Deduplication = "none"
	DeduplicateDay     Deduplication = "day"
	DeduplicateWeek    Deduplication = "week"
	DeduplicateMonth   Deduplication = "month"
	DeduplicateBilling Deduplication = "billing"
)

// Feature is a billable or limited action, priced in one credit.
type Feature struct {
	ID              ids.ID
	Key             string
	Name            string
	Unit            string
	CreditID        ids.ID
	CreditKey       string
	Cost            Amount // of one QuantityPerUnit
	QuantityPerUnit int64
	PricingMode     PricingMode
	Deduplication   Deduplication
	Revision        int64
	CreatedAt       int64

	// PlanPricingLocked is true while a plan, a live subscription, or a pending change
	// of one refers to the feature.
	PlanPricingLocked bool
	// Multiplied is true while one of them multiplies the price.
	Multiplied bool
	// DeduplicationLocked is true once usage of the feature was accepted.
	DeduplicationLocked bool
}

// NewFeature checks a draft and makes it the first revision. Without a pricing mode it is
// fixed; without a deduplication there is none.
func NewFeature(draft Feature) (Feature, error) {
	if err := checkTexts(&draft.Key, &draft.Name, &draft.Unit); err != nil {
		return Feature{}, err
	}
	if err := checkPricing(&draft.CreditKey, &draft.QuantityPerUnit); err != nil {
		return Feature{}, err
	}
	draft.PricingMode = cmp.Or(draft.PricingMode, Fixed)
	draft.Deduplication = cmp.Or(draft.Deduplication, DeduplicateNone)
	draft.Revision = 1
	return draft, nil
}

func checkPricing(creditKey *string, quantity *int64) error {
	if creditKey != nil && !IsKey(*creditKey) {
		return fault.Newf(fault.InvalidRequest, "%q is not the key of a credit.", *creditKey)
	}
	if quantity != nil && (*quantity < 1 || *quantity > MaxQuantity) {
		return fault.Newf(fault.InvalidRequest, "Enter a quantity from 1 to %d.", MaxQuantity)
	}
	return nil
}

// FeaturePatch is a requested change; a nil field stays unchanged. CreditID and
// CreditKey are set together, by the caller that loads the credit.
type FeaturePatch struct {
	ExpectedRevision *int64
	Name             *string
	Unit             *string
	CreditID         *ids.ID
	CreditKey        *string
	Cost             *Amount
	QuantityPerUnit  *int64
	PricingMode      *PricingMode
	Deduplication    *Deduplication
}

// Patch gives the feature after the change, or the fault of the lock that
// forbids it. Setting the value that a field has is no change, locked or not.
func (f Feature) Patch(p FeaturePatch) (Feature, error) {
	if err := expectRevision(p.ExpectedRevision, f.Revision); err != nil {
		return f, err
	}
	if err := cmp.Or(checkTexts(nil, p.Name, p.Unit), checkPricing(p.CreditKey, p.QuantityPerUnit)); err != nil {
		return f, err
	}
	next := f
	Set(&next.Name, p.Name)
	Set(&next.Unit, p.Unit)
	Set(&next.CreditID, p.CreditID)
	Set(&next.CreditKey, p.CreditKey)
	Set(&next.Cost, p.Cost)
	Set(&next.QuantityPerUnit, p.QuantityPerUnit)
	Set(&next.PricingMode, p.PricingMode)
	Set(&next.Deduplication, p.Deduplication)
	if f.Multiplied && f.PricingMode != Callback && next.PricingMode == Callback {
		return f, fault.New(fault.CallbackMultiplier)
	}
	if f.PlanPricingLocked && !samePricing(f, next) {
		return f, fault.New(fault.PricingLocked)
	}
	if f.DeduplicationLocked && next.Deduplication != f.Deduplication {
		return f, fault.New(fault.DeduplicationLocked)
	}
	if next != f {
		next.Revision++
	}
	return next, nil
}

func samePricing(a, b Feature) bool {
	return a.CreditID == b.CreditID && a.Cost == b.Cost &&
		a.QuantityPerUnit == b.QuantityPerUnit && a.PricingMode == b.PricingMode
}
