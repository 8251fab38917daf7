package store

import (
	"context"
	"strconv"
	"strings"

	"purser/fault"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

var (
	insertAlertRule = pg.Declare("insert alert rule", `
		INSERT INTO alert_rules (app_id, id, org_id, key, kind, credit_id, feature_id, watched_key, thresholds, rearm_percent, quiet_hours, identity, created_at)
		VALUES ($1, @id, @org_id, @key, @kind, @credit_id, @feature_id, @watched_key, @thresholds::text[]::numeric[], @rearm_percent, @quiet_hours, nullif(@identity, ''), @created_at)`)

	deleteAlertRule = pg.Declare("delete alert rule", `DELETE FROM alert_rules WHERE app_id = $1 AND id = $2`)
)

// PutAlertRule creates a rule, or replaces the one with its key. A rule of the same credit
// or feature keeps its id, so thresholds that stay are not announced again. With a version,
// it replaces only the rule of that version; an empty one is that of no rule.
func (a App) PutAlertRule(ctx context.Context, r metering.AlertRule, version ...string) (metering.AlertRule, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (metering.AlertRule, error) {
		// First, so that two of them run one after the other.
		if _, err := tx.AdvanceEpoch(ctx); err != nil {
			return r, err
		}
		if err := tx.resolveAlertRule(ctx, &r); err != nil {
			return r, err
		}
		was, err := pg.Find(ctx, tx, ledger.SelectAlertRule, ledger.ReadAlertRule, fault.New(fault.AlertRuleNotFound), r.Key)
		created := fault.Is(err, fault.AlertRuleNotFound)
		switch {
		case len(version) > 0 && (created || err == nil) && was.Version() != version[0]:
			return r, fault.New(fault.RevisionConflict)
		case created:
		case err != nil:
			return r, err
		default:
			if r.CreatedAt = was.CreatedAt; r.CreditID == was.CreditID && r.FeatureID == was.FeatureID {
				r.ID = was.ID
			}
			if err := tx.Exec(ctx, deleteAlertRule, 1, was.ID); err != nil {
				return r, err
			}
		}
		err = tx.Exec(ctx, insertAlertRule, 1, pg.Named{
			"id": r.ID, "org_id": tx.Scope.OrgID, "key": r.Key, "kind": string(r.Kind), "credit_id": pg.OrNull(r.CreditID),
			"feature_id": pg.OrNull(r.FeatureID), "watched_key": r.CreditKey + r.FeatureKey, "thresholds": thresholdTexts(r),
			"rearm_percent": r.RearmPercent, "quiet_hours": r.QuietHours, "identity": r.Identity, "created_at": r.CreatedAt,
		})
		if err != nil {
			return r, err
		}
		if created {
			if err := tx.CheckBound(ctx, ledger.BoundOfAlertRules); err != nil {
				return r, err
			}
			return r, tx.Audit(ctx, "alert-rule.create", r.Key, nil, factsOfAlertRule(r))
		}
		return r, tx.Audit(ctx, "alert-rule.update", r.Key, factsOfAlertRule(was), factsOfAlertRule(r))
	})
}

// resolveAlertRule finds the credit or the feature that a rule names.
func (tx appTx) resolveAlertRule(ctx context.Context, r *metering.AlertRule) error {
	if r.Kind == metering.AlertAllowance {
		feature, err := pg.Find(ctx, tx, selectFeature, readFeature, fault.New(fault.FeatureNotFound), r.FeatureKey)
		r.FeatureID = feature.ID
		return err
	}
	credit, err := tx.Credit(ctx, r.CreditKey)
	r.CreditID = credit.ID
	return err
}

func thresholdTexts(r metering.AlertRule) (texts []string) {
	for _, percent := range r.Percents {
		texts = append(texts, strconv.FormatInt(percent, 10))
	}
	for _, amount := range r.Thresholds {
		texts = append(texts, amount.String())
	}
	return texts
}

func factsOfAlertRule(r metering.AlertRule) audit.Fields {
	facts, thresholds := audit.Fields{"kind": string(r.Kind)}, strings.Join(thresholdTexts(r), "; ")
	if r.Kind == metering.AlertAllowance {
		facts["feature"], facts["thresholds percent"] = r.FeatureKey, thresholds
		return facts
	}
	facts["credit"], facts["thresholdsNanocredits"] = r.CreditKey, thresholds
	facts["rearm percent"], facts["quiet hours"] = strconv.FormatInt(r.RearmPercent, 10), strconv.FormatInt(r.QuietHours, 10)
	if r.Identity != "" { // the log names no customers
		facts["customers"] = "one"
	}
	return facts
}

func (a App) AlertRule(ctx context.Context, key string) (metering.AlertRule, error) {
	return pg.FindOne(ctx, a.app, ledger.SelectAlertRule, ledger.ReadAlertRule, fault.New(fault.AlertRuleNotFound), key)
}

// AlertRules lists the rules, the oldest first.
func (a App) AlertRules(ctx context.Context) ([]metering.AlertRule, error) {
	return pg.ListAll(ctx, a.app, ledger.ListAlertRules, ledger.ReadAlertRule)
}

// DeleteAlertRule removes a rule and returns it as it was.
func (a App) DeleteAlertRule(ctx context.Context, key string) (metering.AlertRule, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (was metering.AlertRule, err error) {
		if _, err := tx.AdvanceEpoch(ctx); err != nil {
			return was, err
		}
		was, err = pg.Find(ctx, tx, ledger.SelectAlertRule, ledger.ReadAlertRule, fault.New(fault.AlertRuleNotFound), key)
		if err != nil {
			return was, err
		}
		if err := tx.Exec(ctx, deleteAlertRule, 1, was.ID); err != nil {
			return was, err
		}
		return was, tx.Audit(ctx, "alert-rule.delete", key, factsOfAlertRule(was), nil)
	})
}
