package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/tenancy"
)

func TestAlertPages(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Admin)
	path := r.appPath("settings", "alerts")
	wantTexts(t, b.get(t, path).body, "No alerts yet", "New balance alert", "New allowance alert")
	r.newCredit(t, "tokens")
	r.newFeature(t, "chat", "tokens")
	rule := func(t *testing.T, key string) metering.AlertRule {
		t.Helper()
		stored, err := r.db.App(r.app.Scope()).AlertRule(t.Context(), key)
		noError(t, err)
		return stored
	}
	balance := url.Values{
		"kind": {"balance"}, "key": {"low"}, "watched": {"tokens"}, "threshold-1": {"2.5"}, "threshold-2": {"10"}, "rearm": {"150"}, "quiet": {"1"}, "identity": {"ann"},
	}

	t.Run("a balance alert is stored as it is typed", func(t *testing.T) {
		if got := b.post(t, path+"/new", balance); got.status != http.StatusSeeOther {
			t.Fatalf("it answers %d: %s", got.status, got.body)
		}
		stored := rule(t, "low")
		if len(stored.Thresholds) != 2 || stored.Thresholds[0] != 10*metering.PerCredit || stored.Thresholds[1] != 5*metering.PerCredit/2 ||
			stored.RearmPercent != 150 || stored.QuietHours != 1 || stored.Identity != "ann" || stored.CreditKey != "tokens" {
			t.Errorf("it is %+v", stored)
		}
		wantTexts(t, b.get(t, path).body, "falls below 10 or 2.5 tokens, at most once every hour", "back at 150% of the threshold")
		wantTexts(t, b.get(t, path+"/low/edit").body, `value="10"`, `value="2.5"`, `value="ann"`)
	})
	t.Run("a key is used once", func(t *testing.T) {
		if got := b.post(t, path+"/new", balance); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "already an alert with this key") {
			t.Errorf("it answers %d", got.status)
		}
	})
	t.Run("an edit replaces it", func(t *testing.T) {
		edit := url.Values{"version": {rule(t, "low").Version()}, "watched": {"tokens"}, "threshold-1": {"4"}, "rearm": {"100"}, "quiet": {"0"}}
		if got := b.post(t, path+"/low/edit", edit); got.status != http.StatusSeeOther {
			t.Fatalf("it answers %d", got.status)
		}
		if stored := rule(t, "low"); len(stored.Thresholds) != 1 || stored.QuietHours != 0 || stored.Identity != "" {
			t.Errorf("it is %+v", stored)
		}
		if action, target, text := r.lastAction(t); action != "alert-rule.update" || target != "low" || !strings.Contains(text, `"thresholdsNanocredits":"4000000000"`) {
			t.Errorf("the log has %s %s %s", action, target, text)
		}
	})
	t.Run("an edit leaves the space around an identity", func(t *testing.T) {
		spaced := metering.AlertRule{ID: ids.New(), Key: "spaced", Kind: metering.AlertBalance, CreditKey: "tokens", Identity: "ann ", Thresholds: []metering.Amount{1}, RearmPercent: 100}
		_, err := r.db.App(r.app.Scope()).PutAlertRule(t.Context(), spaced)
		noError(t, err)
		edit := url.Values{"watched": {"tokens"}, "threshold-1": {"x"}, "rearm": {"100"}, "quiet": {"0"}, "identity": {"ann "}}
		if got := b.post(t, path+"/spaced/edit", edit); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `value="ann "`) {
			t.Errorf("a wrong threshold is answered with %d", got.status)
		}
		edit.Set("threshold-1", "4")
		for typed, want := range map[string]string{"ann ": "ann ", " bob": "bob"} {
			edit.Set("identity", typed)
			edit.Set("version", rule(t, "spaced").Version())
			if got := b.post(t, path+"/spaced/edit", edit); got.status != http.StatusSeeOther {
				t.Fatalf("it answers %d", got.status)
			}
			if stored := rule(t, "spaced"); stored.Identity != want {
				t.Errorf("it is of %q, expected %q", stored.Identity, want)
			}
			_, err := r.db.App(r.app.Scope()).PutAlertRule(t.Context(), spaced)
			noError(t, err)
		}
	})
	t.Run("an allowance alert takes percentages", func(t *testing.T) {
		allowance := url.Values{"kind": {"allowance"}, "key": {"used"}, "watched": {"chat"}, "threshold-1": {"80"}, "threshold-2": {"100"}}
		if got := b.post(t, path+"/new", allowance); got.status != http.StatusSeeOther {
			t.Fatalf("it answers %d", got.status)
		}
		if stored := rule(t, "used"); len(stored.Percents) != 2 || stored.FeatureKey != "chat" {
			t.Errorf("it is %+v", stored)
		}
		wantTexts(t, b.get(t, path).body, "has used 80% or 100% of the chat allowance")
	})
	t.Run("wrong values come back with the form", func(t *testing.T) {
		for field, wrong := range map[string]string{"key": "Low!", "watched": "nothing", "threshold-1": "", "threshold-2": "2,5", "rearm": "99", "quiet": "-1", "identity": strings.Repeat("x", 201)} {
			typed := url.Values{}
			for name, values := range balance {
				typed[name] = values
			}
			typed.Set("key", "other")
			typed.Set(field, wrong)
			got := b.post(t, path+"/new", typed)
			if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `href="#field-`+field+`"`) {
				t.Errorf("%s = %q is answered with %d", field, wrong, got.status)
			}
		}
		same := url.Values{"version": {rule(t, "low").Version()}, "watched": {"tokens"}, "threshold-1": {"4"}, "threshold-2": {"4.0"}, "rearm": {"100"}, "quiet": {"0"}}
		if got := b.post(t, path+"/low/edit", same); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "distinct amounts") {
			t.Errorf("equal thresholds are answered with %d", got.status)
		}
	})
	t.Run("a stale form overwrites nothing", func(t *testing.T) {
		tenant := r.db.App(r.app.Scope())
		_, _, err := tenant.CreateWallet(t.Context(), ids.New(), "ann ", r.site.Now())
		noError(t, err)
		stale := url.Values{
			"version": {hidden(b.get(t, path+"/spaced/edit").body, "version")}, "watched": {"tokens"}, "threshold-1": {"4"}, "rearm": {"100"}, "quiet": {"0"}, "identity": {"ann "},
		}
		_, _, err = tenant.Rename(t.Context(), store.Rename{ID: ids.New(), From: "ann ", To: "bea", IdempotencyKey: "rename", CreatedAt: r.site.Now()})
		noError(t, err)
		for version, form := range map[string]url.Values{"of before": stale, "of none": {"watched": {"tokens"}, "threshold-1": {"4"}, "rearm": {"100"}, "quiet": {"0"}}} {
			got := b.post(t, path+"/spaced/edit", form)
			if got.status != http.StatusConflict || rule(t, "spaced").Identity != "bea" {
				t.Fatalf("a version %s: it answers %d, and the rule watches %q", version, got.status, rule(t, "spaced").Identity)
			}
			wantTexts(t, got.body, "Your version and the saved version", "<bdi>bea</bdi>", rule(t, "spaced").Version())
		}
		stale.Set("version", rule(t, "spaced").Version())
		if got := b.post(t, path+"/spaced/edit", stale); got.status != http.StatusSeeOther || rule(t, "spaced").Identity != "ann" {
			t.Errorf("the decision to overwrite answers %d", got.status)
		}
	})
	t.Run("it is deleted", func(t *testing.T) {
		if got := b.post(t, path+"/low/delete", nil); got.status != http.StatusSeeOther {
			t.Errorf("it answers %d", got.status)
		}
		if got := b.get(t, path+"/low/edit"); got.status != http.StatusNotFound {
			t.Errorf("its page answers %d", got.status)
		}
	})
}
