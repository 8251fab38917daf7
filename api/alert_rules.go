package api

import (
	"purser/ids"
	"purser/metering"
)

type alertRuleReply struct {
	Key               string   `json:"key"`
	Kind              string   `json:"kind"`
	CreditKey         string   `json:"creditKey,omitzero"`
	Thresholds        []string `json:"thresholdsNanocredits,omitempty"`
	RearmPercent      *int64   `json:"rearmPercent,omitzero"`
	QuietHours        *int64   `json:"quietHours,omitzero"`
	Identity          string   `json:"identity,omitzero"`
	FeatureKey        string   `json:"featureKey,omitzero"`
	ThresholdsPercent []int64  `json:"thresholdsPercent,omitempty"`
	CreatedAt         int64    `json:"createdAt"`
}

type alertRulesReply struct {
	Data []alertRuleReply `json:"data"`
}

func showAlertRule(r metering.AlertRule) alertRuleReply {
	shown := alertRuleReply{Key: r.Key, Kind: string(r.Kind), CreatedAt: r.CreatedAt}
	if r.Kind == metering.AlertAllowance {
		shown.FeatureKey, shown.ThresholdsPercent = r.FeatureKey, r.Percents
		return shown
	}
	shown.CreditKey, shown.Identity = r.CreditKey, r.Identity
	shown.RearmPercent, shown.QuietHours = &r.RearmPercent, &r.QuietHours
	for _, threshold := range r.Thresholds {
		shown.Thresholds = append(shown.Thresholds, threshold.String())
	}
	return shown
}

func (s *Server) putAlertRule(c *call) (reply, error) {
	draft, err := readAlertRule(c)
	if err != nil {
		return reply{}, err
	}
	rule, err := metering.NewAlertRule(draft)
	if err != nil {
		return reply{}, err
	}
	rule, err = s.audited(c).PutAlertRule(c.ctx, rule)
	return okOr(showAlertRule(rule), err)
}

// readAlertRule refuses fields of the other kind: a typo must not go unnoticed.
func readAlertRule(c *call) (r metering.AlertRule, err error) {
	r = metering.AlertRule{ID: ids.New(), Key: c.path["key"], Kind: metering.AlertKind(c.body.Text("kind")), CreatedAt: c.now}
	needed, foreign := []string{"creditKey", "thresholdsNanocredits"}, []string{"featureKey", "thresholdsPercent"}
	if r.Kind == metering.AlertAllowance {
		needed, foreign = foreign, append(needed, "identity", "rearmPercent", "quietHours")
	}
	for _, name := range needed {
		if !c.body.Has(name) {
			return r, invalid("A rule of kind %s needs %s.", r.Kind, name)
		}
	}
	for _, name := range foreign {
		if c.body.Has(name) {
			return r, invalid("A rule of kind %s doesn't accept %s.", r.Kind, name)
		}
	}
	if r.Kind == metering.AlertAllowance {
		r.FeatureKey = c.body.Text("featureKey")
		r.Percents = c.body.Ints("thresholdsPercent")
		return r, nil
	}
	r.CreditKey, r.Identity = c.body.Text("creditKey"), c.body.Text("identity")
	r.Thresholds = c.body.Amounts("thresholdsNanocredits")
	r.RearmPercent, r.QuietHours = metering.DefaultRearmPercent, metering.DefaultQuietHours
	if c.body.Has("rearmPercent") {
		r.RearmPercent = c.body.Int("rearmPercent")
	}
	if c.body.Has("quietHours") {
		r.QuietHours = c.body.Int("quietHours")
	}
	return r, nil
}

func (s *Server) listAlertRules(c *call) (reply, error) {
	rules, err := s.store.App(c.scope).AlertRules(c.ctx)
	return okOr(alertRulesReply{Data: showAll(rules, showAlertRule)}, err)
}

func (s *Server) getAlertRule(c *call) (reply, error) {
	rule, err := s.store.App(c.scope).AlertRule(c.ctx, c.path["key"])
	return okOr(showAlertRule(rule), err)
}

func (s *Server) deleteAlertRule(c *call) (reply, error) {
	rule, err := s.audited(c).DeleteAlertRule(c.ctx, c.path["key"])
	return okOr(showAlertRule(rule), err)
}
