package billing

import (
	"slices"

	"purser/fault"
	"purser/metering"
)

// Catalog is the features and credits that a plan may reference, by key. It needs to
// hold only those that the plan at hand references.
type Catalog struct {
	Features map[string]metering.Feature
	Credits  map[string]metering.Credit
}

// MaxPlanItems is the length of each list of a plan.
const MaxPlanItems = 100

// setLists replaces the lists that are not nil. Errors in the lists themselves are
// reported before unknown keys.
func (p *Plan) setLists(limits *[]metering.Limit, grants *[]Grant, multipliers *[]metering.Multiplier, catalog Catalog) error {
	l, g, m := cloneList(limits), cloneList(grants), cloneList(multipliers)
	for _, err := range []error{
		checkLength("featureLimits", len(l)),
		checkLength("creditGrants", len(g)),
		checkLength("featureMultipliers", len(m)),
		checkUnique("featureLimits", "feature", l, func(l metering.Limit) string { return l.FeatureKey }),
		checkUnique("creditGrants", "credit", g, func(g Grant) string { return g.CreditKey }),
		checkUnique("featureMultipliers", "feature", m, func(m metering.Multiplier) string { return m.FeatureKey }),
		catalog.resolveLimits(l),
		catalog.resolveGrants(g),
		catalog.resolveMultipliers(m),
	} {
		if err != nil {
			return err
		}
	}
	if limits != nil {
		p.Limits = l
	}
	if grants != nil {
		p.Grants = g
	}
	if multipliers != nil {
		p.Multipliers = m
	}
	return nil
}

// cloneList copies a list, because ids are written into it.
func cloneList[T any](list *[]T) []T {
	if list == nil {
		return nil
	}
	return slices.Clone(*list)
}

func checkLength(list string, items int) error {
	if items > MaxPlanItems {
		return fault.Newf(fault.InvalidRequest, "%s has %d items. A plan can have at most %d of these.", list, items, MaxPlanItems)
	}
	return nil
}

func checkUnique[T any](list, noun string, items []T, key func(T) string) error {
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		if seen[key(item)] {
			return fault.Newf(fault.InvalidRequest, "%s lists the %s %q twice. List each %s once.", list, noun, key(item), noun)
		}
		seen[key(item)] = true
	}
	return nil
}

func (c Catalog) resolveLimits(limits []metering.Limit) error {
	for i := range limits {
		feature, err := c.feature(limits[i].FeatureKey)
		if err != nil {
			return err
		}
		limits[i].FeatureID = feature.ID
	}
	return nil
}

func (c Catalog) resolveGrants(grants []Grant) error {
	for i := range grants {
		credit, known := c.Credits[grants[i].CreditKey]
		if !known {
			return fault.Newf(fault.CreditNotFound, "There is no credit with the key %q. Create it first with POST /v1/credits.", grants[i].CreditKey)
		}
		grants[i].CreditID = credit.ID
	}
	return nil
}

func (c Catalog) resolveMultipliers(multipliers []metering.Multiplier) error {
	for i := range multipliers {
		feature, err := c.feature(multipliers[i].FeatureKey)
		if err != nil {
			return err
		}
		if feature.PricingMode == metering.Callback {
			return fault.Newf(fault.CallbackMultiplier,
				"The feature %q is priced by callback, so there is no price to multiply. Leave it out of featureMultipliers.", feature.Key)
		}
		multipliers[i].FeatureID = feature.ID
	}
	return nil
}

func (c Catalog) feature(key string) (metering.Feature, error) {
	feature, known := c.Features[key]
	if !known {
		return feature, fault.Newf(fault.FeatureNotFound, "There is no feature with the key %q. Create it first with POST /v1/features.", key)
	}
	return feature, nil
}
