package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/notify"
	"purser/store/internal/pg"
)

const alertRuleColumns = `
	id, key, kind, coalesce(credit_id, feature_id), watched_key, array_to_string(thresholds, ' '), rearm_percent::bigint,
	quiet_hours::bigint, coalesce(identity, ''), created_at
	FROM alert_rules WHERE app_id = $1`

var (
	// ListAlertRules lists the rules, the oldest first.
	ListAlertRules = pg.Declare("list alert rules", `SELECT`+alertRuleColumns+` ORDER BY created_at, id`)
	// SelectAlertRule finds a rule by its key.
	SelectAlertRule = pg.Declare("select alert rule", `SELECT`+alertRuleColumns+` AND key = $2`)

	// Marks of deleted rules stay, so those of present ones are looked up. A rule has up to six,
	// and those of thresholds that it had before.
	selectSpentMarks = pg.Declare("select spent alert marks", `
		SELECT m.rule_id, m.threshold::text, m.fired_at
		FROM alert_rules r CROSS JOIN LATERAL (
			SELECT rule_id, threshold, fired_at
			FROM alert_marks WHERE app_id = $1 AND wallet_id = $2 AND rule_id = r.id AND NOT armed AND period_start = 0
			LIMIT 1000) m
		WHERE r.app_id = $1 AND r.kind = 'balance'`)

	armMarks = pg.Declare("arm alert marks", `
		UPDATE alert_marks SET armed = true
		WHERE app_id = $1 AND wallet_id = $2 AND (rule_id, threshold) IN (
			SELECT t.rule_id, t.threshold FROM unnest($3::uuid[], $4::text[]::numeric[]) AS t (rule_id, threshold))`)
)

// ReadAlertRule reads a rule of either statement.
func ReadAlertRule(row pgx.CollectableRow) (r metering.AlertRule, err error) {
	var watched ids.ID
	var key, thresholds string
	err = row.Scan(&r.ID, &r.Key, &r.Kind, &watched, &key, &thresholds, &r.RearmPercent, &r.QuietHours, &r.Identity, &r.CreatedAt)
	if err != nil {
		return r, err
	}
	return r, CompleteAlertRule(&r, watched, key, thresholds)
}

var errStoredThreshold = errors.New("store: a threshold of an alert rule is not a number")

// CompleteAlertRule adds what a stored rule watches, and its thresholds.
func CompleteAlertRule(r *metering.AlertRule, watched ids.ID, key, thresholds string) error {
	if r.Kind == metering.AlertAllowance {
		r.FeatureID, r.FeatureKey = watched, key
	} else {
		r.CreditID, r.CreditKey = watched, key
	}
	for text := range strings.FieldsSeq(thresholds) {
		amount, ok := metering.ParseAmount(text)
		if !ok {
			return errStoredThreshold
		}
		if r.Kind == metering.AlertAllowance {
			r.Percents = append(r.Percents, int64(amount))
		} else {
			r.Thresholds = append(r.Thresholds, amount)
		}
	}
	return nil
}

// recoverAlerts arms the thresholds that a higher balance has reached again, and says so.
// Most wallets have no spent mark, and read nothing more.
func (tx Tx) recoverAlerts(ctx context.Context, walletID ids.ID, identity string, after metering.Balance, now int64) error {
	marks := metering.AlertMarks{}
	_, err := pg.Collect(ctx, tx, selectSpentMarks, func(row pgx.CollectableRow) (none struct{}, err error) {
		var key metering.MarkKey
		var threshold string
		var mark metering.AlertMark
		if err := row.Scan(&key.RuleID, &threshold, &mark.FiredAt); err != nil {
			return none, err
		}
		amount, ok := metering.ParseAmount(threshold)
		if !ok {
			return none, errStoredThreshold
		}
		key.Threshold = uint64(amount)
		marks[key] = mark
		return none, nil
	}, walletID)
	if err != nil || len(marks) == 0 {
		return err
	}
	rules, err := pg.Collect(ctx, tx, ListAlertRules, ReadAlertRule)
	if err != nil {
		return err
	}
	var armedRules []ids.ID
	var armedThresholds []string
	var notifications []notify.Notification
	for _, a := range metering.DecideRecovery(rules, marks, identity, after) {
		for _, key := range a.Marked {
			armedRules, armedThresholds = append(armedRules, key.RuleID), append(armedThresholds, metering.Amount(key.Threshold).String())
		}
		if a.Threshold != 0 {
			n, err := AlertNotification(a, walletID, now)
			if err != nil {
				return err
			}
			notifications = append(notifications, n)
		}
	}
	if len(armedRules) == 0 {
		return nil
	}
	if err := tx.Exec(ctx, armMarks, int64(len(armedRules)), walletID, armedRules, armedThresholds); err != nil {
		return err
	}
	return tx.Notify(ctx, notifications...)
}

// AlertNotification is what an alert tells other systems.
func AlertNotification(a metering.Alert, walletID ids.ID, now int64) (n notify.Notification, err error) {
	n = notify.Notification{ID: ids.New(), Type: notify.Type(a.Type), WalletID: walletID, CreatedAt: now}
	if a.Type == metering.AllowanceThreshold {
		n.Data, err = json.Marshal(notify.AllowanceData{
			Rule: a.Rule.Key, FeatureKey: a.Rule.FeatureKey, Percent: int64(a.Threshold), Limit: a.Allowance.Limit, Used: a.Used,
			PeriodStart: a.Allowance.Period.Start, PeriodEnd: a.Allowance.Period.End,
		})
	} else {
		data := notify.BalanceData{
			Rule: a.Rule.Key, CreditKey: a.Rule.CreditKey, Balance: a.Balance.Amount.String(), Debt: a.Balance.Debt.String(),
		}
		if a.Threshold != 0 {
			data.Threshold = metering.Amount(a.Threshold).String()
		}
		n.Data, err = json.Marshal(data)
	}
	if err != nil {
		return n, fmt.Errorf("store: encode an alert: %w", err)
	}
	return n, nil
}
