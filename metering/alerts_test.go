package metering_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
	"purser/metering"
)

var (
	alertCredit  = ids.New()
	alertFeature = ids.New()
)

func balanceRule(quiet int64, thresholds ...metering.Amount) metering.AlertRule {
	r, err := metering.NewAlertRule(metering.AlertRule{
		ID: ids.New(), Key: "low", Kind: metering.AlertBalance, CreditID: alertCredit, Thresholds: thresholds,
		RearmPercent: metering.DefaultRearmPercent, QuietHours: quiet,
	})
	if err != nil {
		panic(err)
	}
	return r
}

// charged is the decision of a charge of one, or of more, that leaves a balance.
func charged(after metering.Amount) *metering.Decision {
	d := &metering.Decision{Verdict: metering.Accepted, New: true, After: metering.Balance{CreditID: alertCredit, Amount: after}}
	d.Event.CreditID, d.Event.Charge.Amount = alertCredit, 1
	return d
}

func refused() *metering.Decision {
	d := &metering.Decision{Verdict: metering.Refused, Code: fault.InsufficientBalance, After: metering.Balance{CreditID: alertCredit}}
	d.Event.CreditID = alertCredit
	return d
}

const hour = int64(3_600_000)

// TestALowBalanceIsAnnouncedOnce compares DecideAlerts with another implementation, a state
// machine for each threshold: it is loaded or spent, and remembers when it last fired.
func TestALowBalanceIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		thresholds := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 50), 1, 5, rapid.ID[uint64]).Draw(t, "thresholds")
		quiet := rapid.Int64Range(0, 3).Draw(t, "quiet hours")
		var amounts []metering.Amount
		for _, threshold := range thresholds {
			amounts = append(amounts, metering.Amount(threshold))
		}
		rule := balanceRule(quiet, amounts...)
		rules, marks := []metering.AlertRule{rule}, metering.AlertMarks{}
		type machine struct {
			spent   bool
			firedAt int64
			fired   bool
		}
		machines := map[uint64]*machine{}
		for _, threshold := range thresholds {
			machines[threshold] = &machine{}
		}
		balance, now := metering.Amount(60), int64(1_000_000)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.Int64Range(0, 2).Draw(t, "hours") * hour
			if rapid.Bool().Draw(t, "deposit") {
				balance += metering.Amount(rapid.Uint64Range(0, 40).Draw(t, "amount"))
				after := metering.Balance{CreditID: alertCredit, Amount: balance}
				recovered := metering.DecideRecovery(rules, marks, "ann", after)
				var want []uint64
				for threshold, m := range machines {
					if m.spent && uint64(balance)*100 >= threshold*metering.DefaultRearmPercent {
						m.spent = false
						want = append(want, threshold)
					}
				}
				if len(recovered) > 1 || (len(recovered) == 1) != (len(want) > 0) {
					t.Fatalf("recovered %+v, want %v", recovered, want)
				}
				for _, a := range recovered {
					if a.Threshold != slices.Max(want) || a.Type != metering.BalanceRecovered {
						t.Fatalf("recovered %+v, want %v", a, want)
					}
					marks.Apply(a)
				}
				continue
			}
			balance -= min(balance, metering.Amount(rapid.Uint64Range(1, 30).Draw(t, "charge")))
			d := charged(balance)
			alerts := metering.DecideAlerts(rules, marks, "ann", d, now)
			var want []uint64
			for threshold, m := range machines {
				if uint64(balance) < threshold && !m.spent && (!m.fired || now-m.firedAt >= quiet*hour) {
					*m = machine{spent: true, firedAt: now, fired: true}
					want = append(want, threshold)
				}
			}
			if len(alerts) > 1 || (len(alerts) == 1) != (len(want) > 0) {
				t.Fatalf("at %d: alerts %+v, want %v", balance, alerts, want)
			}
			for _, a := range alerts {
				if a.Threshold != slices.Min(want) || len(a.Marked) != len(want) || a.Type != metering.BalanceLow || a.Balance.Amount != balance {
					t.Fatalf("alert %+v, want %v", a, want)
				}
				marks.Apply(a)
			}
			if len(alerts) > 0 && !metering.MayAlert(rules, "ann", d) {
				t.Fatal("MayAlert missed it")
			}
			if again := metering.DecideAlerts(rules, marks, "ann", d, now); len(again) > 0 {
				t.Fatalf("announced twice: %+v", again)
			}
		}
	})
}

