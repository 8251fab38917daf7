package api

import (
	"purser/billing"
	"purser/ids"
	"purser/metering"
)

type storedCatalogReply struct {
	Version string       `json:"version"`
	Catalog catalogReply `json:"catalog"`
}

// catalogReply has what creates each item, so that it can be applied as it is.
type catalogReply struct {
	Credits  []creditItem  `json:"credits"`
	Features []featureItem `json:"features"`
	Plans    []planItem    `json:"plans"`
}

type creditItem struct {
	Key  string `json:"key"`
	Name string `json:"name"`
	Unit string `json:"unit"`
}

type featureItem struct {
	Key                 string `json:"key"`
	Name                string `json:"name"`
	Unit                string `json:"unit"`
	CreditKey           string `json:"creditKey"`
	CostNanocredits     string `json:"costNanocredits"`
	QuantityPerUnit     int64  `json:"quantityPerUnit"`
	PricingMode         string `json:"pricingMode"`
	DeduplicationPeriod string `json:"deduplicationPeriod"`
}

type planItem struct {
	Key                string           `json:"key"`
	Name               string           `json:"name"`
	AmountCents        int64            `json:"amountCents"`
	Currency           string           `json:"currency"`
	Interval           string           `json:"interval"`
	FeatureLimits      []limitTerm      `json:"featureLimits"`
	CreditGrants       []grantTerm      `json:"creditGrants"`
	FeatureMultipliers []multiplierTerm `json:"featureMultipliers"`
	TopupsEnabled      bool             `json:"topupsEnabled"`
	Active             bool             `json:"active"`
}

func showCatalog(s billing.CatalogState) storedCatalogReply {
	return storedCatalogReply{s.Version(), catalogReply{
		Credits: showAll(s.Credits, showCreditItem), Features: showAll(s.Features, showFeatureItem), Plans: showAll(s.Plans, showPlanItem),
	}}
}

func showCreditItem(c metering.Credit) creditItem { return creditItem{c.Key, c.Name, c.Unit} }

func showFeatureItem(f metering.Feature) featureItem {
	return featureItem{f.Key, f.Name, f.Unit, f.CreditKey, f.Cost.String(), f.QuantityPerUnit, string(f.PricingMode), string(f.Deduplication)}
}

func showPlanItem(p billing.Plan) planItem {
	return planItem{
		Key: p.Key, Name: p.Name, AmountCents: p.AmountCents, Currency: p.Currency, Interval: string(p.Interval),
		FeatureLimits: showAll(p.Limits, showLimit), CreditGrants: showAll(p.Grants, showGrant),
		FeatureMultipliers: showAll(p.Multipliers, showMultiplier), TopupsEnabled: p.TopupsEnabled, Active: p.Active,
	}
}

type comparisonReply struct {
	Version string          `json:"version"`
	Changes []catalogChange `json:"changes"`
}

type catalogChange struct {
	Kind   string        `json:"kind"`
	Key    string        `json:"key"`
	Action string        `json:"action"`
	Fields []fieldChange `json:"fields"`
	Error  string        `json:"error,omitzero"`
	Reason string        `json:"reason,omitzero"`
}

type fieldChange struct {
	Field  string `json:"field"`
	Before string `json:"before,omitzero"`
	After  string `json:"after"`
}

func showComparison(version string, diff billing.CatalogDiff) comparisonReply {
	return comparisonReply{version, showAll(diff.Changes(), func(c billing.CatalogChange) catalogChange {
		shown := catalogChange{
			Kind: string(c.Kind), Key: c.Key, Action: string(c.Action),
			Fields: showAll(c.Fields, func(f billing.FieldChange) fieldChange { return fieldChange{f.Name, f.Before, f.After} }),
		}
		if c.Fault != nil {
			shown.Error, shown.Reason = string(c.Fault.Code), c.Fault.Message
		}
		return shown
	})}
}

func (s *Server) getCatalog(c *call) (reply, error) {
	state, err := s.store.App(c.scope).Catalog(c.ctx)
	return okOr(showCatalog(state), err)
}

func (s *Server) previewCatalog(c *call) (reply, error) {
	state, err := s.store.App(c.scope).Catalog(c.ctx)
	if err != nil {
		return reply{}, err
	}
	diff, err := state.Compare(readCatalog(c.body.Object("catalog")), c.catalogOptions())
	return okOr(showComparison(state.Version(), diff), err)
}

func (s *Server) applyCatalog(c *call) (reply, error) {
	draft := readCatalog(c.body.Object("catalog"))
	diff, version, err := s.audited(c).ApplyCatalog(c.ctx, c.body.Text("expectedVersion"), c.now, "", func(state billing.CatalogState) (billing.CatalogDiff, error) {
		return state.Compare(draft, c.catalogOptions())
	})
	s.cashier.Wake(c.scope)
	return okOr(showComparison(version, diff), err)
}

func (c *call) catalogOptions() billing.CatalogOptions {
	return billing.CatalogOptions{ArchiveMissing: c.body.Bool("archiveMissing"), NewID: ids.New, Now: c.now}
}

func readCatalog(in input) billing.CatalogDraft {
	return billing.CatalogDraft{
		Credits:  showAll(in.Objects("credits"), readCredit),
		Features: showAll(in.Objects("features"), readFeature),
		Plans:    showAll(in.Objects("plans"), readPlan),
	}
}

func readCredit(in input) metering.Credit {
	return metering.Credit{Key: in.Text("key"), Name: in.Text("name"), Unit: in.Text("unit")}
}

func readFeature(in input) metering.Feature {
	return metering.Feature{
		Key:             in.Text("key"),
		Name:            in.Text("name"),
		Unit:            in.Text("unit"),
		CreditKey:       in.Text("creditKey"),
		Cost:            in.Amount("costNanocredits"),
		QuantityPerUnit: in.Int("quantityPerUnit"),
		PricingMode:     metering.PricingMode(in.Text("pricingMode")),
		Deduplication:   metering.Deduplication(in.Text("deduplicationPeriod")),
	}
}

func readPlan(in input) billing.PlanDraft {
	return billing.PlanDraft{
		Key:  in.Text("key"),
		Name: in.Text("name"),
		Price: billing.Price{
			AmountCents: in.Int("amountCents"),
			Currency:    in.Text("currency"),
			Interval:    billing.Interval(in.Text("interval")),
		},
		Limits:        readLimits(in),
		Grants:        readGrants(in),
		Multipliers:   readMultipliers(in),
		TopupsEnabled: in.Bool("topupsEnabled"),
		Active:        in.Bool("active"),
	}
}
