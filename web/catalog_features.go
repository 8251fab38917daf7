package web

import (
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/page"
)

func (s *Site) features(v *visit) (answer, error) {
	part, err := v.page(ids.Feature)
	if err != nil {
		return answer{}, err
	}
	list, more, err := v.tenant().Features(v.context, part)
	if err != nil {
		return answer{}, err
	}
	return show(page.Features(page.FeatureList{
		Frame: v.frame("Features", "features"), Base: v.appPath("features"), Features: list, MayEdit: v.may(tenancy.FeaturesWrite),
		Pages: pages(v.appPath("features"), ids.Feature, part, list, more, func(f metering.Feature) ids.ID { return f.ID }),
	})), nil
}

func (s *Site) newFeature(v *visit) (answer, error) {
	view, err := v.featureForm(page.FeatureForm{New: true, Values: page.FeatureValues{
		QuantityPerUnit: "1", PricingMode: string(metering.Fixed), Deduplication: string(metering.DeduplicateNone),
	}})
	return show(view), err
}

func (s *Site) createFeature(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	feature := metering.Feature{
		ID:              ids.New(),
		Key:             f.catalogKey("key"),
		Name:            f.catalogName("name"),
		Unit:            f.catalogUnit("unit"),
		PricingMode:     f.pricingMode("pricing_mode"),
		Cost:            f.credits("cost"),
		CreditKey:       f.creditKey("credit"),
		QuantityPerUnit: f.quantity("quantity"),
		Deduplication:   f.deduplication("deduplication"),
		Revision:        1,
		CreatedAt:       v.site.now(),
	}
	if f.ok() {
		_, err := v.tenant().CreateFeature(v.context, feature)
		if err := f.checkFeature("key", err); err != nil {
			return answer{}, err
		}
	}
	if !f.ok() {
		view, err := v.featureForm(page.FeatureForm{New: true, Values: typedFeature(f), Answered: page.Answered{Problems: f.problems}})
		return invalid(view), err
	}
	return v.done(v.appPath("features"), "Feature "+feature.Key+" created.")
}

func (s *Site) editFeature(v *visit) (answer, error) {
	stored, err := v.feature()
	if err != nil {
		return answer{}, err
	}
	view, err := v.featureForm(page.FeatureForm{Stored: stored, Values: featureValues(stored)})
	return show(view), err
}

func (s *Site) updateFeature(v *visit) (answer, error) {
	stored, err := v.feature()
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
	patch := metering.FeaturePatch{
		ExpectedRevision: &revision,
		Name:             new(f.catalogName("name")),
		Unit:             new(f.catalogUnit("unit")),
		PricingMode:      changed(f, "pricing_mode", f.pricingMode),
		Cost:             changed(f, "cost", f.credits),
		CreditKey:        changed(f, "credit", f.creditKey),
		QuantityPerUnit:  changed(f, "quantity", f.quantity),
		Deduplication:    changed(f, "deduplication", f.deduplication),
	}
	if f.ok() {
		_, err := v.tenant().UpdateFeature(v.context, stored.Key, patch, v.site.now())
		if fault.Is(err, fault.RevisionConflict) {
			return v.featureConflict(f)
		}
		if err := f.checkFeature("", err); err != nil {
			return answer{}, err
		}
	}
	if !f.ok() {
		// Read again: the refusal may be of a lock that came after the first look.
		if stored, err = v.feature(); err != nil {
			return answer{}, err
		}
		view, err := v.featureForm(page.FeatureForm{Stored: stored, Values: typedFeature(f), Answered: page.Answered{Problems: f.problems}})
		return invalid(view), err
	}
	return v.done(v.appPath("features"), "Feature "+stored.Key+" saved.")
}

// checkFeature notes what the store says about a feature. A credit that is gone is
// the form's problem, not a missing page.
func (f *form) checkFeature(field string, err error) error {
	switch {
	case fault.Is(err, fault.CreditNotFound):
		f.fail("credit", "This credit no longer exists. Select another one.")
		return nil
	case fault.Is(err, fault.DeduplicationLocked):
		return f.check("deduplication", err)
	case fault.Is(err, fault.PricingLocked), fault.Is(err, fault.CallbackMultiplier):
		return f.check("pricing_mode", err)
	}
	return f.check(field, err)
}

