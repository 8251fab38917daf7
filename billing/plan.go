package billing

import (
	"slices"

	"purser/fault"
	"purser/ids"
	"purser/metering"
)

// Plan can be subscribed to.
type Plan struct {
	ID   ids.ID
	Key  string
	Name string
	Price
	Limits        []metering.Limit
	Grants        []Grant
	Multipliers   []metering.Multiplier
	TopupsEnabled bool
	Active        bool // whether new customers can subscribe
	Revision      int64
	Sync          Sync
	CreatedAt     int64
}

// PlanDraft is the input for a new plan. Its lists reference features and credits by
// key; the ids come from the catalog.
type PlanDraft struct {
	Key  string
	Name string
	Price
	Limits        []metering.Limit
	Grants        []Grant
	Multipliers   []metering.Multiplier
	TopupsEnabled bool
	Active        bool
}

// NewPlan creates the first revision of a plan.
func NewPlan(id ids.ID, d PlanDraft, catalog Catalog, now int64) (Plan, error) {
	p := Plan{
		ID:            id,
		Key:           d.Key,
		Name:          d.Name,
		Price:         d.Price,
		TopupsEnabled: d.TopupsEnabled,
		Active:        d.Active,
		Revision:      1,
		Sync:          Sync{Status: SyncPending, Version: 1, PriceNumber: 1},
		CreatedAt:     now,
	}
	if err := checkTexts(&d.Key, &d.Name); err != nil {
		return Plan{}, err
	}
	if err := p.setLists(&d.Limits, &d.Grants, &d.Multipliers, catalog); err != nil {
		return Plan{}, err
	}
	return p, p.Price.check()
}

// checkTexts checks what is given of a plan's key and name.
func checkTexts(key, name *string) (err error) {
	if key != nil {
		_, err = metering.ParseKey(*key)
	}
	if name != nil && err == nil {
		_, err = metering.ParseName(*name)
	}
	return err
}

// PlanPatch is the input for a change; nil fields stay unchanged.
type PlanPatch struct {
	ExpectedRevision *int64
	Name             *string
	AmountCents      *int64
	Currency         *string
	Interval         *Interval
	Limits           *[]metering.Limit
	Grants           *[]Grant
	Multipliers      *[]metering.Multiplier
	TopupsEnabled    *bool
	Active           *bool
}

// Patch is the plan after the change, which applies to new subscriptions only. A patch
// that changes nothing keeps the revision.
func (p Plan) Patch(patch PlanPatch, catalog Catalog) (Plan, error) {
	if expected := patch.ExpectedRevision; expected != nil && *expected != p.Revision {
		return p, fault.Newf(fault.RevisionConflict,
			"You sent revision %d, but the current revision is %d. Read it again, then repeat your change.", *expected, p.Revision)
	}
	if err := checkTexts(nil, patch.Name); err != nil {
		return p, err
	}
	next := p
	metering.Set(&next.Name, patch.Name)
	metering.Set(&next.AmountCents, patch.AmountCents)
	metering.Set(&next.Currency, patch.Currency)
	metering.Set(&next.Interval, patch.Interval)
	metering.Set(&next.TopupsEnabled, patch.TopupsEnabled)
	metering.Set(&next.Active, patch.Active)
	if err := next.setLists(patch.Limits, patch.Grants, patch.Multipliers, catalog); err != nil {
		return p, err
	}
	if err := next.Price.check(); err != nil {
		return p, err
	}
	if !next.equals(p) {
		next.Revision++
	}
	next.Sync = p.Sync.after(p, next)
	return next, nil
}

// equals reports whether both plans offer a subscriber the same.
func (p Plan) equals(q Plan) bool {
	return p.Name == q.Name && p.Price == q.Price && p.TopupsEnabled == q.TopupsEnabled && p.Active == q.Active &&
		slices.Equal(p.Limits, q.Limits) && slices.Equal(p.Grants, q.Grants) && slices.Equal(p.Multipliers, q.Multipliers)
}
