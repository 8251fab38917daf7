package web

import (
	"github.com/a-h/templ"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/views/component"
	catalogpage "purser/views/page/catalog"
)

func (s *Site) plans(req *request) (response, error) {
	part, err := req.before(ids.Plan)
	if err != nil {
		return response{}, err
	}
	list, more, err := req.tenant().Plans(req.context, part)
	if err != nil {
		return response{}, err
	}
	return show(catalogpage.Plans(catalogpage.PlanList{
		Frame: req.frame("Plans", "plans"), Base: req.appPath("plans"), Plans: list, MayEdit: req.may(tenancy.PlansWrite), Copy: copyPath(req),
		Pages: pages(req.appPath("plans"), ids.Plan, part, list, more, func(p billing.Plan) ids.ID { return p.ID }),
	})), nil
}

func (s *Site) newPlan(req *request) (response, error) {
	view, err := planForm(req, catalogpage.PlanForm{New: true, Values: withSpareRows(catalogpage.PlanValues{
		Currency: "usd", Interval: string(billing.Month), Active: true, TopupsEnabled: true,
	})})
	return show(view), err
}

func (s *Site) createPlan(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	typed := typedPlan(f)
	if rowsChanged(f, &typed) {
		view, err := planForm(req, catalogpage.PlanForm{New: true, Values: typed})
		return show(view), err
	}
	draft := billing.PlanDraft{Key: f.catalogKey("key"), Name: f.catalogName("name")}
	if err := readPlan(req, f, typed, &draft); err != nil {
		return response{}, err
	}
	if f.ok() {
		_, err := req.tenant().CreatePlan(req.context, draft, func(catalog billing.Catalog) (billing.Plan, error) {
			return billing.NewPlan(ids.New(), draft, catalog, req.site.now())
		})
		if err := checkPlan(f, "key", err); err != nil {
			return response{}, err
		}
		req.notifyCashier()
	}
	if !f.ok() {
		view, err := planForm(req, catalogpage.PlanForm{New: true, Values: typed, Answered: component.Answered{Problems: f.problems}})
		return invalid(view), err
	}
	return req.done(req.appPath("plans"), "Plan "+draft.Key+" created. Syncing with the payment provider.")
}

func (s *Site) editPlan(req *request) (response, error) {
	stored, err := pathPlan(req)
	if err != nil {
		return response{}, err
	}
	view, err := planForm(req, catalogpage.PlanForm{Stored: stored, Values: withSpareRows(planValues(stored))})
	return show(view), err
}

// viewPlan is the read-only page of a plan.
func (s *Site) viewPlan(req *request) (response, error) {
	stored, err := pathPlan(req)
	if err != nil {
		return response{}, err
	}
	view := catalogpage.PlanView{
		Frame: req.frame(stored.Name, "plans"), Base: req.appPath("plans"), Stored: stored, Percents: planValues(stored).Multipliers,
	}
	if req.may(tenancy.PlansWrite) {
		view.Edit = req.appPath("plans", stored.Key, "edit")
	}
	return show(catalogpage.PlanViewPage(view)), nil
}

func (s *Site) updatePlan(req *request) (response, error) {
	stored, err := pathPlan(req)
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	revision, err := f.revision()
	if err != nil {
		return response{}, err
	}
	typed := typedPlan(f)
	typed.Key = stored.Key
	if rowsChanged(f, &typed) {
		view, err := planForm(req, catalogpage.PlanForm{Stored: stored, Values: typed})
		return show(view), err
	}
	var draft billing.PlanDraft
	name := f.edited("name", stored.Name, f.catalogName)
	if err := readPlan(req, f, typed, &draft); err != nil {
		return response{}, err
	}
	if f.ok() {
		_, err := req.tenant().UpdatePlan(req.context, stored.Key, billing.PlanPatch{
			ExpectedRevision: &revision,
			Name:             name,
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
			return planConflict(req, typed)
		}
		if err := checkPlan(f, "", err); err != nil {
			return response{}, err
		}
		req.notifyCashier()
	}
	if !f.ok() {
		view, err := planForm(req, catalogpage.PlanForm{Stored: stored, Values: typed, Answered: component.Answered{Problems: f.problems}})
		return invalid(view), err
	}
	return req.done(req.appPath("plans"), "Plan "+stored.Key+" saved.")
}

// checkPlan adds the store's refusal to the field it concerns. A feature or credit
// deleted in the meantime is a validation error, not a 404.
func checkPlan(f *form, field string, err error) error {
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

func planConflict(req *request, yours catalogpage.PlanValues) (response, error) {
	stored, err := pathPlan(req)
	if err != nil {
		return response{}, err
	}
	theirs := planValues(stored)
	yours.Revision = theirs.Revision
	view, err := planForm(req, catalogpage.PlanForm{Stored: stored, Values: yours, Answered: component.Answered{Clash: &component.Clash{
		Rows: planDifferences(yours, theirs),
	}}})
	return conflict(view), err
}

func pathPlan(req *request) (billing.Plan, error) {
	key, err := req.catalogKey()
	if err != nil {
		return billing.Plan{}, err
	}
	return req.tenant().Plan(req.context, key)
}

func planForm(req *request, form catalogpage.PlanForm) (templ.Component, error) {
	var err error
	if form.Credits, err = creditOptions(req); err != nil {
		return nil, err
	}
	if form.Features, err = featureOptions(req); err != nil {
		return nil, err
	}
	title := "New plan"
	if !form.New {
		title = form.Stored.Name
	}
	form.Frame, form.Base = req.frame(title, "plans"), req.appPath("plans")
	form.ReadOnly = !req.may(tenancy.PlansWrite)
	form.MayRetry = !form.ReadOnly && req.site.cashier != nil
	return catalogpage.Plan(form), nil
}

// featureOptions lists the features that a plan can name.
func featureOptions(req *request) ([]component.Option, error) {
	features, _, err := req.tenant().Features(req.context, store.Page{Limit: maxOptions})
	var options []component.Option
	for _, f := range features {
		options = append(options, component.Option{Value: f.Key, Text: f.Name})
	}
	return options, err
}

// retrySync syncs a plan with the provider again.
func (s *Site) retrySync(req *request) (response, error) {
	plan, err := pathPlan(req)
	if err != nil {
		return response{}, err
	}
	if s.cashier == nil {
		return response{}, fault.New(fault.PaymentsNotConfigured)
	}
	if err := s.cashier.RetrySync(req.context, req.scope(), plan.Key); err != nil {
		return response{}, err
	}
	return req.done(req.appPath("plans", plan.Key, "edit"), "Retrying sync with the payment provider.")
}
