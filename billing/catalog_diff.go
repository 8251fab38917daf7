package billing

import (
	"errors"

	"purser/fault"
	"purser/ids"
	"purser/metering"
)

// CatalogKind is what an item of a catalog is.
type CatalogKind string

// The kinds, in the order in which they are applied: each refers only to earlier ones.
const (
	CatalogCredit  CatalogKind = "credit"
	CatalogFeature CatalogKind = "feature"
	CatalogPlan    CatalogKind = "plan"
)

// CatalogAction is what applying a draft does to one item.
type CatalogAction string

// The actions. An item that is blocked prevents the whole draft.
const (
	CatalogCreate  CatalogAction = "create"
	CatalogUpdate  CatalogAction = "update"
	CatalogNone    CatalogAction = "none"
	CatalogBlocked CatalogAction = "blocked"
)

// CatalogItem is one item as it is and as a draft makes it.
type CatalogItem[T any] struct {
	Key    string
	Action CatalogAction
	Before T
	After  T
	Fault  *fault.Fault // why it is blocked
}

// CatalogDiff is what applying a draft does.
type CatalogDiff struct {
	Credits  []CatalogItem[metering.Credit]
	Features []CatalogItem[metering.Feature]
	Plans    []CatalogItem[Plan]
}

// CatalogOptions are the inputs of a comparison besides both catalogs.
type CatalogOptions struct {
	// ArchiveMissing deactivates the plans that the draft does not have. Nothing is ever
	// deleted.
	ArchiveMissing bool
	NewID          func() ids.ID
	Now            int64
}

// Compare decides what applying a draft does to each item, in the order of the draft. An
// error is about the draft itself; an item that the stored catalog does not allow is
// blocked.
func (s CatalogState) Compare(d CatalogDraft, o CatalogOptions) (diff CatalogDiff, err error) {
	if err := d.check(); err != nil {
		return diff, err
	}
	// What later items refer to: everything stored, as the draft leaves it.
	after := Catalog{Features: map[string]metering.Feature{}, Credits: map[string]metering.Credit{}}
	credits, features, plans := map[string]metering.Credit{}, map[string]metering.Feature{}, map[string]Plan{}
	for _, c := range s.Credits {
		credits[c.Key], after.Credits[c.Key] = c, c
	}
	for _, f := range s.Features {
		features[f.Key], after.Features[f.Key] = f, f
	}
	for _, p := range s.Plans {
		plans[p.Key] = p
	}
	for _, draft := range d.Credits {
		item := compareCredit(credits, draft, o)
		if item.Action != CatalogBlocked {
			after.Credits[item.Key] = item.After
		}
		diff.Credits = append(diff.Credits, item)
	}
	for _, draft := range d.Features {
		item := compareFeature(features, draft, after, o)
		if item.Action != CatalogBlocked {
			after.Features[item.Key] = item.After
		}
		diff.Features = append(diff.Features, item)
	}
	kept := map[string]bool{}
	for _, draft := range d.Plans {
		kept[draft.Key] = true
		diff.Plans = append(diff.Plans, comparePlan(plans, draft, after, o))
	}
	for _, p := range s.Plans {
		if o.ArchiveMissing && !kept[p.Key] && p.Active {
			inactive := false
			next, err := p.Patch(PlanPatch{Active: &inactive}, after)
			diff.Plans = append(diff.Plans, itemOf(p.Key, p, next, true, next.Revision != p.Revision, err))
		}
	}
	return diff, diff.checkSize(s)
}

func compareCredit(stored map[string]metering.Credit, draft metering.Credit, o CatalogOptions) CatalogItem[metering.Credit] {
	was, exists := stored[draft.Key]
	if exists {
		next, err := was.Patch(metering.CreditPatch{Name: &draft.Name, Unit: &draft.Unit})
		return itemOf(draft.Key, was, next, true, next != was, err)
	}
	next, err := metering.NewCredit(metering.Credit{ID: o.NewID(), Key: draft.Key, Name: draft.Name, Unit: draft.Unit, CreatedAt: o.Now})
	return itemOf(draft.Key, was, next, false, true, err)
}

func compareFeature(stored map[string]metering.Feature, draft metering.Feature, catalog Catalog, o CatalogOptions) CatalogItem[metering.Feature] {
	was, exists := stored[draft.Key]
	next, err := metering.NewFeature(metering.Feature{
		ID: o.NewID(), Key: draft.Key, Name: draft.Name, Unit: draft.Unit, CreditKey: draft.CreditKey, Cost: draft.Cost,
		QuantityPerUnit: draft.QuantityPerUnit, PricingMode: draft.PricingMode, Deduplication: draft.Deduplication, CreatedAt: o.Now,
	})
	if err == nil {
		next.CreditID, err = catalog.creditID(draft.CreditKey)
	}
	if !exists || err != nil {
		return itemOf(draft.Key, was, next, exists, true, err)
	}
	next, err = was.Patch(metering.FeaturePatch{
		Name: &next.Name, Unit: &next.Unit, CreditID: &next.CreditID, CreditKey: &next.CreditKey, Cost: &next.Cost,
		QuantityPerUnit: &next.QuantityPerUnit, PricingMode: &next.PricingMode, Deduplication: &next.Deduplication,
	})
	return itemOf(draft.Key, was, next, true, next != was, err)
}

func comparePlan(stored map[string]Plan, draft PlanDraft, catalog Catalog, o CatalogOptions) CatalogItem[Plan] {
	was, exists := stored[draft.Key]
	if !exists {
		next, err := NewPlan(o.NewID(), draft, catalog, o.Now)
		return itemOf(draft.Key, was, next, false, true, err)
	}
	next, err := was.Patch(PlanPatch{
		Name: &draft.Name, AmountCents: &draft.AmountCents, Currency: &draft.Currency, Interval: &draft.Interval,
		Limits: &draft.Limits, Grants: &draft.Grants, Multipliers: &draft.Multipliers,
		TopupsEnabled: &draft.TopupsEnabled, Active: &draft.Active,
	}, catalog)
	return itemOf(draft.Key, was, next, true, next.Revision != was.Revision, err)
}

// itemOf is the comparison of one item. Every error of the domain is a fault.
func itemOf[T any](key string, before, after T, exists, changed bool, err error) CatalogItem[T] {
	item := CatalogItem[T]{Key: key, Action: CatalogNone, Before: before, After: after}
	switch {
	case err != nil:
		item.Action, item.After = CatalogBlocked, before
		if !errors.As(err, &item.Fault) {
			item.Fault = fault.New(fault.InternalError)
		}
	case !exists:
		item.Action = CatalogCreate
	case changed:
		item.Action = CatalogUpdate
	}
	return item
}

// creditID finds the credit that a feature is priced in.
func (c Catalog) creditID(key string) (ids.ID, error) {
	grants := []Grant{{CreditKey: key}}
	err := c.resolveGrants(grants)
	return grants[0].CreditID, err
}

// checkSize refuses a draft that would make the catalog too large to be read again.
func (d CatalogDiff) checkSize(s CatalogState) error {
	terms := s.terms()
	for _, item := range d.Plans {
		terms += item.After.TermCount() - item.Before.TermCount()
	}
	return checkCatalogSize(len(s.Credits)+count(d.Credits, CatalogCreate), len(s.Features)+count(d.Features, CatalogCreate), len(s.Plans)+count(d.Plans, CatalogCreate), terms)
}

func count[T any](items []CatalogItem[T], action CatalogAction) (count int) {
	for _, item := range items {
		if item.Action == action {
			count++
		}
	}
	return count
}
