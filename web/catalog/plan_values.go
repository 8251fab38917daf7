package catalog

import (
	"strconv"
	"strings"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/views/component"
	catalogpage "purser/views/page/catalog"
	"purser/web/site"
)

// A plan's form has fields and three lists of rows. This file handles the submitted text;
// readPlan parses and validates it.

// typedPlan is the form as submitted. It refuses more rows than the page has: a list's most and
// a spare one.
func typedPlan(f *site.Form) (catalogpage.PlanValues, error) {
	row := func(list string, i int, field string) string { return f.Text(catalogpage.RowField(list, i, field)) }
	values := catalogpage.PlanValues{
		Key: f.Text("key"), Name: f.Text("name"), Amount: f.Text("amount"), Currency: strings.ToLower(f.Text("currency")),
		Interval: f.Text("interval"), TopupsEnabled: f.IsSet("topups"), Active: f.IsSet("active"), Revision: f.Raw("revision"),
	}
	for i := 0; f.IsSet(catalogpage.RowField("limits", i, "feature")); i++ {
		values.Limits = append(values.Limits, catalogpage.LimitRow{
			Feature: row("limits", i, "feature"), Limit: row("limits", i, "limit"),
			Period: row("limits", i, "period"), Overage: row("limits", i, "overage"),
		})
	}
	for i := 0; f.IsSet(catalogpage.RowField("grants", i, "credit")); i++ {
		values.Grants = append(values.Grants, catalogpage.GrantRow{Credit: row("grants", i, "credit"), Amount: row("grants", i, "amount")})
	}
	for i := 0; f.IsSet(catalogpage.RowField("multipliers", i, "feature")); i++ {
		values.Multipliers = append(values.Multipliers, catalogpage.MultiplierRow{
			Feature: row("multipliers", i, "feature"), Percent: row("multipliers", i, "percent"),
		})
	}
	if max(len(values.Limits), len(values.Grants), len(values.Multipliers)) > billing.MaxPlanItems+1 {
		return values, fault.Newf(fault.BodyTooLarge, "The form has too many rows. A plan can have at most %d of each kind.", billing.MaxPlanItems)
	}
	return values, nil
}

// percentPlaces is the number of decimals of a basis point in percent.
const percentPlaces = 2

// planValues formats a stored plan for the form.
func planValues(p billing.Plan) catalogpage.PlanValues {
	values := catalogpage.PlanValues{
		Key: p.Key, Name: p.Name, Amount: p.Decimal(), Currency: p.Currency, Interval: string(p.Interval),
		TopupsEnabled: p.TopupsEnabled, Active: p.Active, Revision: strconv.FormatInt(p.Revision, 10),
	}
	for _, l := range p.Limits {
		values.Limits = append(values.Limits, catalogpage.LimitRow{
			Feature: l.FeatureKey, Limit: strconv.FormatInt(l.Limit, 10), Period: string(l.Period), Overage: string(l.Overage),
		})
	}
	for _, g := range p.Grants {
		values.Grants = append(values.Grants, catalogpage.GrantRow{Credit: g.CreditKey, Amount: g.Amount.Credits()})
	}
	for _, m := range p.Multipliers {
		values.Multipliers = append(values.Multipliers, catalogpage.MultiplierRow{
			Feature: m.FeatureKey, Percent: metering.FormatDecimal(uint64(m.BasisPoints), percentPlaces),
		})
	}
	return values
}

var (
	spareLimit      = catalogpage.LimitRow{Period: string(metering.LimitMonth), Overage: string(metering.OverageBlock)}
	spareGrant      = catalogpage.GrantRow{}
	spareMultiplier = catalogpage.MultiplierRow{}
)

// withSpareRows appends an empty row to each list.
func withSpareRows(values catalogpage.PlanValues) catalogpage.PlanValues {
	values.Limits = append(values.Limits, spareLimit)
	values.Grants = append(values.Grants, spareGrant)
	values.Multipliers = append(values.Multipliers, spareMultiplier)
	return values
}

// rowsChanged adds or removes a row if that button was pressed. The form is then shown
// again without validation.
func rowsChanged(f *site.Form, values *catalogpage.PlanValues) bool {
	act, target, _ := strings.Cut(f.Text("do"), ".")
	list, number, _ := strings.Cut(target, ".")
	if act != "add" && act != "remove" {
		return false
	}
	row := -1
	if act == "remove" {
		var err error
		if row, err = strconv.Atoi(number); err != nil {
			return false
		}
	}
	switch list {
	case "limits":
		values.Limits = withRow(values.Limits, row, spareLimit)
	case "grants":
		values.Grants = withRow(values.Grants, row, spareGrant)
	case "multipliers":
		values.Multipliers = withRow(values.Multipliers, row, spareMultiplier)
	default:
		return false
	}
	return true
}

// withRow removes a row, or appends an empty one if remove is negative, up to
// billing.MaxPlanItems.
func withRow[T any](rows []T, remove int, spare T) []T {
	switch {
	case remove < 0 && len(rows) < billing.MaxPlanItems:
		return append(rows, spare)
	case remove >= 0 && remove < len(rows):
		return append(rows[:remove:remove], rows[remove+1:]...)
	}
	return rows
}

// planDifferences compares the submitted form with the plan stored in the meantime.
func planDifferences(yours, theirs catalogpage.PlanValues) []component.Difference {
	difference := func(label string, of func(catalogpage.PlanValues) string) component.Difference {
		return component.Difference{Label: label, Yours: of(yours), Theirs: of(theirs)}
	}
	return []component.Difference{
		difference("Name", func(req catalogpage.PlanValues) string { return req.Name }),
		difference("Price", func(req catalogpage.PlanValues) string { return req.Amount + " " + req.Currency }),
		difference("Billing interval", func(req catalogpage.PlanValues) string { return req.Interval }),
		difference("Active", func(req catalogpage.PlanValues) string { return yesOrNo(req.Active) }),
		difference("Allow top-ups", func(req catalogpage.PlanValues) string { return yesOrNo(req.TopupsEnabled) }),
		difference("Included", func(req catalogpage.PlanValues) string {
			return rowTexts(req.Limits, func(r catalogpage.LimitRow) (key, text string) {
				return r.Feature, r.Text()
			})
		}),
		difference("Credits", func(req catalogpage.PlanValues) string {
			return rowTexts(req.Grants, func(r catalogpage.GrantRow) (key, text string) { return r.Credit, r.Amount })
		}),
		difference("Price overrides", func(req catalogpage.PlanValues) string {
			return rowTexts(req.Multipliers, func(r catalogpage.MultiplierRow) (key, text string) { return r.Feature, r.Percent + " %" })
		}),
	}
}

func rowTexts[T any](rows []T, read func(T) (key, text string)) string {
	var texts []string
	for _, row := range rows {
		if key, text := read(row); key != "" {
			texts = append(texts, key+": "+text)
		}
	}
	return strings.Join(texts, "; ")
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
