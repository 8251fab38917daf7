package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/notify"
	"purser/store"
	"purser/store/storetest"
)

func balanceRuleOf(key string, thresholds ...metering.Amount) metering.AlertRule {
	return metering.AlertRule{
		ID: ids.New(), Key: key, Kind: metering.AlertBalance, CreditKey: "tokens", Thresholds: thresholds,
		RearmPercent: metering.DefaultRearmPercent, CreatedAt: moment,
	}
}

func (a tenant) rule(tb testing.TB, r metering.AlertRule) metering.AlertRule {
	tb.Helper()
	r, err := metering.NewAlertRule(r)
	noError(tb, err)
	r, err = a.PutAlertRule(tb.Context(), r)
	noError(tb, err)
	return r
}

// alerted gives a fixture a rule and a mark: usage that it cannot pay for.
func (h *fixture) alerted(tb testing.TB, usage *store.Engine) {
	tb.Helper()
	h.tenant.rule(tb, balanceRuleOf("low", 1))
	use := h.useOf("daily", "event alert")
	use.EntityID, use.Quantity = "room alert", metering.MaxQuantity
	decision, err := usage.Track(use)
	noError(tb, err)
	if decision.Code != fault.InsufficientBalance {
		tb.Fatalf("it is %s %s", decision.Verdict, decision.Code)
	}
}

var alertCalls = []call[store.App]{
	{"PutAlertRule", "", fault.CreditNotFound, "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		return a.PutAlertRule(ctx, balanceRuleOf("low", 2))
	}},
	{"AlertRule", "", fault.AlertRuleNotFound, "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		return a.AlertRule(ctx, "low")
	}},
	{"AlertRules", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		return a.AlertRules(ctx)
	}},
	{"DeleteAlertRule", "", fault.AlertRuleNotFound, "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		return a.DeleteAlertRule(ctx, "low")
	}},
}

// alertsOf are the alerts of an application: type and threshold, sorted.
func (s shop) alertsOf(tb testing.TB, url string) (list []string) {
	tb.Helper()
	rows, err := connect(tb, url).Query(tb.Context(), `SELECT type, data::text FROM notifications
		WHERE app_id = $1 AND (type LIKE 'balance.%' OR type LIKE 'allowance.%')`, s.application.ID)
	noError(tb, err)
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var kind, data string
		if err := row.Scan(&kind, &data); err != nil {
			return "", err
		}
		if kind == string(notify.AllowanceThreshold) {
			var d notify.AllowanceData
			err := json.Unmarshal([]byte(data), &d)
			return fmt.Sprintf("%s %d%% %d of %d", kind, d.Percent, d.Used, d.Limit), err
		}
		var d notify.BalanceData
		err := json.Unmarshal([]byte(data), &d)
		return kind + " " + d.Threshold, err
	})
	noError(tb, err)
	slices.Sort(list)
	return list
}

func wantAlerts(tb testing.TB, got []string, want ...string) {
	tb.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		tb.Errorf("alerts %q, want %q", got, want)
	}
}

// TestConcurrentChargesAlertOnce has two nodes charge one wallet together, below every
// threshold and past its end.
func TestConcurrentChargesAlertOnce(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 2)
	s.rule(t, balanceRuleOf("low", 8000, 5000, 2000, 10))
	s.rule(t, metering.AlertRule{
		ID: ids.New(), Key: "other", Kind: metering.AlertBalance, CreditKey: "tokens", Thresholds: []metering.Amount{9000},
		RearmPercent: 120, Identity: "bea", CreatedAt: moment,
	})
	s.credit(t, "ann", 990*messagePrice)
	refused := make([]bool, 1000)
	atOnce(1000, func(i int) {
		d, err := s.nodes[i%2].usage.Track(s.message("ann", fmt.Sprintf("event %d", i)))
		if err != nil {
			t.Error(err)
		}
		refused[i] = d.Code == fault.InsufficientBalance
	})
	if n := len(slices.DeleteFunc(refused, func(r bool) bool { return !r })); n != 10 || s.balance(t, "ann") != 0 {
		t.Fatalf("%d refused, a balance of %s", n, s.balance(t, "ann"))
	}
	wantAlerts(t, s.alertsOf(t, url), "balance.low 8000", "balance.low 5000", "balance.low 2000", "balance.low 10", "balance.exhausted ")
}

// TestARefusedGroupAlertsWithTheBalanceOfTheWallet has a group whose first event can be
// paid for, and whose second cannot.
func TestARefusedGroupAlertsWithTheBalanceOfTheWallet(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	s.rule(t, balanceRuleOf("low", 1))
	s.credit(t, "ann", 10*messagePrice)
	first, second := s.message("ann", "first"), s.message("ann", "second")
	first.Quantity, second.Quantity = 9, 9
	if _, refused, err := s.nodes[0].usage.TrackGroup([]store.Usage{first, second}); refused != 1 || !fault.Is(err, fault.InsufficientBalance) {
		t.Fatalf("%d refuses it: %v", refused, err)
	}
	alerts := texts(t, connect(t, url), `SELECT data ->> 'balanceNanocredits' FROM notifications WHERE app_id = $1 AND type = 'balance.exhausted'`, s.application.ID)
	if want := fmt.Sprint(10 * messagePrice); len(alerts) != 1 || alerts[0] != want {
		t.Errorf("the alerts say %q, expected %s", alerts, want)
	}
}

