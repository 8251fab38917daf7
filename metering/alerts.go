package metering

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"purser/fault"
	"purser/ids"
)

// AlertKind is what a rule watches.
type AlertKind string

// The kinds of rules.
const (
	AlertBalance   AlertKind = "balance"
	AlertAllowance AlertKind = "allowance"
)

// Limits of alert rules. The OpenAPI document has the same ones.
const (
	MaxAlertRules      = 50
	MaxAlertThresholds = 5
	MinRearmPercent    = 100
	MaxRearmPercent    = 1000
	// DefaultRearmPercent arms a rule again at 1.2 times its threshold.
	DefaultRearmPercent = 120
	MaxQuietHours       = 8760
	DefaultQuietHours   = 24
)

// AlertRule says when a balance is low, or how much of an allowance is used.
type AlertRule struct {
	ID        ids.ID
	Key       string
	Kind      AlertKind
	CreatedAt int64

	// Of a balance.
	CreditID     ids.ID
	CreditKey    string
	Thresholds   []Amount // descending
	RearmPercent int64    // of a threshold: a balance that reaches it arms the threshold again
	QuietHours   int64    // after an alert of a threshold
	Identity     string   // the only wallet it watches; empty for all

	// Of an allowance.
	FeatureID  ids.ID
	FeatureKey string
	Percents   []int64 // ascending
}

// NewAlertRule checks a draft and sorts its thresholds.
func NewAlertRule(r AlertRule) (AlertRule, error) {
	if _, err := ParseKey(r.Key); err != nil {
		return r, err
	}
	invalid := func(text string, values ...any) (AlertRule, error) {
		return r, fault.Newf(fault.InvalidRequest, text, values...)
	}
	if r.Kind == AlertAllowance {
		if n := len(r.Percents); n < 1 || n > MaxAlertThresholds {
			return invalid("Give 1 to %d thresholds.", MaxAlertThresholds)
		}
		r.Percents = slices.Clone(r.Percents)
		slices.Sort(r.Percents)
		for i, percent := range r.Percents {
			if percent < 1 || percent > 100 || i > 0 && percent == r.Percents[i-1] {
				return invalid("Thresholds must be distinct whole percentages from 1 to 100.")
			}
		}
		return r, nil
	}
	if n := len(r.Thresholds); n < 1 || n > MaxAlertThresholds {
		return invalid("Give 1 to %d thresholds.", MaxAlertThresholds)
	}
	r.Thresholds = slices.Clone(r.Thresholds)
	slices.Sort(r.Thresholds)
	slices.Reverse(r.Thresholds)
	for i, threshold := range r.Thresholds {
		if threshold == 0 || i > 0 && threshold == r.Thresholds[i-1] {
			return invalid("Thresholds must be distinct amounts above zero.")
		}
	}
	switch {
	case r.RearmPercent < MinRearmPercent || r.RearmPercent > MaxRearmPercent:
		return invalid("rearmPercent is from %d to %d.", MinRearmPercent, MaxRearmPercent)
	case r.QuietHours < 0 || r.QuietHours > MaxQuietHours:
		return invalid("quietHours is from 0 to %d.", MaxQuietHours)
	}
	if r.Identity != "" {
		if _, err := ParseIdentity(r.Identity); err != nil {
			return r, err
		}
	}
	return r, nil
}

