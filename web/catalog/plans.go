package catalog

import (
	"github.com/a-h/templ"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/views/component"
	catalogpage "purser/views/page/catalog"
	"purser/web/site"
)

func (s *Pages) plans(req *site.Request, part store.Page) (site.Response, error) {
	list, more, err := req.Tenant().Plans(req.Context, part)
	if err != nil {
		return site.Response{}, err
	}
	counts, err := subscriberCounts(req, list...)
	if err != nil {
		return site.Response{}, err
	}
	return site.Show(catalogpage.Plans(catalogpage.PlanList{Counts: counts, List: catalogpage.List[billing.Plan]{
		Frame: req.Frame("Plans", "plans"), Base: req.AppPath("plans"), Items: list, MayEdit: req.May(tenancy.PlansWrite), Copy: copyPath(req),
		Pages: site.Pages(req.AppPath("plans"), ids.Plan, part, list, more, func(p billing.Plan) ids.ID { return p.ID }),
	}})), nil
}

// subscriberCounts are by plan key; nil for a member who may not read subscriptions.
func subscriberCounts(req *site.Request, plans ...billing.Plan) (map[string]catalogpage.SubscriberCount, error) {
	if !req.May(tenancy.SubscriptionsRead) {
		return nil, nil
	}
	asked := make([]ids.ID, 0, len(plans))
	for _, plan := range plans {
		asked = append(asked, plan.ID)
	}
	found, err := req.Reports().SubscribersOf(req.Context, asked)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]catalogpage.SubscriberCount, len(plans))
	for _, plan := range plans {
		text := component.WholeNumber(found[plan.ID].Count)
		if found[plan.ID].More {
			text += "+"
		}
		counts[plan.Key] = catalogpage.SubscriberCount{Text: text, Href: site.Listing{Path: req.AppPath("subscriptions")}.At("plan", plan.Key)}
	}
	return counts, nil
}

func (s *Pages) newPlan(req *site.Request) (site.Response, error) {
	view, err := planForm(req, catalogpage.PlanForm{New: true, Values: withSpareRows(catalogpage.PlanValues{
		Currency: "usd", Interval: string(billing.Month), Active: true, TopupsEnabled: true,
	})})
	return site.Show(view), err
}

func (s *Pages) createPlan(req *site.Request) (site.Response, error) {
	f := req.Form
	typed, err := typedPlan(f)
	if err != nil {
		return site.Response{}, err
	}
	if rowsChanged(f, &typed) {
		view, err := planForm(req, catalogpage.PlanForm{New: true, Values: typed})
		return site.Show(view), err
	}
	draft := billing.PlanDraft{Key: f.CatalogKey("key"), Name: f.CatalogName("name")}
	readPlan(req, f, typed, &draft)
	if f.OK() {
		_, err := req.Tenant().CreatePlan(req.Context, draft, func(catalog billing.Catalog) (billing.Plan, error) {
			return billing.NewPlan(ids.New(), draft, catalog, req.Site.Now())
		})
		checkPlan(f, "key", err)
		req.NotifyCashier()
	}
	if !f.OK() {
		view, err := planForm(req, catalogpage.PlanForm{New: true, Values: typed, Answered: component.Answered{Problems: f.Problems}})
		return site.Invalid(view), err
	}
	return req.Done(req.AppPath("plans"), "Plan "+draft.Key+" created. Syncing with the payment provider.")
}

func (s *Pages) editPlan(req *site.Request, stored billing.Plan) (site.Response, error) {
	view, err := planForm(req, catalogpage.PlanForm{Stored: stored, Values: withSpareRows(planValues(stored))})
	return site.Show(view), err
}

// viewPlan is the read-only page of a plan.
func (s *Pages) viewPlan(req *site.Request, stored billing.Plan) (site.Response, error) {
	view := catalogpage.PlanView{
		Frame: req.Frame(stored.Name, "plans"), Base: req.AppPath("plans"), Stored: stored, Percents: planValues(stored).Multipliers,
		Edit: req.LinkIfPermitted(tenancy.PlansWrite, "plans", stored.Key, "edit"),
	}
	counts, err := subscriberCounts(req, stored)
	if err != nil {
		return site.Response{}, err
	}
	if count, counted := counts[stored.Key]; counted {
		view.Subscribers = &count
	}
	return site.Show(catalogpage.PlanViewPage(view)), nil
}