func TestARecoveredBalanceAlertsAgain(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	s.rule(t, balanceRuleOf("low", 100, 50))
	s.credit(t, "ann", 105)
	want := []string{"balance.low 100"}
	charge := func(n int) {
		t.Helper()
		for range n {
			mustAccept(t, s.nodes[0], s.message("ann", freshID()))
		}
	}
	charge(1) // 95
	wantAlerts(t, s.alertsOf(t, url), want...)
	s.credit(t, "ann", 20) // 115: not yet 120
	charge(2)              // 95
	wantAlerts(t, s.alertsOf(t, url), want...)
	s.credit(t, "ann", 25) // 120
	want = append(want, "balance.recovered 100")
	wantAlerts(t, s.alertsOf(t, url), want...)
	charge(8) // 40: the lowest of the crossed ones, once
	want = append(want, "balance.low 100", "balance.low 50")
	wantAlerts(t, s.alertsOf(t, url), want...)
	t.Run("a replaced rule keeps what it announced", func(t *testing.T) {
		s.rule(t, balanceRuleOf("low", 100, 45, 50))
		charge(1) // 30
		want = append(want, "balance.low 45")
		wantAlerts(t, s.alertsOf(t, url), want...)
	})
	t.Run("a threshold that is put back was armed meanwhile", func(t *testing.T) {
		s.rule(t, balanceRuleOf("low", 20))
		s.credit(t, "ann", 100) // 130: none of the rule's own, so none is announced
		wantAlerts(t, s.alertsOf(t, url), want...)
		s.rule(t, balanceRuleOf("low", 100))
		charge(4) // 90
		want = append(want, "balance.low 100")
		wantAlerts(t, s.alertsOf(t, url), want...)
		s.credit(t, "ann", 10)
		other := balanceRuleOf("low", 100)
		other.Identity = "bea"
		s.rule(t, other)
		s.credit(t, "ann", 50) // 150
		wantAlerts(t, s.alertsOf(t, url), want...)
		s.rule(t, balanceRuleOf("low", 100))
		charge(6) // 90
		want = append(want, "balance.low 100")
		wantAlerts(t, s.alertsOf(t, url), want...)
	})
	t.Run("a deleted rule announces nothing", func(t *testing.T) {
		_, err := s.DeleteAlertRule(t.Context(), "low")
		noError(t, err)
		// Its marks stay. A broken one shows that credits read none of them: an application
		// that deletes and creates rules has ever more.
		exec(t, connect(t, url), `UPDATE alert_marks SET threshold = -threshold WHERE app_id = $1`, s.application.ID)
		s.rule(t, balanceRuleOf("another", 1))
		s.credit(t, "ann", 1000)
		charge(102) // 10
		wantAlerts(t, s.alertsOf(t, url), want...)
	})
}

// TestTheMarksThatChargesReadAreBounded has a rule with very many earlier thresholds, whose
// marks come before that of the present one. Past the limit it is announced again.
func TestTheMarksThatChargesReadAreBounded(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	low := s.rule(t, balanceRuleOf("low", 10_000))
	s.rule(t, balanceRuleOf("another", 1))
	s.credit(t, "ann", 10_005)
	mustAccept(t, s.nodes[0], s.message("ann", freshID()))
	marks := func(first, last int) {
		t.Helper()
		exec(t, connect(t, url), `INSERT INTO alert_marks (app_id, org_id, wallet_id, rule_id, threshold, armed, fired_at, period_start)
			SELECT m.app_id, m.org_id, m.wallet_id, m.rule_id, n, false, 0, 0 FROM alert_marks m, generate_series($3::int, $4::int) n
			WHERE m.app_id = $1 AND m.rule_id = $2 AND m.threshold = 10000`, s.application.ID, low.ID, first, last)
		s.credit(t, "ann", 10) // the node reads the wallet again
		mustAccept(t, s.nodes[0], s.message("ann", freshID()))
	}
	marks(2, store.MaxMarks) // and that of the present threshold
	wantAlerts(t, s.alertsOf(t, url), "balance.low 10000")
	marks(store.MaxMarks+1, store.MaxMarks+1)
	wantAlerts(t, s.alertsOf(t, url), "balance.low 10000", "balance.low 10000")
}