// Version tells a stored rule from what it was before a change. That of no rule is empty.
func (r AlertRule) Version() string {
	if r.ID.IsZero() {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q %q %d %d %d %d %q", r.ID, r.CreditKey, r.FeatureKey, r.Thresholds, r.Percents, r.RearmPercent, r.QuietHours, r.Identity))
	return hex.EncodeToString(sum[:])
}

type AlertType string

// The types of alerts, as notifications have them.
const (
	BalanceLow         AlertType = "balance.low"
	BalanceExhausted   AlertType = "balance.exhausted"
	BalanceRecovered   AlertType = "balance.recovered"
	AllowanceThreshold AlertType = "allowance.threshold"
)

// MarkKey names a threshold of a rule, within one wallet: an amount, a percentage, or
// zero for an exhausted balance.
type MarkKey struct {
	RuleID    ids.ID
	Threshold uint64
}

// AlertMark is that an alert was raised. Without one, none was.
type AlertMark struct {
	FiredAt int64
	Armed   bool  // a balance recovered since
	Period  int64 // start of the allowance's period
}

type AlertMarks map[MarkKey]AlertMark

// Alert is a raised alert, or a recovered balance.
type Alert struct {
	Type      AlertType
	Rule      *AlertRule
	Threshold uint64 // the last one that was crossed
	Balance   Balance
	Allowance Allowance
	Used      int64 // of the allowance, after the usage
	// Marked are all thresholds that the alert is about, with their new mark.
	Marked []MarkKey
	Mark   AlertMark
}

// MayAlert reports whether DecideAlerts could raise an alert with some marks. It is for
// the hot path: without rules it does nothing, and it allocates nothing.
func MayAlert(rules []AlertRule, identity string, d *Decision) bool {
	for i := range rules {
		if rules[i].mayAlert(identity, d) {
			return true
		}
	}
	return false
}

func (r *AlertRule) mayAlert(identity string, d *Decision) bool {
	switch {
	case r.Kind == AlertAllowance:
		return r.FeatureID == d.Event.FeatureID && d.usesAllowance() && reached(d.Event.Allowance.Limit, d.Event.UsedAfter(), r.Percents[0])
	case r.CreditID != d.Event.CreditID || !r.watches(identity):
		return false
	case d.exhausts():
		return true
	}
	return d.charges() && d.After.Amount < r.Thresholds[0]
}

func (r *AlertRule) watches(identity string) bool { return r.Identity == "" || r.Identity == identity }

// charges reports a new charge above zero: usage that costs nothing says nothing about
// the balance.
func (d *Decision) charges() bool {
	return d.Verdict == Accepted && d.New && d.Event.Charge.Amount > 0
}

func (d *Decision) usesAllowance() bool {
	return d.Verdict == Accepted && d.New && d.Event.Allowance.Limited() && d.Event.Allowance.Limit > 0
}

func (d *Decision) exhausts() bool {
	return d.Verdict == Refused && d.Code == fault.InsufficientBalance
}

// reached reports whether a percentage of a limit is used, without overflow.
func reached(limit, used, percent int64) bool {
	return used >= limit/100*percent+(limit%100*percent+99)/100
}

// DecideAlerts decides which alerts a decision raises, by the balance and the counter
// after it and by the marks of the wallet. A threshold is announced once: again only
// after the balance has recovered to it times RearmPercent, and not within QuietHours;
// that of an allowance again in the next period, and not by late usage of one that ended
// before. Usage that crosses several thresholds of a rule raises one alert, with the last
// of them.
func DecideAlerts(rules []AlertRule, marks AlertMarks, identity string, d *Decision, now int64) (alerts []Alert) {
	exhausted := false
	for i := range rules {
		r := &rules[i]
		if !r.mayAlert(identity, d) {
			continue
		}
		a := Alert{Rule: r, Balance: d.After, Mark: AlertMark{FiredAt: now}}
		switch {
		case r.Kind == AlertAllowance:
			a.Type, a.Allowance, a.Used = AllowanceThreshold, d.Event.Allowance, d.Event.UsedAfter()
			a.Mark.Period = a.Allowance.Period.Start
			for _, percent := range r.Percents {
				if reached(a.Allowance.Limit, a.Used, percent) {
					a.cross(marks, uint64(percent), func(m AlertMark) bool { return m.Period != a.Mark.Period && m.Period < a.Allowance.Period.End })
				}
			}
		case d.exhausts():
			if exhausted {
				continue // one rule is enough
			}
			exhausted = true
			a.Type = BalanceExhausted
			a.cross(marks, 0, func(m AlertMark) bool { return m.Armed })
		default:
			a.Type = BalanceLow
			for _, threshold := range r.Thresholds {
				if d.After.Amount < threshold {
					a.cross(marks, uint64(threshold), func(m AlertMark) bool { return m.Armed && now >= m.FiredAt+r.QuietHours*3_600_000 })
				}
			}
		}
		if len(a.Marked) > 0 {
			alerts = append(alerts, a)
		}
	}
	return alerts
}

// cross adds a threshold, unless it was announced and is not due again.
func (a *Alert) cross(marks AlertMarks, threshold uint64, due func(AlertMark) bool) {
	key := MarkKey{a.Rule.ID, threshold}
	if mark, marked := marks[key]; !marked || due(mark) {
		a.Threshold, a.Marked = threshold, append(a.Marked, key)
	}
}

// Apply marks what an alert has announced. A recovery keeps when it was: QuietHours count
// from there.
func (m AlertMarks) Apply(a Alert) {
	for _, key := range a.Marked {
		mark := a.Mark
		if a.Type == BalanceRecovered {
			mark.FiredAt = m[key].FiredAt
		}
		m[key] = mark
	}
}

// DecideRecovery decides which thresholds a balance arms again after credits came in. A
// rule whose thresholds recover is announced once, with the highest of them. Armed in
// silence, with the threshold zero, are an exhausted balance and what the rule no longer
// has or watches: it may be put back.
func DecideRecovery(rules []AlertRule, marks AlertMarks, identity string, after Balance) (alerts []Alert) {
	for i := range rules {
		r := &rules[i]
		if r.Kind != AlertBalance || r.CreditID != after.CreditID {
			continue
		}
		a := Alert{Type: BalanceRecovered, Rule: r, Balance: after, Mark: AlertMark{Armed: true}}
		for key, mark := range marks {
			threshold := Amount(key.Threshold)
			level, ok := Price(threshold, 100, r.RearmPercent, ListPrice)
			if !ok {
				level = MaxAmount
			}
			if key.RuleID != r.ID || mark.Armed || after.Amount < max(level, 1) {
				continue
			}
			a.Marked = append(a.Marked, key)
			if r.watches(identity) && slices.Contains(r.Thresholds, threshold) {
				a.Threshold = max(a.Threshold, key.Threshold)
			}
		}
		if len(a.Marked) > 0 {
			alerts = append(alerts, a)
		}
	}
	return alerts
}