func (v *visit) featureConflict(f *form) (answer, error) {
	stored, err := v.feature()
	if err != nil {
		return answer{}, err
	}
	theirs := featureValues(stored)
	yours := asLocked(typedFeature(f), stored)
	yours.Revision = theirs.Revision
	view, err := v.featureForm(page.FeatureForm{Stored: stored, Values: yours, Answered: page.Answered{Clash: &component.Clash{
		Rows: []component.Difference{
			{Label: "Name", Yours: yours.Name, Theirs: theirs.Name},
			{Label: "Unit", Yours: yours.Unit, Theirs: theirs.Unit},
			{Label: "Pricing", Yours: yours.PricingMode, Theirs: theirs.PricingMode},
			{Label: "Cost", Yours: yours.Cost, Theirs: theirs.Cost},
			{Label: "Priced in", Yours: yours.CreditKey, Theirs: theirs.CreditKey},
			{Label: "Per quantity", Yours: yours.QuantityPerUnit, Theirs: theirs.QuantityPerUnit},
			{Label: "Billing frequency", Yours: yours.Deduplication, Theirs: theirs.Deduplication},
		},
	}}})
	return conflict(view), err
}

func (v *visit) feature() (metering.Feature, error) {
	key, err := v.catalogKey()
	if err != nil {
		return metering.Feature{}, err
	}
	return v.tenant().Feature(v.context, key)
}

func (f *form) creditKey(field string) string {
	key := f.text(field)
	if !isCatalogKey(key) {
		f.fail(field, "Select a credit.")
	}
	return key
}

func (f *form) pricingMode(field string) metering.PricingMode {
	return choice(f, field, metering.Fixed, metering.Callback)
}

func (f *form) deduplication(field string) metering.Deduplication {
	return choice(f, field, page.Deduplications()...)
}

func (f *form) quantity(field string) int64 { return f.count(field, 1) }

func typedFeature(f *form) page.FeatureValues {
	return page.FeatureValues{
		Key: f.text("key"), Name: f.text("name"), Unit: f.text("unit"), CreditKey: f.text("credit"), Cost: f.text("cost"),
		QuantityPerUnit: f.text("quantity"), PricingMode: f.text("pricing_mode"), Deduplication: f.text("deduplication"),
		Revision: f.raw("revision"),
	}
}

func featureValues(f metering.Feature) page.FeatureValues {
	return page.FeatureValues{
		Key: f.Key, Name: f.Name, Unit: f.Unit, CreditKey: f.CreditKey, Cost: f.Cost.Credits(),
		QuantityPerUnit: strconv.FormatInt(f.QuantityPerUnit, 10), PricingMode: string(f.PricingMode),
		Deduplication: string(f.Deduplication), Revision: strconv.FormatInt(f.Revision, 10),
	}
}

// asLocked puts the stored values where nothing can be changed: browsers do not
// send what is disabled, and what somebody typed before the lock has no effect.
func asLocked(values page.FeatureValues, stored metering.Feature) page.FeatureValues {
	is := featureValues(stored)
	values.Key = is.Key
	if stored.PlanPricingLocked {
		values.CreditKey, values.Cost, values.QuantityPerUnit, values.PricingMode = is.CreditKey, is.Cost, is.QuantityPerUnit, is.PricingMode
	}
	if stored.DeduplicationLocked {
		values.Deduplication = is.Deduplication
	}
	return values
}

func (v *visit) featureForm(form page.FeatureForm) (templ.Component, error) {
	options, err := v.creditOptions()
	if err != nil {
		return nil, err
	}
	title := "New feature"
	if !form.New {
		title, form.Values = form.Stored.Name, asLocked(form.Values, form.Stored)
	}
	if key := form.Values.CreditKey; key != "" && !offers(options, key) {
		options = append(options, component.Option{Value: key, Text: key})
	}
	form.Frame, form.Options = v.frame(title, "features"), options
	form.Base, form.Credits, form.ReadOnly = v.appPath("features"), v.appPath("credits"), !v.may(tenancy.FeaturesWrite)
	return page.Feature(form), nil
}

func offers(options []component.Option, value string) bool {
	return slices.ContainsFunc(options, func(o component.Option) bool { return o.Value == value })
}

// creditOptions is what a feature can be priced in, and a plan can grant.
func (v *visit) creditOptions() ([]component.Option, error) {
	credits, _, err := v.tenant().Credits(v.context, store.Page{Limit: maxOptions})
	var options []component.Option
	for _, c := range credits {
		options = append(options, component.Option{Value: c.Key, Text: c.Name + " (" + c.Key + ")"})
	}
	return options, err
}