func (s *Pages) updatePlan(req *site.Request, stored billing.Plan) (site.Response, error) {
	f := req.Form
	revision, err := f.Revision()
	if err != nil {
		return site.Response{}, err
	}
	typed, err := typedPlan(f)
	if err != nil {
		return site.Response{}, err
	}
	typed.Key = stored.Key
	if rowsChanged(f, &typed) {
		view, err := planForm(req, catalogpage.PlanForm{Stored: stored, Values: typed})
		return site.Show(view), err
	}
	var draft billing.PlanDraft
	name := f.Edited("name", stored.Name, f.CatalogName)
	readPlan(req, f, typed, &draft)
	if f.OK() {
		_, err := req.Tenant().UpdatePlan(req.Context, stored.Key, billing.PlanPatch{
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
		checkPlan(f, "", err)
		req.NotifyCashier()
	}
	if !f.OK() {
		view, err := planForm(req, catalogpage.PlanForm{Stored: stored, Values: typed, Answered: component.Answered{Problems: f.Problems}})
		return site.Invalid(view), err
	}
	return req.Done(req.AppPath("plans"), "Plan "+stored.Key+" saved.")
}

// checkPlan adds the store's refusal to the field it concerns. A feature or credit
// deleted in the meantime is a validation error, not a 404.
func checkPlan(f *site.Form, field string, err error) {
	switch {
	case fault.Is(err, fault.AmountTooSmall), fault.Is(err, fault.AmountNotChargeable):
		f.Check("amount", err)
	case fault.Is(err, fault.CallbackMultiplier):
		f.Check("multipliers", err)
	case fault.Is(err, fault.FeatureNotFound), fault.Is(err, fault.CreditNotFound):
		f.Fail("", "A feature or credit in this plan no longer exists. Check the rows below.")
	default:
		f.Check(field, err)
	}
}

func planConflict(req *site.Request, yours catalogpage.PlanValues) (site.Response, error) {
	stored, err := pathPlan(req)
	if err != nil {
		return site.Response{}, err
	}
	theirs := planValues(stored)
	yours.Revision = theirs.Revision
	view, err := planForm(req, catalogpage.PlanForm{Stored: stored, Values: yours, Answered: component.Answered{Clash: &component.Clash{
		Rows: planDifferences(yours, theirs),
	}}})
	return site.Conflict(view), err
}

func pathPlan(req *site.Request) (billing.Plan, error) {
	return site.AtKey(req, req.Tenant().Plan)
}

func planForm(req *site.Request, form catalogpage.PlanForm) (templ.Component, error) {
	var err error
	if form.Credits, err = req.CreditOptions(); err != nil {
		return nil, err
	}
	if form.Features, err = req.FeatureOptions(); err != nil {
		return nil, err
	}
	title := "New plan"
	if !form.New {
		title = form.Stored.Name
	}
	form.Currencies = component.CurrencyOptions(form.Values.Currency)
	rows := len(form.Values.Limits) + len(form.Values.Multipliers)
	form.ChooseFeatures = len(form.Features) < site.MaxOptions && rows*len(form.Features) <= maxRowOptions
	form.ChooseCredits = len(form.Credits) < site.MaxOptions && len(form.Values.Grants)*len(form.Credits) <= maxRowOptions
	form.Frame, form.Base = req.Frame(title, "plans"), req.AppPath("plans")
	form.ReadOnly = !req.May(tenancy.PlansWrite)
	return catalogpage.Plan(form), nil
}

// maxRowOptions is how many options the lists of all rows have together. In a larger form
// the keys are typed, with suggestions.
const maxRowOptions = 4000

// retrySync syncs a plan with the provider again.
func (s *Pages) retrySync(req *site.Request, plan billing.Plan) (site.Response, error) {
	if err := s.Cashier.RetrySync(req.Context, req.Scope(), plan.Key); err != nil {
		return site.Response{}, err
	}
	return req.Done(req.AppPath("plans", plan.Key, "edit"), "Retrying sync with the payment provider.")
}