// TestARuleOfAnotherCreditOrFeatureStartsOver points rules that have announced a threshold
// elsewhere: what they announced was about the credit and the feature before.
func TestARuleOfAnotherCreditOrFeatureStartsOver(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	first := s.rule(t, balanceRuleOf("low", 100))
	second := balanceRuleOf("second", 1)
	second.CreatedAt++
	s.rule(t, second)
	s.newCredit(t, "gems")
	image := featureOf("image", "gems")
	image.Cost = messagePrice
	images := s.newFeature(t, image)
	messages, err := s.Feature(t.Context(), "message")
	noError(t, err)
	charge := func(identity, feature string) {
		t.Helper()
		mustAccept(t, s.nodes[0], s.useOf(feature, identity, freshID()))
	}
	s.credit(t, "ann", 105)
	s.deposit(t, depositOf("ann", "gems", 105, freshID()))
	charge("ann", "message")
	want := []string{"balance.low 100"}
	moved := balanceRuleOf("low", 100)
	moved.CreditKey, moved.CreatedAt = "gems", moment+2
	moved = s.rule(t, moved)
	t.Run("credits of the new one announce no recovery", func(t *testing.T) {
		s.deposit(t, depositOf("ann", "gems", 100, freshID()))
		wantAlerts(t, s.alertsOf(t, url), want...)
	})
	t.Run("the new one is announced when it is low", func(t *testing.T) {
		for range 11 {
			charge("ann", "image") // 95 in the end
		}
		want = append(want, "balance.low 100")
		wantAlerts(t, s.alertsOf(t, url), want...)
	})
	t.Run("the rule is as old as before", func(t *testing.T) {
		rules, err := s.AlertRules(t.Context())
		noError(t, err)
		if len(rules) != 2 || rules[0].Key != "low" || rules[0].ID != moved.ID || rules[0].CreatedAt != first.CreatedAt {
			t.Errorf("the rules are %+v", rules)
		}
	})
	t.Run("an allowance of another feature is announced", func(t *testing.T) {
		s.credit(t, "bea", 1000)
		s.deposit(t, depositOf("bea", "gems", 1000, freshID()))
		month := func(f metering.Feature) metering.Limit {
			return metering.Limit{FeatureID: f.ID, FeatureKey: f.Key, Limit: 2, Period: metering.LimitMonth, Overage: metering.OverageCredits}
		}
		noError(t, s.PutSubscription(t.Context(), "bea", metering.Subscription{
			ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(moment),
			Terms: metering.Terms{Limits: []metering.Limit{month(messages), month(images)}},
		}))
		used := metering.AlertRule{ID: ids.New(), Key: "used", Kind: metering.AlertAllowance, FeatureKey: "message", Percents: []int64{50}, CreatedAt: moment}
		s.rule(t, used)
		charge("bea", "message")
		want = append(want, "allowance.threshold 50% 1 of 2")
		wantAlerts(t, s.alertsOf(t, url), want...)
		used.ID, used.FeatureKey = ids.New(), "image"
		s.rule(t, used)
		charge("bea", "image")
		want = append(want, "allowance.threshold 50% 1 of 2")
		wantAlerts(t, s.alertsOf(t, url), want...)
	})
}

func TestAnAllowanceAlertsOnce(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 2)
	f, err := s.Feature(t.Context(), "message")
	noError(t, err)
	s.credit(t, "ann", 1000)
	s.limit(t, "ann", f, 10, metering.OverageCredits)
	s.rule(t, metering.AlertRule{ID: ids.New(), Key: "used", Kind: metering.AlertAllowance, FeatureKey: "message", Percents: []int64{80, 100}, CreatedAt: moment})
	atOnce(20, func(i int) {
		if _, err := s.nodes[i%2].usage.Track(s.message("ann", fmt.Sprintf("event %d", i))); err != nil {
			t.Error(err)
		}
	})
	wantAlerts(t, s.alertsOf(t, url), "allowance.threshold 80% 8 of 10", "allowance.threshold 100% 10 of 10")
}

func TestAlertRulesThatAreCreatedAtOnceLeaveTheFirst(t *testing.T) {
	t.Parallel()
	s := newShop(t, storetest.URL(t), 1)
	results := make([]error, 4)
	atOnce(len(results), func(i int) {
		_, results[i] = s.PutAlertRule(t.Context(), balanceRuleOf("low", metering.Amount(i+1)), "")
	})
	stored, err := s.AlertRule(t.Context(), "low")
	noError(t, err)
	for i, err := range results {
		if first := stored.Thresholds[0] == metering.Amount(i+1); first != (err == nil) || !first && !fault.Is(err, fault.RevisionConflict) {
			t.Errorf("%d: %v, and the rule is %+v", i, err, stored)
		}
	}
	_, err = s.PutAlertRule(t.Context(), balanceRuleOf("low", 9), stored.Version())
	noError(t, err)
}

func TestAnApplicationHasFiftyAlertRules(t *testing.T) {
	t.Parallel()
	s := newShop(t, storetest.URL(t), 1)
	for n := range metering.MaxAlertRules {
		s.rule(t, balanceRuleOf(fmt.Sprintf("low-%d", n), 1))
	}
	if _, err := s.PutAlertRule(t.Context(), balanceRuleOf("one-more", 1)); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("%v", err)
	}
	s.rule(t, balanceRuleOf("low-0", 2)) // a replacement is none more
	rules, err := s.AlertRules(t.Context())
	noError(t, err)
	if len(rules) != metering.MaxAlertRules || rules[0].Thresholds[0] != 2 {
		t.Errorf("%d rules, the first %+v", len(rules), rules[0])
	}
}
