package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"purser/billing"
	"purser/ids"
	"purser/metering"
	"purser/tenancy"
)

func (r *harness) plan(t *testing.T, key string) billing.Plan {
	t.Helper()
	plan, err := r.db.App(r.app.Scope()).Plan(t.Context(), key)
	noError(t, err)
	return plan
}

// newPlan includes ten of a feature.
func (r *harness) newPlan(t *testing.T, key, featureKey string) billing.Plan {
	t.Helper()
	draft := billing.PlanDraft{
		Key: key, Name: "Pro", Price: billing.Price{AmountCents: 2900, Currency: "usd", Interval: billing.Month}, TopupsEnabled: true, Active: true,
		Limits: []metering.Limit{{FeatureKey: featureKey, Limit: 10, Period: metering.LimitMonth, Overage: metering.OverageBlock}},
	}
	plan, err := r.db.App(r.app.Scope()).CreatePlan(t.Context(), draft, func(c billing.Catalog) (billing.Plan, error) {
		return billing.NewPlan(ids.New(), draft, c, r.site.Now())
	})
	noError(t, err)
	return plan
}

// planFields is the form of a plan, as a browser sends it.
func planFields(change url.Values) url.Values {
	fields := url.Values{
		"key": {"pro"}, "name": {"Pro"}, "amount": {"29.00"}, "currency": {"USD"}, "interval": {"month"}, "active": {"on"}, "topups": {"on"},
		"limits.0.feature": {"messages"}, "limits.0.limit": {"100"}, "limits.0.period": {"billing"}, "limits.0.overage": {"credits"},
		"limits.1.feature": {""}, "limits.1.limit": {""}, "limits.1.period": {"month"}, "limits.1.overage": {"block"},
		"grants.0.credit": {"tokens"}, "grants.0.amount": {"12.5"},
		"grants.1.credit": {""}, "grants.1.amount": {""},
		"multipliers.0.feature": {"messages"}, "multipliers.0.percent": {"80"},
		"multipliers.1.feature": {""}, "multipliers.1.percent": {""},
	}
	for name, values := range change {
		if values == nil {
			fields.Del(name)
		} else {
			fields[name] = values
		}
	}
	return fields
}

