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
	catalogpage "purser/views/page/catalog"
)

func (s *Site) features(req *request) (response, error) {
	part, err := req.before(ids.Feature)
	if err != nil {
		return response{}, err
	}
	list, more, err := req.tenant().Features(req.context, part)
	if err != nil {
		return response{}, err
	}
	return show(catalogpage.Features(catalogpage.FeatureList{
		Frame: req.frame("Features", "features"), Base: req.appPath("features"), Features: list, MayEdit: req.may(tenancy.FeaturesWrite), Copy: copyPath(req),
		Pages: pages(req.appPath("features"), ids.Feature, part, list, more, func(f metering.Feature) ids.ID { return f.ID }),
	})), nil
}

func (s *Site) newFeature(req *request) (response, error) {
	view, err := featureForm(req, catalogpage.FeatureForm{New: true, Values: catalogpage.FeatureValues{
		QuantityPerUnit: "1", PricingMode: string(metering.Fixed), Deduplication: string(metering.DeduplicateNone),
	}})
	return show(view), err
}

func (s *Site) createFeature(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	feature := metering.Feature{
		ID:              ids.New(),
		Key:             f.catalogKey("key"),
		Name:            f.catalogName("name"),
		Unit:            f.catalogUnit("unit"),
		PricingMode:     fields{f}.pricingMode("pricing_mode"),
		Cost:            f.credits("cost"),
		CreditKey:       fields{f}.creditKey("credit"),
		QuantityPerUnit: fields{f}.quantity("quantity"),
		Deduplication:   fields{f}.deduplication("deduplication"),
		CreatedAt:       req.site.now(),
	}
	if f.ok() {
		feature, err := metering.NewFeature(feature)
		if err == nil {
			_, err = req.tenant().CreateFeature(req.context, feature)
		}
		if err := checkFeature(f, "key", err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		view, err := featureForm(req, catalogpage.FeatureForm{New: true, Values: typedFeature(f), Answered: component.Answered{Problems: f.problems}})
		return invalid(view), err
	}
	return req.done(req.appPath("features"), "Feature "+feature.Key+" created.")
}

func (s *Site) editFeature(req *request) (response, error) {
	stored, err := pathFeature(req)
	if err != nil {
		return response{}, err
	}
	view, err := featureForm(req, catalogpage.FeatureForm{Stored: stored, Values: featureValues(stored)})
	return show(view), err
}

func (s *Site) updateFeature(req *request) (response, error) {
	stored, err := pathFeature(req)
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
	patch := metering.FeaturePatch{
		ExpectedRevision: &revision,
		Name:             f.edited("name", stored.Name, f.catalogName),
		Unit:             f.edited("unit", stored.Unit, f.catalogUnit),
		PricingMode:      changed(f, "pricing_mode", fields{f}.pricingMode),
		Cost:             changed(f, "cost", f.credits),
		CreditKey:        changed(f, "credit", fields{f}.creditKey),
		QuantityPerUnit:  changed(f, "quantity", fields{f}.quantity),
		Deduplication:    changed(f, "deduplication", fields{f}.deduplication),
	}
	if f.ok() {
		_, err := req.tenant().UpdateFeature(req.context, stored.Key, patch, req.site.now())
		if fault.Is(err, fault.RevisionConflict) {
			return featureConflict(req, f)
		}
		if err := checkFeature(f, "", err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		// Read again: the feature may have been locked after the first read.
		if stored, err = pathFeature(req); err != nil {
			return response{}, err
		}
		view, err := featureForm(req, catalogpage.FeatureForm{Stored: stored, Values: typedFeature(f), Answered: component.Answered{Problems: f.problems}})
		return invalid(view), err
	}
	return req.done(req.appPath("features"), "Feature "+stored.Key+" saved.")
}

// checkFeature adds the store's refusal to the form. A deleted credit is a validation
// error, not a 404.
func checkFeature(f *form, field string, err error) error {
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

func featureConflict(req *request, f *form) (response, error) {
	stored, err := pathFeature(req)
	if err != nil {
		return response{}, err
	}
	theirs := featureValues(stored)
	yours := asLocked(typedFeature(f), stored)
	yours.Revision = theirs.Revision
	view, err := featureForm(req, catalogpage.FeatureForm{Stored: stored, Values: yours, Answered: component.Answered{Clash: &component.Clash{
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

func pathFeature(req *request) (metering.Feature, error) {
	key, err := req.catalogKey()
	if err != nil {
		return metering.Feature{}, err
	}
	return req.tenant().Feature(req.context, key)
}

// fields reads the fields of a feature.
type fields struct{ *form }

func (f fields) creditKey(field string) string {
	key := f.text(field)
	if !metering.IsKey(key) {
		f.fail(field, "Select a credit.")
	}
	return key
}

func (f fields) pricingMode(field string) metering.PricingMode {
	return choice(f.form, field, metering.Fixed, metering.Callback)
}

func (f fields) deduplication(field string) metering.Deduplication {
	return choice(f.form, field, catalogpage.Deduplications()...)
}

func (f fields) quantity(field string) int64 { return f.count(field, 1) }

func typedFeature(f *form) catalogpage.FeatureValues {
	return catalogpage.FeatureValues{
		Key: f.text("key"), Name: f.text("name"), Unit: f.text("unit"), CreditKey: f.text("credit"), Cost: f.text("cost"),
		QuantityPerUnit: f.text("quantity"), PricingMode: f.text("pricing_mode"), Deduplication: f.text("deduplication"),
		Revision: f.raw("revision"),
	}
}

func featureValues(f metering.Feature) catalogpage.FeatureValues {
	return catalogpage.FeatureValues{
		Key: f.Key, Name: f.Name, Unit: f.Unit, CreditKey: f.CreditKey, Cost: f.Cost.Credits(),
		QuantityPerUnit: strconv.FormatInt(f.QuantityPerUnit, 10), PricingMode: string(f.PricingMode),
		Deduplication: string(f.Deduplication), Revision: strconv.FormatInt(f.Revision, 10),
	}
}

// asLocked restores the stored values of locked fields: browsers do not send disabled
// fields, and values typed before the lock have no effect.
func asLocked(values catalogpage.FeatureValues, stored metering.Feature) catalogpage.FeatureValues {
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

func featureForm(req *request, form catalogpage.FeatureForm) (templ.Component, error) {
	options, err := creditOptions(req)
	if err != nil {
		return nil, err
	}
	title := "New feature"
	if !form.New {
		title, form.Values = form.Stored.Name, asLocked(form.Values, form.Stored)
	}
	if key := form.Values.CreditKey; key != "" && !hasOption(options, key) {
		options = append(options, component.Option{Value: key, Text: key})
	}
	form.Frame, form.Options = req.frame(title, "features"), options
	form.Base, form.Credits, form.ReadOnly = req.appPath("features"), req.appPath("credits"), !req.may(tenancy.FeaturesWrite)
	return catalogpage.Feature(form), nil
}

func hasOption(options []component.Option, value string) bool {
	return slices.ContainsFunc(options, func(o component.Option) bool { return o.Value == value })
}

// creditOptions lists the credits that a feature or a grant can use.
func creditOptions(req *request) ([]component.Option, error) {
	credits, _, err := req.tenant().Credits(req.context, store.Page{Limit: maxOptions})
	var options []component.Option
	for _, c := range credits {
		options = append(options, component.Option{Value: c.Key, Text: c.Name + " (" + c.Key + ")"})
	}
	return options, err
}