func TestAnAllowanceIsAnnouncedOnceAPeriod(t *testing.T) {
	t.Parallel()
	rule, err := metering.NewAlertRule(metering.AlertRule{ID: ids.New(), Key: "used", Kind: metering.AlertAllowance, FeatureID: alertFeature, Percents: []int64{100, 80}})
	if err != nil {
		t.Fatal(err)
	}
	rules := []metering.AlertRule{rule}
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 300).Draw(t, "limit")
		marks, announced, used, newest := metering.AlertMarks{}, map[int64]int64{}, map[int64]int64{}, int64(1)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.IntRange(0, 5).Draw(t, "period") == 0 {
				newest++
			}
			period := newest
			if rapid.IntRange(0, 3).Draw(t, "late") == 0 {
				period = rapid.Int64Range(1, newest).Draw(t, "late period")
			}
			if rapid.IntRange(0, 5).Draw(t, "reversal") == 0 {
				used[period] = max(0, used[period]-rapid.Int64Range(1, 100).Draw(t, "returned"))
			}
			quantity := rapid.Int64Range(1, 100).Draw(t, "quantity")
			d := &metering.Decision{Verdict: metering.Accepted, New: true}
			d.Event.FeatureID, d.Event.Quantity = alertFeature, quantity
			d.Event.Allowance = metering.Allowance{Limit: limit, Used: used[period], Period: metering.Period{Start: 10 * period, End: 10*period + 10}, Overage: metering.OverageBlock}
			used[period] += quantity
			want := int64(0)
			for _, percent := range []int64{80, 100} {
				if used[period]*100 >= limit*percent && announced[percent] < period {
					announced[percent], want = period, percent
				}
			}
			alerts := metering.DecideAlerts(rules, marks, "ann", d, 0)
			if (want == 0) != (len(alerts) == 0) || want != 0 && (alerts[0].Threshold != uint64(want) || alerts[0].Used != used[period]) {
				t.Fatalf("%d of %d: %+v, want %d", used[period], limit, alerts, want)
			}
			for _, a := range alerts {
				marks.Apply(a)
			}
		}
	})
}

// A plan with other periods starts one that may begin before the announced one did.
func TestAnAllowanceOfOtherPeriodsIsAnnounced(t *testing.T) {
	t.Parallel()
	rule, err := metering.NewAlertRule(metering.AlertRule{ID: ids.New(), Key: "used", Kind: metering.AlertAllowance, FeatureID: alertFeature, Percents: []int64{80}})
	if err != nil {
		t.Fatal(err)
	}
	marks := metering.AlertMarks{{RuleID: rule.ID, Threshold: 80}: {Period: 100}}
	for period, want := range map[metering.Period]int{
		{Start: 0, End: 100}: 0, {Start: 100, End: 200}: 0, {Start: 200, End: 300}: 1, {Start: 50, End: 150}: 1,
	} {
		d := &metering.Decision{Verdict: metering.Accepted, New: true}
		d.Event.FeatureID, d.Event.Quantity = alertFeature, 9
		d.Event.Allowance = metering.Allowance{Limit: 10, Period: period, Overage: metering.OverageBlock}
		if alerts := metering.DecideAlerts([]metering.AlertRule{rule}, marks, "ann", d, 0); len(alerts) != want {
			t.Errorf("%v raises %d alerts, want %d", period, len(alerts), want)
		}
	}
}

func TestAnExhaustedBalanceIsAnnouncedOnceUntilCreditsComeIn(t *testing.T) {
	t.Parallel()
	rules, marks := []metering.AlertRule{balanceRule(24, 10), balanceRule(24, 5)}, metering.AlertMarks{}
	for range 2 {
		alerts := metering.DecideAlerts(rules, marks, "ann", refused(), 0)
		if len(alerts) != 1 || alerts[0].Type != metering.BalanceExhausted {
			t.Fatalf("%+v", alerts)
		}
		marks.Apply(alerts[0])
		if again := metering.DecideAlerts(rules, marks, "ann", refused(), 0); len(again) != 0 {
			t.Fatalf("announced twice: %+v", again)
		}
		recovered := metering.DecideRecovery(rules, marks, "ann", metering.Balance{CreditID: alertCredit, Amount: 1})
		if len(recovered) != 1 || recovered[0].Threshold != 0 {
			t.Fatalf("%+v", recovered)
		}
		rules[0].Identity = "bea" // since the rule was replaced
		for _, other := range metering.DecideRecovery(rules, marks, "ann", metering.Balance{CreditID: alertCredit, Amount: 100}) {
			if other.Threshold != 0 {
				t.Fatalf("announced to others: %+v", other)
			}
		}
		rules[0].Identity = ""
		marks.Apply(recovered[0])
	}
}

