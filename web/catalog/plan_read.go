package catalog

import (
	"fmt"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/views/component"
	catalogpage "purser/views/page/catalog"
	"purser/web/site"
)

// readPlan parses the form into the draft, but for key and name.
func readPlan(req *site.Request, f *site.Form, typed catalogpage.PlanValues, draft *billing.PlanDraft) {
	draft.Interval = site.Choice(f, "interval", billing.Month, billing.Year)
	draft.TopupsEnabled, draft.Active = typed.TopupsEnabled, typed.Active
	draft.Currency = typed.Currency
	if _, err := billing.ParseCurrency(typed.Currency); err != nil {
		f.Fail("currency", "Enter a three-letter currency code such as usd.")
	} else {
		draft.AmountCents = readMoney(f, "amount", typed.Currency)
	}
	draft.Limits = readLimits(f, typed.Limits)
	draft.Grants = readGrants(f, typed.Grants)
	draft.Multipliers = readMultipliers(f, typed.Multipliers)
	f.Check("", checkReferences(req, f, typed))
}

func readMoney(f *site.Form, field, currency string) int64 {
	amount, ok := billing.ParseMoney(f.Text(field), currency)
	if !ok {
		example := billing.Price{AmountCents: 2900, Currency: currency}.Decimal()
		f.Fail(field, fmt.Sprintf("Enter an amount such as %s (up to %d decimals, maximum %s).",
			example, billing.Decimals(currency), billing.FormatMoney(billing.MaxAmountCents, currency)))
	}
	return amount
}

func readLimits(f *site.Form, rows []catalogpage.LimitRow) (limits []metering.Limit) {
	list := rowReader{form: f, list: "limits", keyField: "feature"}
	for i, row := range rows {
		if row == spareLimit || !list.accepts(i, row.Feature) {
			continue
		}
		limits = append(limits, metering.Limit{
			FeatureKey: row.Feature,
			Limit:      f.Count(catalogpage.RowField("limits", i, "limit"), 0),
			Period:     site.Choice(f, catalogpage.RowField("limits", i, "period"), metering.LimitMonth, metering.LimitBilling),
			Overage:    site.Choice(f, catalogpage.RowField("limits", i, "overage"), metering.OverageBlock, metering.OverageCredits),
		})
	}
	return limits
}

func readGrants(f *site.Form, rows []catalogpage.GrantRow) (grants []billing.Grant) {
	list := rowReader{form: f, list: "grants", keyField: "credit"}
	for i, row := range rows {
		if row == spareGrant || !list.accepts(i, row.Credit) {
			continue
		}
		grants = append(grants, billing.Grant{CreditKey: row.Credit, Amount: f.Credits(catalogpage.RowField("grants", i, "amount"))})
	}
	return grants
}

func readMultipliers(f *site.Form, rows []catalogpage.MultiplierRow) (multipliers []metering.Multiplier) {
	list := rowReader{form: f, list: "multipliers", keyField: "feature"}
	for i, row := range rows {
		if row == spareMultiplier || !list.accepts(i, row.Feature) {
			continue
		}
		multipliers = append(multipliers, metering.Multiplier{
			FeatureKey: row.Feature, BasisPoints: readPercent(f, catalogpage.RowField("multipliers", i, "percent")),
		})
	}
	return multipliers
}

// readPercent parses a percentage of the list price into basis points.
func readPercent(f *site.Form, field string) int64 {
	points, ok := metering.ParseDecimal(f.Text(field), percentPlaces)
	if !ok || points > uint64(metering.MaxBasisPoints) {
		f.Fail(field, "Enter a percentage such as 80 or 12.5 (maximum 10000, up to 2 decimals).")
	}
	return int64(points)
}

// rowReader checks that the rows of one list are distinct and not too many.
type rowReader struct {
	form     *site.Form
	list     string
	keyField string
	seen     map[string]bool
}

// accepts reports whether the row names something that no earlier row names.
func (r *rowReader) accepts(row int, key string) bool {
	field := catalogpage.RowField(r.list, row, r.keyField)
	switch {
	case key == "":
		r.form.Fail(field, "Enter a "+r.keyField+" key, or remove the row.")
		return false
	case !metering.IsKey(key):
		r.form.Fail(field, "This is not a valid "+r.keyField+" key.")
		return false
	case r.seen[key]:
		r.form.Fail(field, "This "+r.keyField+" is already listed above.")
		return false
	case len(r.seen) == billing.MaxPlanItems:
		r.form.Fail(r.list, fmt.Sprintf("A plan can have at most %d of these.", billing.MaxPlanItems))
		return false
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[key] = true
	return true
}

// checkReferences looks up the features and credits of the rows, so that a typo is shown
// at its row. The store checks again when it saves.
func checkReferences(req *site.Request, f *site.Form, typed catalogpage.PlanValues) error {
	features, err := req.FeatureOptions()
	if err != nil {
		return err
	}
	credits, err := req.CreditOptions()
	if err != nil {
		return err
	}
	for i, row := range typed.Limits {
		if err := checkReference(req, f, "limits", i, "feature", row.Feature, features); err != nil {
			return err
		}
	}
	for i, row := range typed.Multipliers {
		if err := checkReference(req, f, "multipliers", i, "feature", row.Feature, features); err != nil {
			return err
		}
	}
	for i, row := range typed.Grants {
		if err := checkReference(req, f, "grants", i, "credit", row.Credit, credits); err != nil {
			return err
		}
	}
	return nil
}

// checkReference looks up a feature or credit that is not among the listed options.
func checkReference(req *site.Request, f *site.Form, list string, row int, kind, key string, known []component.Option) (err error) {
	field := catalogpage.RowField(list, row, kind)
	if key == "" || f.Problem(field) != "" || component.HasOption(known, key) {
		return nil
	}
	if kind == "credit" {
		_, err = req.Tenant().Credit(req.Context, key)
	} else {
		_, err = req.Tenant().Feature(req.Context, key)
	}
	if fault.Is(err, fault.FeatureNotFound) || fault.Is(err, fault.CreditNotFound) {
		f.Fail(field, fmt.Sprintf("No %s has the key %q.", kind, key))
		return nil
	}
	return err
}
