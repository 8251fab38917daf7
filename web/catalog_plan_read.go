package web

import (
	"fmt"
	"regexp"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/views/component"
	"purser/views/page"
)

// maxPlanRows is how many rows each list of a plan can have.
const maxPlanRows = 100

var currencyPattern = regexp.MustCompile(`\A[a-z]{3}\z`)

// readPlan judges the form and writes what it says into the draft. Problems are
// noted at their fields; only a failure of ours comes back.
func (v *visit) readPlan(f *form, typed page.PlanValues, draft *billing.PlanDraft) error {
	draft.Name = f.catalogName("name")
	draft.Interval = choice(f, "interval", billing.Month, billing.Year)
	draft.TopupsEnabled, draft.Active = typed.TopupsEnabled, typed.Active
	draft.Currency = typed.Currency
	if !currencyPattern.MatchString(typed.Currency) {
		f.fail("currency", "Enter a three-letter currency code such as usd.")
	} else {
		draft.AmountCents = f.money("amount", typed.Currency)
	}
	draft.Limits = readLimits(f, typed.Limits)
	draft.Grants = readGrants(f, typed.Grants)
	draft.Multipliers = readMultipliers(f, typed.Multipliers)
	return v.findNamed(f, typed)
}

func (f *form) money(field, currency string) int64 {
	amount, ok := billing.ParseMoney(f.text(field), currency)
	if !ok {
		example := billing.Price{AmountCents: 2900, Currency: currency}.Decimal()
		f.fail(field, fmt.Sprintf("Enter an amount such as %s (up to %d decimals, maximum %s).",
			example, billing.Decimals(currency), billing.FormatMoney(billing.MaxAmountCents, currency)))
	}
	return amount
}

func readLimits(f *form, rows []page.LimitRow) (limits []metering.Limit) {
	list := rowReader{form: f, list: "limits", keyField: "feature"}
	for i, row := range rows {
		if row == spareLimit || !list.takes(i, row.Feature) {
			continue
		}
		limits = append(limits, metering.Limit{
			FeatureKey: row.Feature,
			Limit:      f.count(page.RowField("limits", i, "limit"), 0),
			Period:     choice(f, page.RowField("limits", i, "period"), metering.LimitMonth, metering.LimitBilling),
			Overage:    choice(f, page.RowField("limits", i, "overage"), metering.OverageBlock, metering.OverageCredits),
		})
	}
	return limits
}

func readGrants(f *form, rows []page.GrantRow) (grants []billing.Grant) {
	list := rowReader{form: f, list: "grants", keyField: "credit"}
	for i, row := range rows {
		if row == spareGrant || !list.takes(i, row.Credit) {
			continue
		}
		grants = append(grants, billing.Grant{CreditKey: row.Credit, Amount: f.credits(page.RowField("grants", i, "amount"))})
	}
	return grants
}

func readMultipliers(f *form, rows []page.MultiplierRow) (multipliers []metering.Multiplier) {
	list := rowReader{form: f, list: "multipliers", keyField: "feature"}
	for i, row := range rows {
		if row == spareMultiplier || !list.takes(i, row.Feature) {
			continue
		}
		multipliers = append(multipliers, metering.Multiplier{
			FeatureKey: row.Feature, BasisPoints: f.percent(page.RowField("multipliers", i, "percent")),
		})
	}
	return multipliers
}

// percent is a share of the list price, in basis points.
func (f *form) percent(field string) int64 {
	points, ok := metering.ParseDecimal(f.text(field), percentPlaces)
	if !ok || points > uint64(metering.MaxBasisPoints) {
		f.fail(field, "Enter a percentage such as 80 or 12.5 (maximum 10000, up to 2 decimals).")
	}
	return int64(points)
}

// rowReader goes through the rows of one list, and sees that they name different
// things and are not too many.
type rowReader struct {
	form     *form
	list     string
	keyField string
	seen     map[string]bool
}

// takes reports whether the row names something that no row before it does.
func (r *rowReader) takes(row int, key string) bool {
	field := page.RowField(r.list, row, r.keyField)
	switch {
	case key == "":
		r.form.fail(field, "Enter a "+r.keyField+" key, or remove the row.")
		return false
	case !isCatalogKey(key):
		r.form.fail(field, "This is not a valid "+r.keyField+" key.")
		return false
	case r.seen[key]:
		r.form.fail(field, "This "+r.keyField+" is already listed above.")
		return false
	case len(r.seen) == maxPlanRows:
		r.form.fail(r.list, fmt.Sprintf("A plan can have at most %d of these.", maxPlanRows))
		return false
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[key] = true
	return true
}

// findNamed looks up what the rows name, so that a typing mistake shows at its row.
// The store looks again when it saves.
func (v *visit) findNamed(f *form, typed page.PlanValues) error {
	features, err := v.featureOptions()
	if err != nil {
		return err
	}
	credits, err := v.creditOptions()
	if err != nil {
		return err
	}
	for i, row := range typed.Limits {
		if err := v.findFeature(f, page.RowField("limits", i, "feature"), row.Feature, features); err != nil {
			return err
		}
	}
	for i, row := range typed.Multipliers {
		if err := v.findFeature(f, page.RowField("multipliers", i, "feature"), row.Feature, features); err != nil {
			return err
		}
	}
	for i, row := range typed.Grants {
		if err := v.findCredit(f, page.RowField("grants", i, "credit"), row.Credit, credits); err != nil {
			return err
		}
	}
	return nil
}

// findFeature asks for one feature only when it is not among those that are known.
func (v *visit) findFeature(f *form, field, key string, known []component.Option) error {
	if key == "" || f.problem(field) != "" || offers(known, key) {
		return nil
	}
	_, err := v.tenant().Feature(v.context, key)
	if fault.Is(err, fault.FeatureNotFound) {
		f.fail(field, fmt.Sprintf("No feature has the key %q.", key))
		return nil
	}
	return err
}

func (v *visit) findCredit(f *form, field, key string, known []component.Option) error {
	if key == "" || f.problem(field) != "" || offers(known, key) {
		return nil
	}
	_, err := v.tenant().Credit(v.context, key)
	if fault.Is(err, fault.CreditNotFound) {
		f.fail(field, fmt.Sprintf("No credit has the key %q.", key))
		return nil
	}
	return err
}
