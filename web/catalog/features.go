package catalog

import (
	"strconv"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/tenancy"
	"purser/views/component"
	catalogpage "purser/views/page/catalog"
	"purser/web/site"
)

func (s *Pages) features(req *site.Request, part store.Page) (site.Response, error) {
	list, more, err := req.Tenant().Features(req.Context, part)
	if err != nil {
		return site.Response{}, err
	}
	return site.Show(catalogpage.Features(catalogpage.List[metering.Feature]{
		Frame: req.Frame("Features", "features"), Base: req.AppPath("features"), Items: list, MayEdit: req.May(tenancy.FeaturesWrite), Copy: copyPath(req),
		Pages: site.Pages(req.AppPath("features"), ids.Feature, part, list, more, func(f metering.Feature) ids.ID { return f.ID }),
	})), nil
}

func (s *Pages) newFeature(req *site.Request) (site.Response, error) {
	view, err := featureForm(req, catalogpage.FeatureForm{New: true, Values: catalogpage.FeatureValues{
		QuantityPerUnit: "1", PricingMode: string(metering.Fixed), Deduplication: string(metering.DeduplicateNone),
	}})
	return site.Show(view), err
}

func (s *Pages) createFeature(req *site.Request) (site.Response, error) {
	f := req.Form
	feature := metering.Feature{
		ID:              ids.New(),
		Key:             f.CatalogKey("key"),
		Name:            f.CatalogName("name"),
		Unit:            f.CatalogUnit("unit"),
		PricingMode:     fields{f}.pricingMode("pricing_mode"),
		Cost:            fields{f}.cost("cost"),
		CreditKey:       fields{f}.creditKey("credit"),
		QuantityPerUnit: fields{f}.quantity("quantity"),
		Deduplication:   fields{f}.deduplication("deduplication"),
		CreatedAt:       req.Site.Now(),
	}
	if f.OK() {
		feature, err := metering.NewFeature(feature)
		if err == nil {
			_, err = req.Tenant().CreateFeature(req.Context, feature)
		}
		checkFeature(f, "key", err)
	}
	if !f.OK() {
		view, err := featureForm(req, catalogpage.FeatureForm{New: true, Values: typedFeature(f), Answered: component.Answered{Problems: f.Problems}})
		return site.Invalid(view), err
	}
	return req.Done(req.AppPath("features"), "Feature "+feature.Key+" created.")
}

func (s *Pages) editFeature(req *site.Request, stored metering.Feature) (site.Response, error) {
	view, err := featureForm(req, catalogpage.FeatureForm{Stored: stored, Values: featureValues(stored)})
	return site.Show(view), err
}

func (s *Pages) updateFeature(req *site.Request, stored metering.Feature) (site.Response, error) {
	f := req.Form
	revision, err := f.Revision()
	if err != nil {
		return site.Response{}, err
	}
	patch := metering.FeaturePatch{
		ExpectedRevision: &revision,
		Name:             f.Edited("name", stored.Name, f.CatalogName),
		Unit:             f.Edited("unit", stored.Unit, f.CatalogUnit),
		PricingMode:      site.Changed(f, "pricing_mode", fields{f}.pricingMode),
		Cost:             site.Changed(f, "cost", fields{f}.cost),
		CreditKey:        site.Changed(f, "credit", fields{f}.creditKey),
		QuantityPerUnit:  site.Changed(f, "quantity", fields{f}.quantity),
		Deduplication:    site.Changed(f, "deduplication", fields{f}.deduplication),
	}
	if f.OK() {
		_, err := req.Tenant().UpdateFeature(req.Context, stored.Key, patch, req.Site.Now())
		if fault.Is(err, fault.RevisionConflict) {
			return featureConflict(req, f)
		}
		checkFeature(f, "", err)
	}
	if !f.OK() {
		// Read again: the feature may have been locked after the first read.
		if stored, err = pathFeature(req); err != nil {
			return site.Response{}, err
		}
		view, err := featureForm(req, catalogpage.FeatureForm{Stored: stored, Values: typedFeature(f), Answered: component.Answered{Problems: f.Problems}})
		return site.Invalid(view), err
	}
	return req.Done(req.AppPath("features"), "Feature "+stored.Key+" saved.")
}

