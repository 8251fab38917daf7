package web

import (
	"strconv"
	"strings"

	"purser/billing"
	"purser/metering"
	"purser/views/component"
	"purser/views/page"
)

// A plan's form has fields and three lists of rows. This file handles the submitted text;
// readPlan parses and validates it.

// typedPlan is the form as submitted.
func typedPlan(f *form) page.PlanValues {
	row := func(list string, i int, field string) string { return f.text(page.RowField(list, i, field)) }
	values := page.PlanValues{
		Key: f.text("key"), Name: f.text("name"), Amount: f.text("amount"), Currency: strings.ToLower(f.text("currency")),
		Interval: f.text("interval"), TopupsEnabled: f.isSet("topups"), Active: f.isSet("active"), Revision: f.raw("revision"),
	}
	for i := 0; f.isSet(page.RowField("limits", i, "feature")); i++ {
		values.Limits = append(values.Limits, page.LimitRow{
			Feature: row("limits", i, "feature"), Limit: row("limits", i, "limit"),
			Period: row("limits", i, "period"), Overage: row("limits", i, "overage"),
		})
	}
	for i := 0; f.isSet(page.RowField("grants", i, "credit")); i++ {
		values.Grants = append(values.Grants, page.GrantRow{Credit: row("grants", i, "credit"), Amount: row("grants", i, "amount")})
	}
	for i := 0; f.isSet(page.RowField("multipliers", i, "feature")); i++ {
		values.Multipliers = append(values.Multipliers, page.MultiplierRow{
			Feature: row("multipliers", i, "feature"), Percent: row("multipliers", i, "percent"),
		})
	}
	return values
}

// percentPlaces is the number of decimals of a basis point in percent.
const percentPlaces = 2

// planValues formats a stored plan for the form.
func planValues(p billing.Plan) page.PlanValues {
	values := page.PlanValues{
		Key: p.Key, Name: p.Name, Amount: p.Decimal(), Currency: p.Currency, Interval: string(p.Interval),
		TopupsEnabled: p.TopupsEnabled, Active: p.Active, Revision: strconv.FormatInt(p.Revision, 10),
	}
	for _, l := range p.Limits {
		values.Limits = append(values.Limits, page.LimitRow{
			Feature: l.FeatureKey, Limit: strconv.FormatInt(l.Limit, 10), Period: string(l.Period), Overage: string(l.Overage),
		})
	}
	for _, g := range p.Grants {
		values.Grants = append(values.Grants, page.GrantRow{Credit: g.CreditKey, Amount: g.Amount.Credits()})
	}
	for _, m := range p.Multipliers {
		values.Multipliers = append(values.Multipliers, page.MultiplierRow{
			Feature: m.FeatureKey, Percent: metering.FormatDecimal(uint64(m.BasisPoints), percentPlaces),
		})
	}
	return values
}

var (
	spareLimit      = page.LimitRow{Period: string(metering.LimitMonth), Overage: string(metering.OverageBlock)}
	spareGrant      = page.GrantRow{}
	spareMultiplier = page.MultiplierRow{}
)

// withSpareRows appends an empty row to each list.
func withSpareRows(values page.PlanValues) page.PlanValues {
	values.Limits = append(values.Limits, spareLimit)
	values.Grants = append(values.Grants, spareGrant)
	values.Multipliers = append(values.Multipliers, spareMultiplier)
	return values
}

// rowsChanged adds or removes a row if that button was pressed. The form is then shown
// again without validation.
func rowsChanged(f *form, values *page.PlanValues) bool {
	act, target, _ := strings.Cut(f.text("do"), ".")
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
// maxPlanRows.
func withRow[T any](rows []T, remove int, spare T) []T {
	switch {
	case remove < 0 && len(rows) < maxPlanRows:
		return append(rows, spare)
	case remove >= 0 && remove < len(rows):
		return append(rows[:remove:remove], rows[remove+1:]...)
	}
	return rows
}

// planDifferences compares the submitted form with the plan stored in the meantime.
func planDifferences(yours, theirs page.PlanValues) []component.Difference {
	difference := func(label string, of func(page.PlanValues) string) component.Difference {
		return component.Difference{Label: label, Yours: of(yours), Theirs: of(theirs)}
	}
	return []component.Difference{
		difference("Name", func(req page.PlanValues) string { return req.Name }),
		difference("Price", func(req page.PlanValues) string { return req.Amount + " " + req.Currency }),
		difference("Billing interval", func(req page.PlanValues) string { return req.Interval }),
		difference("Active", func(req page.PlanValues) string { return yesOrNo(req.Active) }),
		difference("Allow top-ups", func(req page.PlanValues) string { return yesOrNo(req.TopupsEnabled) }),
		difference("Included", func(req page.PlanValues) string {
			return rowTexts(req.Limits, func(r page.LimitRow) (key, text string) {
				return r.Feature, r.Limit + " per " + r.Period + ", then " + r.Overage
			})
		}),
		difference("Credits", func(req page.PlanValues) string {
			return rowTexts(req.Grants, func(r page.GrantRow) (key, text string) { return r.Credit, r.Amount })
		}),
		difference("Price overrides", func(req page.PlanValues) string {
			return rowTexts(req.Multipliers, func(r page.MultiplierRow) (key, text string) { return r.Feature, r.Percent + " %" })
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
