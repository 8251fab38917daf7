package api_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// newPlan is the smallest body that makes a plan.
func newPlan(key string, more fields) fields {
	body := fields{"key": key, "name": "Pro", "amountCents": 2900, "currency": "eur", "interval": "month", "featureLimits": []fields{}}
	maps.Copy(body, more)
	return body
}

func (tn *tenant) plan(key string, more fields) {
	tn.t.Helper()
	tn.post("/v1/plans", newPlan(key, more)).is(201)
}

// listRule is for an array of at most 100 items, each with a key of its own.
func listRule(item string, badItems ...string) rule {
	items := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(item, fmt.Sprintf("k%d", i))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	r := rule{
		good: []string{`[]`, items(1), items(2), items(99), items(100)},
		bad:  []string{items(101), `null`, `{}`, `"[]"`, `1`, `true`, `[null]`, `[1]`, `[[]]`, `[{}]`, `["x"]`, `[`, ``},
	}
	for _, bad := range append(badItems, fmt.Sprintf(item, "A"), fmt.Sprintf(item, ""), fmt.Sprintf(item, repeated("a", 81))) {
		r.bad = append(r.bad, "["+bad+"]")
	}
	r.bad = append(r.bad, fmt.Sprintf("[%[1]s,%[1]s]", fmt.Sprintf(item, "twice")))
	return r
}

var planRules = map[string]rule{
	"name": textRule(120), "amountCents": wholeRule("0", "99999999"), "interval": enumRule("month", "year"),
	"currency": currencyRule,
	"featureLimits": listRule(`{"featureKey":%q,"limit":9007199254740991,"period":"billing","overage":"credits"}`,
		`{"featureKey":"a"}`, `{"limit":1}`, `{"featureKey":"a","limit":-1}`, `{"featureKey":"a","limit":9007199254740992}`, `{"featureKey":"a","limit":"1"}`,
		`{"featureKey":"a","limit":1,"period":"day"}`, `{"featureKey":"a","limit":1,"overage":"free"}`, `{"featureKey":"a","limit":1,"stranger":1}`,
		`{"featureKey":"a","limit":1,"period":null}`),
	"creditGrants": listRule(`{"creditKey":%q,"amountNanocredits":"9999999999999999999"}`,
		`{"creditKey":"a"}`, `{"amountNanocredits":"1"}`, `{"creditKey":"a","amountNanocredits":1}`, `{"creditKey":"a","amountNanocredits":"01"}`,
		`{"creditKey":"a","amountNanocredits":"10000000000000000000"}`, `{"creditKey":"a","amountNanocredits":"1","stranger":1}`),
	"featureMultipliers": listRule(`{"featureKey":%q,"basisPoints":1000000}`,
		`{"featureKey":"a"}`, `{"basisPoints":1}`, `{"featureKey":"a","basisPoints":-1}`, `{"featureKey":"a","basisPoints":1000001}`, `{"featureKey":"a","basisPoints":0.5}`),
	"topupsEnabled": booleanRule, "active": booleanRule,
}

var currencyRule = rule{
	good: []string{quoted("eur"), quoted("usd"), quoted("jpy")},
	bad:  append([]string{quoted(""), quoted("EUR"), quoted("eu"), quoted("euro"), quoted("e1r"), quoted("eür"), quoted(" eur"), quoted(`eur\n`)}, noText...),
}

var booleanRule = rule{
	good: []string{`true`, `false`},
	bad:  []string{`0`, `1`, `"true"`, `"false"`, `""`, `null`, `[]`, `{}`, `True`, `yes`, ``},
}

var planOperations = []bodied{
	{
		id: "createPlan", method: "POST", target: "/v1/plans", required: []string{"key", "name", "amountCents", "currency", "interval", "featureLimits"},
		sample: func() fields { return newPlan("k-"+newName(), nil) },
		rules:  withRule(planRules, "key", keyRule),
	},
	{
		id: "updatePlan", method: "PATCH", target: "/v1/plans/pro", mayBeEmpty: true,
		sample: func() fields { return fields{"name": "Pro"} },
		rules:  withRule(planRules, "expectedRevision", wholeRule("1", "9223372036854775807")),
	},
}

func withRule(rules map[string]rule, name string, r rule) map[string]rule {
	all := maps.Clone(rules)
	all[name] = r
	return all
}

func TestPlanLocksPricing(t *testing.T) {
	t.Parallel()
	for list, item := range map[string]fields{
		"featureLimits": {"featureKey": "chat", "limit": 1}, "featureMultipliers": {"featureKey": "chat", "basisPoints": 5000},
	} {
		t.Run("by its "+list+", for as long as it names the feature", func(t *testing.T) {
			t.Parallel()
			tn := newTenant(t)
			tn.credit("gold")
			tn.credit("silver")
			tn.feature("chat", "gold", nil)
			tn.plan("pro", fields{list: []fields{item}})
			was := tn.get("/v1/features/chat").is(200).shows(fields{"planPricingLocked": true, "revision": 1}).object()
			for _, change := range []fields{{"creditKey": "silver"}, {"costNanocredits": "1"}, {"quantityPerUnit": 2}, {"pricingMode": "callback"}} {
				got := tn.patch("/v1/features/chat", merged(change, fields{"name": "New"}))
				if _, isMode := change["pricingMode"]; isMode && list == "featureMultipliers" && got.status == 422 {
					continue // a multiplier forbids callback by a rule of its own
				}
				got.refused("feature_pricing_locked")
			}
			tn.get("/v1/features/chat").is(200).has(was)
			same := fields{"creditKey": "gold", "costNanocredits": "1000", "quantityPerUnit": 1, "pricingMode": "fixed"}
			tn.patch("/v1/features/chat", same).is(200).has(was)
			tn.patch("/v1/features/chat", fields{"name": "New", "unit": "u"}).is(200).shows(fields{"revision": 2, "planPricingLocked": true})
			tn.patch("/v1/plans/pro", fields{list: []fields{}}).is(200)
			tn.get("/v1/features/chat").is(200).shows(fields{"revision": 2, "planPricingLocked": false})
			tn.patch("/v1/features/chat", fields{"costNanocredits": "1"}).is(200).shows(fields{"revision": 3})
		})
	}
}
