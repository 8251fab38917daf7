package api

import (
	"purser/ids"
	"purser/metering"
)

type featureReply struct {
	Revision          int64  `json:"revision"`
	PlanPricingLocked bool   `json:"planPricingLocked"`
	ID                string `json:"id"`
	featureItem
	DeduplicationLocked bool  `json:"deduplicationLocked"`
	CreatedAt           int64 `json:"createdAt"`
}

func showFeature(f metering.Feature) featureReply {
	return featureReply{
		Revision:            f.Revision,
		PlanPricingLocked:   f.PlanPricingLocked,
		ID:                  f.ID.Format(ids.Feature),
		featureItem:         showFeatureItem(f),
		DeduplicationLocked: f.DeduplicationLocked,
		CreatedAt:           f.CreatedAt,
	}
}

func (s *Server) createFeature(c *call) (reply, error) {
	draft := readFeature(c.body)
	draft.ID, draft.CreatedAt = ids.New(), c.now
	feature, err := metering.NewFeature(draft)
	if err != nil {
		return reply{}, err
	}
	feature, err = s.audited(c).CreateFeature(c.ctx, feature)
	return createdOr(showFeature(feature), err)
}

func (s *Server) getFeature(c *call) (reply, error) {
	feature, err := s.store.App(c.scope).Feature(c.ctx, c.path["key"])
	return okOr(showFeature(feature), err)
}

func (s *Server) listFeatures(c *call) (reply, error) {
	return listPage(s, c, s.store.App(c.scope).Features, showFeature, func(f metering.Feature) ids.ID { return f.ID })
}

func (s *Server) updateFeature(c *call) (reply, error) {
	feature, err := s.audited(c).UpdateFeature(c.ctx, c.path["key"], metering.FeaturePatch{
		ExpectedRevision: c.body.OptionalInt("expectedRevision"),
		Name:             c.body.OptionalText("name"),
		Unit:             c.body.OptionalText("unit"),
		CreditKey:        c.body.OptionalText("creditKey"),
		Cost:             c.body.OptionalAmount("costNanocredits"),
		QuantityPerUnit:  c.body.OptionalInt("quantityPerUnit"),
		PricingMode:      (*metering.PricingMode)(c.body.OptionalText("pricingMode")),
		Deduplication:    (*metering.Deduplication)(c.body.OptionalText("deduplicationPeriod")),
	}, c.now)
	return okOr(showFeature(feature), err)
}