func TestAThresholdThatNoBalanceExceedsIsArmedByAFullOne(t *testing.T) {
	t.Parallel()
	rules, marks := []metering.AlertRule{balanceRule(0, 9_000_000_000_000_000_000)}, metering.AlertMarks{}
	marks.Apply(metering.DecideAlerts(rules, marks, "ann", charged(1), 0)[0])
	for amount, want := range map[metering.Amount]int{metering.MaxAmount - 1: 0, metering.MaxAmount: 1} {
		if alerts := metering.DecideRecovery(rules, marks, "ann", metering.Balance{CreditID: alertCredit, Amount: amount}); len(alerts) != want {
			t.Errorf("a balance of %d: %+v", amount, alerts)
		}
	}
}

func TestRulesWatchWhatTheyName(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*metering.AlertRule, *metering.Decision){
		"another credit":         func(r *metering.AlertRule, _ *metering.Decision) { r.CreditID = ids.New() },
		"another identity":       func(r *metering.AlertRule, _ *metering.Decision) { r.Identity = "bea" },
		"usage without a charge": func(_ *metering.AlertRule, d *metering.Decision) { d.Event.Charge.Amount = 0 },
		"a repeated event":       func(_ *metering.AlertRule, d *metering.Decision) { d.New = false },
		"another refusal": func(_ *metering.AlertRule, d *metering.Decision) {
			d.Verdict, d.Code = metering.Refused, fault.FeatureLimitExceeded
		},
	} {
		rule, d := balanceRule(0, 10), charged(1)
		if alerts := metering.DecideAlerts([]metering.AlertRule{rule}, nil, "ann", d, 0); len(alerts) != 1 {
			t.Fatalf("%+v", alerts)
		}
		change(&rule, d)
		if alerts := metering.DecideAlerts([]metering.AlertRule{rule}, nil, "ann", d, 0); len(alerts) != 0 {
			t.Errorf("%s: %+v", name, alerts)
		}
	}
}

func TestAChargeWithoutAlertsAllocatesNothing(t *testing.T) {
	rules, d := []metering.AlertRule{balanceRule(24, 10, 5)}, charged(100)
	if n := testing.AllocsPerRun(100, func() { metering.MayAlert(rules, "ann", d) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAlertRulesHaveLimits(t *testing.T) {
	t.Parallel()
	valid := func() metering.AlertRule {
		return metering.AlertRule{Key: "low", Kind: metering.AlertBalance, Thresholds: []metering.Amount{1, 2, 3, 4, 5}, RearmPercent: 1000, QuietHours: 8760}
	}
	if r, err := metering.NewAlertRule(valid()); err != nil || r.Thresholds[0] != 5 {
		t.Fatalf("%+v, %v", r, err)
	}
	for name, change := range map[string]func(*metering.AlertRule){
		"no threshold":     func(r *metering.AlertRule) { r.Thresholds = nil },
		"six thresholds":   func(r *metering.AlertRule) { r.Thresholds = append(r.Thresholds, 6) },
		"a zero":           func(r *metering.AlertRule) { r.Thresholds[0] = 0 },
		"the same twice":   func(r *metering.AlertRule) { r.Thresholds[0] = 2 },
		"a low rearm":      func(r *metering.AlertRule) { r.RearmPercent = 99 },
		"a high rearm":     func(r *metering.AlertRule) { r.RearmPercent = 1001 },
		"long quiet hours": func(r *metering.AlertRule) { r.QuietHours = 8761 },
		"negative hours":   func(r *metering.AlertRule) { r.QuietHours = -1 },
		"a bad key":        func(r *metering.AlertRule) { r.Key = "Low" },
		"101 percent": func(r *metering.AlertRule) {
			r.Kind, r.Percents = metering.AlertAllowance, []int64{101}
		},
		"no percentage": func(r *metering.AlertRule) { r.Kind = metering.AlertAllowance },
	} {
		r := valid()
		change(&r)
		if _, err := metering.NewAlertRule(r); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
