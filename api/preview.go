package api

import (
	"purser/billing"
	"purser/fault"
	"purser/metering"
)

type previewReply struct {
	Kind        string             `json:"kind"`
	EffectiveAt int64              `json:"effectiveAt"`
	ChargeCents int64              `json:"chargeCents"`
	Currency    string             `json:"currency"`
	Grants      []grantTerm        `json:"grants"`
	Limits      []limitChange      `json:"limits"`
	Multipliers []multiplierChange `json:"multipliers"`
	Releases    releasesReply      `json:"releases,omitzero"`
	Needs       string             `json:"needs"`
	RefusedBy   fault.Code         `json:"refusedBy,omitzero"`
}

type limitChange struct {
	FeatureKey string         `json:"featureKey"`
	From       *previewedTerm `json:"from,omitzero"`
	To         *previewedTerm `json:"to,omitzero"`
}

type previewedTerm struct {
	Limit   int64  `json:"limit"`
	Period  string `json:"period"`
	Overage string `json:"overage"`
}

type multiplierChange struct {
	FeatureKey string `json:"featureKey"`
	From       int64  `json:"from"`
	To         int64  `json:"to"`
}

type releasesReply struct {
	ScheduledPlanKey string `json:"scheduledPlanKey,omitzero"`
	PendingPlanKey   string `json:"pendingPlanKey,omitzero"`
}

func (s *Server) previewSubscriptionChange(c *call) (reply, error) {
	preview, err := s.cashier.PreviewChange(c.ctx, c.scope, billing.ChangeRequest{
		Identity: c.path["identity"],
		PlanKey:  c.body.Text("planKey"),
	})
	return okOr(showPreview(preview), err)
}

func showPreview(p billing.Preview) previewReply {
	return previewReply{
		Kind:        string(p.Kind),
		EffectiveAt: p.EffectiveAt,
		ChargeCents: p.ChargeCents,
		Currency:    p.Currency,
		Grants:      showAll(p.Grants, showGrant),
		Limits: showAll(p.Limits, func(l billing.LimitChange) limitChange {
			return limitChange{l.FeatureKey, showPreviewed(l.From), showPreviewed(l.To)}
		}),
		Multipliers: showAll(p.Multipliers, func(m billing.MultiplierChange) multiplierChange {
			return multiplierChange{m.FeatureKey, m.From, m.To}
		}),
		Releases:  releasesReply{p.ReleasesScheduled, p.ReleasesPending},
		Needs:     string(p.Needs),
		RefusedBy: p.RefusedBy,
	}
}

func showPreviewed(l *metering.Limit) *previewedTerm {
	if l == nil {
		return nil
	}
	return &previewedTerm{l.Limit, string(l.Period), string(l.Overage)}
}
