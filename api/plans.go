package api

import (
	"purser/billing"
	"purser/ids"
	"purser/metering"
)

type planReply struct {
	planItem
	ID                string             `json:"id"`
	Revision          int64              `json:"revision"`
	CreatedAt         int64              `json:"createdAt"`
	ProviderProductID string             `json:"providerProductId,omitzero"`
	ProviderPriceID   string             `json:"providerPriceId,omitzero"`
	SyncStatus        billing.SyncStatus `json:"syncStatus"`
	SyncError         string             `json:"syncError,omitzero"`
}

type limitTerm struct {
	FeatureKey string `json:"featureKey"`
	Limit      int64  `json:"limit"`
	Period     string `json:"period"`
	Overage    string `json:"overage"`
}

type grantTerm struct {
	CreditKey         string `json:"creditKey"`
	AmountNanocredits string `json:"amountNanocredits"`
}

type multiplierTerm struct {
	FeatureKey  string `json:"featureKey"`
	BasisPoints int64  `json:"basisPoints"`
}

func showLimit(l metering.Limit) limitTerm {
	return limitTerm{l.FeatureKey, l.Limit, string(l.Period), string(l.Overage)}
}

func showGrant(g billing.Grant) grantTerm { return grantTerm{g.CreditKey, g.Amount.String()} }

func showMultiplier(m metering.Multiplier) multiplierTerm {
	return multiplierTerm{m.FeatureKey, m.BasisPoints}
}

func showPlan(p billing.Plan) planReply {
	return planReply{
		planItem:          showPlanItem(p),
		ID:                p.ID.Format(ids.Plan),
		Revision:          p.Revision,
		CreatedAt:         p.CreatedAt,
		ProviderProductID: p.Sync.ProductID,
		ProviderPriceID:   p.Sync.PriceID,
		SyncStatus:        p.Sync.Status,
		SyncError:         p.Sync.Error,
	}
}

func (s *Server) createPlan(c *call) (reply, error) {
	draft := readPlan(c.body)
	plan, err := s.audited(c).CreatePlan(c.ctx, draft, func(catalog billing.Catalog) (billing.Plan, error) {
		return billing.NewPlan(ids.New(), draft, catalog, c.now)
	})
	s.cashier.Wake(c.scope)
	return createdOr(showPlan(plan), err)
}

func (s *Server) getPlan(c *call) (reply, error) {
	plan, err := s.store.App(c.scope).Plan(c.ctx, c.path["key"])
	return okOr(showPlan(plan), err)
}

func (s *Server) listPlans(c *call) (reply, error) {
	return listPage(s, c, s.store.App(c.scope).Plans, showPlan, func(p billing.Plan) ids.ID { return p.ID })
}

func (s *Server) updatePlan(c *call) (reply, error) {
	patch := billing.PlanPatch{
		ExpectedRevision: c.body.OptionalInt("expectedRevision"),
		Name:             c.body.OptionalText("name"),
		AmountCents:      c.body.OptionalInt("amountCents"),
		Currency:         c.body.OptionalText("currency"),
		Interval:         (*billing.Interval)(c.body.OptionalText("interval")),
		TopupsEnabled:    c.body.OptionalBool("topupsEnabled"),
		Active:           c.body.OptionalBool("active"),
	}
	if c.body.Has("featureLimits") {
		limits := readLimits(c.body)
		patch.Limits = &limits
	}
	if c.body.Has("creditGrants") {
		grants := readGrants(c.body)
		patch.Grants = &grants
	}
	if c.body.Has("featureMultipliers") {
		multipliers := readMultipliers(c.body)
		patch.Multipliers = &multipliers
	}
	plan, err := s.audited(c).UpdatePlan(c.ctx, c.path["key"], patch)
	s.cashier.Wake(c.scope)
	return okOr(showPlan(plan), err)
}

func readLimits(in input) []metering.Limit {
	return showAll(in.Objects("featureLimits"), func(l input) metering.Limit {
		return metering.Limit{
			FeatureKey: l.Text("featureKey"),
			Limit:      l.Int("limit"),
			Period:     metering.LimitPeriod(l.Text("period")),
			Overage:    metering.Overage(l.Text("overage")),
		}
	})
}

func readGrants(in input) []billing.Grant {
	return showAll(in.Objects("creditGrants"), func(g input) billing.Grant {
		return billing.Grant{CreditKey: g.Text("creditKey"), Amount: g.Amount("amountNanocredits")}
	})
}

func readMultipliers(in input) []metering.Multiplier {
	return showAll(in.Objects("featureMultipliers"), func(m input) metering.Multiplier {
		return metering.Multiplier{FeatureKey: m.Text("featureKey"), BasisPoints: m.Int("basisPoints")}
	})
}