func TestPlanPages(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Developer)
	r.newCredit(t, "tokens")
	r.newFeature(t, "messages", "tokens")
	form := r.appPath("plans", "new")

	t.Run("make a plan of fields and rows, and leave empty rows out", func(t *testing.T) {
		reply := b.post(t, form, planFields(nil))
		if reply.status != http.StatusSeeOther {
			t.Fatalf("status %d", reply.status)
		}
		plan := r.plan(t, "pro")
		if plan.AmountCents != 2900 || plan.Currency != "usd" || !plan.Active || !plan.TopupsEnabled ||
			len(plan.Limits) != 1 || plan.Limits[0].Limit != 100 || plan.Limits[0].Overage != metering.OverageCredits ||
			len(plan.Grants) != 1 || plan.Grants[0].Amount != 12_500_000_000 ||
			len(plan.Multipliers) != 1 || plan.Multipliers[0].BasisPoints != 8000 {
			t.Errorf("it is %+v", plan)
		}
	})

	t.Run("show it as it was written, with a row to spare", func(t *testing.T) {
		body := b.get(t, r.appPath("plans", "pro", "edit")).body
		wantTexts(t, body, `value="29.00"`, `value="12.5"`, `value="80"`, `name="limits.1.feature"`, `name="grants.1.credit"`, `name="multipliers.1.feature"`, "Syncing")
		if strings.Contains(body, `name="limits.2.feature"`) {
			t.Error("there are two rows to spare")
		}
	})

	t.Run("count the subscribers for who may read them", func(t *testing.T) {
		for _, path := range []string{r.appPath("plans"), r.appPath("plans", "pro", "view")} {
			wantTexts(t, b.get(t, path).body, "Subscribers", r.appPath("subscriptions")+"?plan=pro")
			if hidden := r.join(t, tenancy.Custom, tenancy.PlansRead).get(t, path); hidden.status != http.StatusOK || strings.Contains(hidden.body, "Subscribers") {
				t.Errorf("%s: status %d", path, hidden.status)
			}
		}
	})

	t.Run("tell it in words to who reads, with a way to the form for who may use it", func(t *testing.T) {
		path := r.appPath("plans", "pro", "view")
		words := []string{"29.00 USD / month", "100 × messages per billing period, then charged in credits", "12.5 tokens", "messages at 80% of list price"}
		writes, reads := b.get(t, path), r.join(t, tenancy.Support).get(t, path)
		says(t, writes, http.StatusOK, append(words, "Edit")...)
		says(t, reads, http.StatusOK, words...)
		if strings.Contains(reads.body, "/edit") || strings.Contains(reads.body, "<fieldset") {
			t.Error("support is shown a form")
		}
	})

	t.Run("save the same again without a new revision", func(t *testing.T) {
		reply := b.post(t, r.appPath("plans", "pro", "edit"), planFields(url.Values{"revision": {"1"}}))
		if reply.status != http.StatusSeeOther || r.plan(t, "pro").Revision != 1 {
			t.Errorf("status %d, revision %d", reply.status, r.plan(t, "pro").Revision)
		}
	})

	t.Run("read money as its currency counts", func(t *testing.T) {
		for key, c := range map[string]struct {
			amount, currency string
			want             int64
		}{"yen": {"500", "jpy", 500}, "dinar": {"5.12", "kwd", 5120}, "free": {"0", "usd", 0}} {
			reply := b.post(t, form, planFields(url.Values{"key": {key}, "amount": {c.amount}, "currency": {c.currency}}))
			if reply.status != http.StatusSeeOther || r.plan(t, key).AmountCents != c.want {
				t.Errorf("%s: status %d", key, reply.status)
			}
		}
	})

	t.Run("say what is wrong at its field or row", func(t *testing.T) {
		for name, c := range map[string]struct {
			change url.Values
			field  string
		}{
			"half a yen":           {url.Values{"amount": {"500.5"}, "currency": {"jpy"}}, "amount"},
			"too little to charge": {url.Values{"amount": {"0.10"}}, "amount"},
			"no currency":          {url.Values{"currency": {"dollars"}}, "currency"},
			"an unknown interval":  {url.Values{"interval": {"week"}}, "interval"},
			"an unknown feature":   {url.Values{"limits.0.feature": {"missing"}}, "limits.0.feature"},
			"an unknown credit":    {url.Values{"grants.0.credit": {"missing"}}, "grants.0.credit"},
			"a quantity of none":   {url.Values{"limits.1.limit": {"5"}}, "limits.1.feature"},
			"no quantity":          {url.Values{"limits.0.limit": {""}}, "limits.0.limit"},
			"an inexact amount":    {url.Values{"grants.0.amount": {"1.0000000001"}}, "grants.0.amount"},
			"too large a share":    {url.Values{"multipliers.0.percent": {"10000.01"}}, "multipliers.0.percent"},
			"a feature twice":      {url.Values{"limits.1.feature": {"messages"}, "limits.1.limit": {"1"}}, "limits.1.feature"},
		} {
			c.change.Set("key", "wrong")
			reply := b.post(t, form, planFields(c.change))
			if reply.status != http.StatusUnprocessableEntity || !strings.Contains(reply.body, `href="#field-`+c.field+`"`) {
				t.Errorf("%s: status %d, a link to %s: %t", name, reply.status, c.field, strings.Contains(reply.body, `href="#field-`+c.field+`"`))
			}
		}
		if reply := b.get(t, r.appPath("plans", "wrong", "edit")); reply.status != http.StatusNotFound {
			t.Error("one of them was made")
		}
	})

	t.Run("refuse a multiplier on a price that comes with each use", func(t *testing.T) {
		reply := b.post(t, r.appPath("features", "new"), featureFields(url.Values{"key": {"agents"}, "pricing_mode": {"callback"}}))
		if reply.status != http.StatusSeeOther {
			t.Fatalf("status %d", reply.status)
		}
		reply = b.post(t, form, planFields(url.Values{"key": {"wrong"}, "multipliers.0.feature": {"agents"}}))
		if reply.status != http.StatusUnprocessableEntity || !strings.Contains(reply.body, "priced by callback") {
			t.Errorf("status %d", reply.status)
		}
	})

	t.Run("compare two tabs", func(t *testing.T) {
		path := r.appPath("plans", "pro", "edit")
		if reply := b.post(t, path, planFields(url.Values{"revision": {"1"}, "amount": {"39"}})); reply.status != http.StatusSeeOther {
			t.Fatalf("status %d", reply.status)
		}
		reply := b.post(t, path, planFields(url.Values{"revision": {"1"}, "amount": {"49"}, "limits.0.limit": {"7"}}))
		if reply.status != http.StatusConflict || r.plan(t, "pro").AmountCents != 3900 {
			t.Errorf("status %d", reply.status)
		}
		wantTexts(t, reply.body, "<bdi>49 usd</bdi>", "<bdi>39.00 usd</bdi>", "messages: 7 per billing period, then charge credits", `name="revision" value="2"`)
	})
}