// checkFeature adds the store's refusal to the form. A deleted credit is a validation
// error, not a 404.
func checkFeature(f *site.Form, field string, err error) {
	switch {
	case fault.Is(err, fault.CreditNotFound):
		f.Fail("credit", "This credit no longer exists. Select another one.")
	case fault.Is(err, fault.DeduplicationLocked):
		f.Check("deduplication", err)
	case fault.Is(err, fault.PricingLocked), fault.Is(err, fault.CallbackMultiplier):
		f.Check("pricing_mode", err)
	default:
		f.Check(field, err)
	}
}

func featureConflict(req *site.Request, f *site.Form) (site.Response, error) {
	stored, err := pathFeature(req)
	if err != nil {
		return site.Response{}, err
	}
	theirs := featureValues(stored)
	yours := asLocked(typedFeature(f), stored)
	yours.Revision = theirs.Revision
	view, err := featureForm(req, catalogpage.FeatureForm{Stored: stored, Values: yours, Answered: component.Answered{Clash: &component.Clash{
		Rows: []component.Difference{
			{Label: "Name", Yours: yours.Name, Theirs: theirs.Name},
			{Label: "Unit", Yours: yours.Unit, Theirs: theirs.Unit},
			{Label: "Pricing", Yours: catalogpage.PricingText(yours.PricingMode), Theirs: catalogpage.PricingText(theirs.PricingMode)},
			{Label: "Cost", Yours: yours.Cost, Theirs: theirs.Cost},
			{Label: "Priced in", Yours: yours.CreditKey, Theirs: theirs.CreditKey},
			{Label: "Per quantity", Yours: yours.QuantityPerUnit, Theirs: theirs.QuantityPerUnit},
			{Label: "Billing frequency", Yours: catalogpage.DeduplicationText(yours.Deduplication), Theirs: catalogpage.DeduplicationText(theirs.Deduplication)},
		},
	}}})
	return site.Conflict(view), err
}

func pathFeature(req *site.Request) (metering.Feature, error) {
	return site.AtKey(req, req.Tenant().Feature)
}

// fields reads the fields of a feature.
type fields struct{ *site.Form }

func (f fields) creditKey(field string) string {
	key := f.Text(field)
	if !metering.IsKey(key) {
		f.Fail(field, "Select a credit.")
	}
	return key
}

func (f fields) pricingMode(field string) metering.PricingMode {
	return site.Choice(f.Form, field, metering.Fixed, metering.Callback)
}

// cost may be left out if each event brings its amount.
func (f fields) cost(field string) metering.Amount {
	if f.Text(field) == "" && f.Text("pricing_mode") == string(metering.Callback) {
		return 0
	}
	return f.Credits(field)
}

func (f fields) deduplication(field string) metering.Deduplication {
	return site.Choice(f.Form, field, catalogpage.Deduplications()...)
}

func (f fields) quantity(field string) int64 { return f.Count(field, 1) }

func typedFeature(f *site.Form) catalogpage.FeatureValues {
	return catalogpage.FeatureValues{
		Key: f.Text("key"), Name: f.Text("name"), Unit: f.Text("unit"), CreditKey: f.Text("credit"), Cost: f.Text("cost"),
		QuantityPerUnit: f.Text("quantity"), PricingMode: f.Text("pricing_mode"), Deduplication: f.Text("deduplication"),
		Revision: f.Raw("revision"),
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

func featureForm(req *site.Request, form catalogpage.FeatureForm) (templ.Component, error) {
	options, err := req.CreditOptions()
	if err != nil {
		return nil, err
	}
	title := "New feature"
	if !form.New {
		title, form.Values = form.Stored.Name, asLocked(form.Values, form.Stored)
	}
	if key := form.Values.CreditKey; key != "" && !component.HasOption(options, key) {
		options = append(options, component.Option{Value: key, Text: key})
	}
	form.Frame, form.Options = req.Frame(title, "features"), options
	form.Base, form.NewCredit, form.ReadOnly = req.AppPath("features"), req.LinkIfPermitted(tenancy.CreditsWrite, "credits", "new"), !req.May(tenancy.FeaturesWrite)
	return catalogpage.Feature(form), nil
}
