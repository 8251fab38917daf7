package web

import (
	"github.com/a-h/templ"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/page"
)

func (s *Site) plans(v *visit) (answer, error) {
	part, err := v.page(ids.Plan)
	if err != nil {
		return answer{}, err
	}
	list, more, err := v.tenant().Plans(v.context, part)
	if err != nil {
		return answer{}, err
	}
	return show(page.Plans(page.PlanList{
		Frame: v.frame("Plans", "plans"), Base: v.appPath("plans"), Plans: list, MayEdit: v.may(tenancy.PlansWrite),
		Pages: pages(v.appPath("plans"), ids.Plan, part, list, more, func(p billing.Plan) ids.ID { return p.ID }),
	})), nil
}

func (s *Site) newPlan(v *visit) (answer, error) {
	view, err := v.planForm(page.PlanForm{New: true, Values: withSpareRows(page.PlanValues{
		Currency: "usd", Interval: string(billing.Month), Active: true, TopupsEnabled: true,
	})})
	return show(view), err
}

func (s *Site) createPlan(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	typed := typedPlan(f)
	if rowsChanged(f, &typed) {
		view, err := v.planForm(page.PlanForm{New: true, Values: typed})
		return show(view), err
	}
	draft := billing.PlanDraft{Key: f.catalogKey("key")}
	if err := v.readPlan(f, typed, &draft); err != nil {
		return answer{}, err
	}
	if f.ok() {
		_, err := v.tenant().CreatePlan(v.context, draft, func(catalog billing.Catalog) (billing.Plan, error) {
			return billing.NewPlan(ids.New(), draft, catalog, v.site.now())
		})
		if err := f.checkPlan("key", err); err != nil {
			return answer{}, err
		}
		v.wakeCashier()
	}
	if !f.ok() {
		view, err := v.planForm(page.PlanForm{New: true, Values: typed, Answered: page.Answered{Problems: f.problems}})
		return invalid(view), err
	}
	return v.done(v.appPath("plans"), "Plan "+draft.Key+" created. Syncing with the payment provider.")
}

func (s *Site) editPlan(v *visit) (answer, error) {
	stored, err := v.plan()
	if err != nil {
		return answer{}, err
	}
	view, err := v.planForm(page.PlanForm{Stored: stored, Values: withSpareRows(planValues(stored))})
	return show(view), err
}

// viewPlan is the plan for who only wants to know it.
func (s *Site) viewPlan(v *visit) (answer, error) {
	stored, err := v.plan()
	if err != nil {
		return answer{}, err
	}
	view := page.PlanView{
		Frame: v.frame(stored.Name, "plans"), Base: v.appPath("plans"), Stored: stored, Percents: planValues(stored).Multipliers,
	}
	if v.may(tenancy.PlansWrite) {
		view.Edit = v.appPath("plans", stored.Key, "edit")
	}
	return show(page.PlanViewPage(view)), nil
}

func (s *Site) updatePlan(v *visit) (answer, error) {
	stored, err := v.plan()
	if err != nil {
		return answer{}, err
	}
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	revision, err := f.revision()
	if err != nil {
		return answer{}, err
	}
	typed := typedPlan(f)
	typed.Key = stored.Key
	if rowsChanged(f, &typed) {
		view, err := v.planForm(page.PlanForm{Stored: stored, Values: typed})
		return show(view), err
	}
	var draft billing.PlanDraft
	if err := v.readPlan(f, typed, &draft); err != nil {
		return answer{}, err
	}
	if f.ok() {
		_, err := v.tenant().UpdatePlan(v.context, stored.Key, billing.PlanPatch{
			ExpectedRevision: &revision,
			Name:             &draft.Name,
			AmountCents:      &draft.AmountCents,
			Currency:         &draft.Currency,
			Interval:         &draft.Interval,
			Limits:           &draft.Limits,
			Grants:           &draft.Grants,
			Multipliers:      &draft.Multipliers,
			TopupsEnabled:    &draft.TopupsEnabled,
			Active:           &draft.Active,
		})
		if fault.Is(err, fault.RevisionConflict) {
			return v.planConflict(typed)
		}
		if err := f.checkPlan("", err); err != nil {
			return answer{}, err
		}
		v.wakeCashier()
	}
	if !f.ok() {
		view, err := v.planForm(page.PlanForm{Stored: stored, Values: typed, Answered: page.Answered{Problems: f.problems}})
		return invalid(view), err
	}
	return v.done(v.appPath("plans"), "Plan "+stored.Key+" saved.")
}

// checkPlan notes what the store says about a plan at the part that it is about. A
// feature or a credit that went away meanwhile is the form's problem, not a
// missing page.
func (f *form) checkPlan(field string, err error) error {
	switch {
	case fault.Is(err, fault.AmountTooSmall), fault.Is(err, fault.AmountNotChargeable):
		return f.check("amount", err)
	case fault.Is(err, fault.CallbackMultiplier):
		return f.check("multipliers", err)
	case fault.Is(err, fault.FeatureNotFound), fault.Is(err, fault.CreditNotFound):
		f.fail("", "A feature or credit in this plan no longer exists. Check the rows below.")
		return nil
	}
	return f.check(field, err)
}

func (v *visit) planConflict(yours page.PlanValues) (answer, error) {
	stored, err := v.plan()
	if err != nil {
		return answer{}, err
	}
	theirs := planValues(stored)
	yours.Revision = theirs.Revision
	view, err := v.planForm(page.PlanForm{Stored: stored, Values: yours, Answered: page.Answered{Clash: &component.Clash{
		Rows: planDifferences(yours, theirs),
	}}})
	return conflict(view), err
}

func (v *visit) plan() (billing.Plan, error) {
	key, err := v.catalogKey()
	if err != nil {
		return billing.Plan{}, err
	}
	return v.tenant().Plan(v.context, key)
}

func (v *visit) planForm(form page.PlanForm) (templ.Component, error) {
	var err error
	if form.Credits, err = v.creditOptions(); err != nil {
		return nil, err
	}
	if form.Features, err = v.featureOptions(); err != nil {
		return nil, err
	}
	title := "New plan"
	if !form.New {
		title = form.Stored.Name
	}
	form.Frame, form.Base = v.frame(title, "plans"), v.appPath("plans")
	form.ReadOnly = !v.may(tenancy.PlansWrite)
	form.MayRetry = !form.ReadOnly && v.site.cashier != nil
	return page.Plan(form), nil
}

// featureOptions is what a plan can name.
func (v *visit) featureOptions() ([]component.Option, error) {
	features, _, err := v.tenant().Features(v.context, store.Page{Limit: maxOptions})
	var options []component.Option
	for _, f := range features {
		options = append(options, component.Option{Value: f.Key, Text: f.Name})
	}
	return options, err
}
