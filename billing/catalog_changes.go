package billing

import (
	"strconv"
	"strings"

	"purser/fault"
	"purser/metering"
)

// CatalogChange is what applying a draft does to one item, in texts.
type CatalogChange struct {
	Kind   CatalogKind
	Key    string
	Action CatalogAction
	Fields []FieldChange
	Fault  *fault.Fault
}

// FieldChange is one field that changes. Before is empty for a new item.
type FieldChange struct{ Name, Before, After string }

// Changes lists every item of the comparison.
func (d CatalogDiff) Changes() (list []CatalogChange) {
	for _, item := range d.Credits {
		list = append(list, changeOf(CatalogCredit, item, creditFields))
	}
	for _, item := range d.Features {
		list = append(list, changeOf(CatalogFeature, item, featureFields))
	}
	for _, item := range d.Plans {
		list = append(list, changeOf(CatalogPlan, item, planFields))
	}
	return list
}

// Refusal is the fault of the first item that is blocked, and names that item.
func (d CatalogDiff) Refusal() error {
	for _, change := range d.Changes() {
		if change.Action == CatalogBlocked {
			return fault.Newf(change.Fault.Code, "The %s %q: %s Nothing was applied.", change.Kind, change.Key, change.Fault.Message)
		}
	}
	return nil
}

// Count is how many items have this action.
func (d CatalogDiff) Count(action CatalogAction) int {
	return count(d.Credits, action) + count(d.Features, action) + count(d.Plans, action)
}

// field is one field of an item as a text.
type field struct{ name, value string }

func changeOf[T any](kind CatalogKind, item CatalogItem[T], fields func(T) []field) CatalogChange {
	change := CatalogChange{Kind: kind, Key: item.Key, Action: item.Action, Fault: item.Fault}
	if item.Action != CatalogCreate && item.Action != CatalogUpdate {
		return change
	}
	before := fields(item.Before)
	for i, f := range fields(item.After) {
		switch {
		case item.Action == CatalogCreate && f.value != "":
			change.Fields = append(change.Fields, FieldChange{Name: f.name, After: f.value})
		case item.Action == CatalogUpdate && f.value != before[i].value:
			change.Fields = append(change.Fields, FieldChange{f.name, before[i].value, f.value})
		}
	}
	return change
}

func creditFields(c metering.Credit) []field { return []field{{"name", c.Name}, {"unit", c.Unit}} }

func featureFields(f metering.Feature) []field {
	return []field{
		{"name", f.Name},
		{"unit", f.Unit},
		{"creditKey", f.CreditKey},
		{"costNanocredits", f.Cost.String()},
		{"quantityPerUnit", strconv.FormatInt(f.QuantityPerUnit, 10)},
		{"pricingMode", string(f.PricingMode)},
		{"deduplicationPeriod", string(f.Deduplication)},
	}
}

func planFields(p Plan) []field {
	return []field{
		{"name", p.Name},
		{"amountCents", strconv.FormatInt(p.AmountCents, 10)},
		{"currency", p.Currency},
		{"interval", string(p.Interval)},
		{"featureLimits", LimitsText(p.Limits)},
		{"creditGrants", GrantsText(p.Grants)},
		{"featureMultipliers", MultipliersText(p.Multipliers)},
		{"topupsEnabled", strconv.FormatBool(p.TopupsEnabled)},
		{"active", strconv.FormatBool(p.Active)},
	}
}

// LimitsText is a plan's limits as the audit log and comparisons write them.
func LimitsText(list []metering.Limit) string {
	return textOf(list, func(l metering.Limit) string {
		return l.FeatureKey + " " + strconv.FormatInt(l.Limit, 10) + " " + string(l.Period) + " " + string(l.Overage)
	})
}

// GrantsText is a plan's grants as the audit log and comparisons write them.
func GrantsText(list []Grant) string {
	return textOf(list, func(g Grant) string { return g.CreditKey + " " + g.Amount.String() })
}

// MultipliersText is a plan's multipliers as the audit log and comparisons write them.
func MultipliersText(list []metering.Multiplier) string {
	return textOf(list, func(m metering.Multiplier) string {
		return m.FeatureKey + " " + strconv.FormatInt(m.BasisPoints, 10)
	})
}

func textOf[T any](list []T, text func(T) string) string {
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = text(item)
	}
	return strings.Join(texts, "; ")
}