func TestPlanRowsWorkWithoutAScript(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Developer)
	form := r.appPath("plans", "new")
	rows := func(body string) int { return strings.Count(body, `.feature" value=`) }

	t.Run("a row is added, and nothing is judged or saved yet", func(t *testing.T) {
		reply := b.post(t, form, planFields(url.Values{"do": {"add.limits"}, "amount": {"much"}}))
		if reply.status != http.StatusOK || !strings.Contains(reply.body, `name="limits.2.feature"`) || strings.Contains(reply.body, `class="problems"`) {
			t.Errorf("status %d", reply.status)
		}
		wantTexts(t, reply.body, `value="much"`)
	})

	t.Run("a row is removed, and the others move up", func(t *testing.T) {
		reply := b.post(t, form, planFields(url.Values{"do": {"remove.limits.0"}, "limits.1.feature": {"second"}}))
		if reply.status != http.StatusOK || strings.Contains(reply.body, `name="limits.1.feature"`) {
			t.Errorf("status %d, %d rows", reply.status, rows(reply.body))
		}
		wantTexts(t, reply.body, `<option value="second" selected>second</option>`)
	})

	t.Run("a button that is none saves nothing it should not", func(t *testing.T) {
		for _, do := range []string{"remove.limits.9", "remove.limits.-1", "add.limits"} {
			if reply := b.post(t, form, planFields(url.Values{"do": {do}})); reply.status != http.StatusOK {
				t.Errorf("%s: status %d", do, reply.status)
			}
		}
		if reply := b.get(t, r.appPath("plans", "pro", "edit")); reply.status != http.StatusNotFound {
			t.Error("a plan was made")
		}
	})

	t.Run("a hundred rows are the most", func(t *testing.T) {
		r.newCredit(t, "tokens")
		fields := planFields(nil)
		for i := range billing.MaxPlanItems + 1 {
			key := "feature-" + strconv.Itoa(i)
			r.newFeature(t, key, "tokens")
			fields.Set("limits."+strconv.Itoa(i)+".feature", key)
			fields.Set("limits."+strconv.Itoa(i)+".limit", "1")
			fields.Set("limits."+strconv.Itoa(i)+".period", "month")
			fields.Set("limits."+strconv.Itoa(i)+".overage", "block")
		}
		fields.Del("multipliers.0.feature")
		reply := b.post(t, form, fields)
		if reply.status != http.StatusUnprocessableEntity || !strings.Contains(reply.body, "at most 100 of these") {
			t.Errorf("101 rows: status %d", reply.status)
		}
		fields.Set("limits."+strconv.Itoa(billing.MaxPlanItems)+".feature", "")
		fields.Set("limits."+strconv.Itoa(billing.MaxPlanItems)+".limit", "")
		if reply := b.post(t, form, fields); reply.status != http.StatusSeeOther || len(r.plan(t, "pro").Limits) != billing.MaxPlanItems {
			t.Errorf("100 rows: status %d", reply.status)
		}
	})
}
