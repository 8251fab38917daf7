package api_test

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"purser/api"
)

// rule is what a field may hold: JSON at and inside its bounds, and past them.
type rule struct{ good, bad []string }

func quoted(text string) string { return `"` + text + `"` }

// textRule counts characters. Four bytes of an emoji are one, and an accent that
// stands by itself is one too.
func textRule(limit int) rule {
	accented := strings.Repeat("e\u0301", limit/2)
	return rule{
		good: []string{
			quoted("x"), quoted(repeated("x", limit-1)), quoted(repeated("x", limit)), quoted(repeated("😀", limit)), quoted(accented),
			quoted(repeated(`\ud83d\ude00`, limit)), quoted(" "), quoted(`\u0001`), quoted(`\"\\\/`), quoted("\u2028"),
		},
		bad: append([]string{
			quoted(""), quoted(repeated("x", limit+1)), quoted(repeated("😀", limit+1)), quoted(accented + "e"), quoted(repeated(`\ud83d\ude00`, limit+1)),
			quoted(repeated("é", limit+1)), `["x"]`, `{"x":"x"}`, `0`, `1.5`,
		}, noText...),
	}
}

// noText is no text for any field.
var noText = []string{
	`null`, `true`, `false`, `1`, `[]`, `{}`, `"\u0000"`, `"a\u0000b"`, `"\ud800"`, `"\udc00\ud800"`, `"\ud83dx"`, "\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"",
	"\"\x00\"", "\"\n\"", "\"\t\"", `"\x41"`, `"\u12"`, `'x'`, `x`, `"x`, `undefined`, ``,
}

var keyRule = rule{
	good: []string{quoted("a"), quoted("0"), quoted("a_b-c9"), quoted("a--"), quoted(repeated("a", 79)), quoted(repeated("a", 80)), quoted(`\u0061bc`)},
	bad: append([]string{
		quoted(""), quoted(repeated("a", 81)), quoted("A"), quoted("aB"), quoted("_a"), quoted("-a"), quoted("a b"), quoted(" a"), quoted("a "), quoted("a.b"), quoted("a/b"),
		quoted("é"), quoted("ａ"), quoted("😀"), quoted(`a\n`), quoted(`\na`), quoted("a%20"), quoted("a:b"), quoted("٣"),
	}, noText...),
}

var amountRule = rule{
	good: []string{quoted("0"), quoted("1"), quoted("10"), quoted("9223372036854775807"), quoted("9223372036854775808"), quoted("9999999999999999999"), quoted(`\u0031`)},
	bad: append([]string{
		quoted(""), quoted("00"), quoted("01"), quoted("-1"), quoted("-0"), quoted("+1"), quoted("1.0"), quoted("1e3"),
		quoted(" 1"), quoted("1 "), quoted(`1\n`), quoted("1_000"),
		quoted("1,000"), quoted("0x10"), quoted("١"), quoted("10000000000000000000"), quoted("09999999999999999999"),
		quoted("NaN"), quoted("a"), `0`, `1.0`, `1e3`, `9999999999999999999`,
	}, noText...),
}

var positiveAmountRule = rule{good: amountRule.good[1:], bad: append([]string{quoted("0")}, amountRule.bad...)}

var propertiesRule = rule{
	good: []string{`{}`, `{"model":"large"}`, `{"a":"` + strings.Repeat("😀", 80) + `"}`, `{"1":"a","2":"a","3":"a","4":"a","5":"a","6":"a","7":"a","8":"a"}`},
	bad: []string{`null`, `[]`, `"a"`, `1`, `true`, `{"a":""}`, `{"a":1}`, `{"a":null}`, `{"a":["b"]}`, `{"a":{"b":"c"}}`, `{"":"b"}`, `{"a b":"b"}`,
		`{"a":"b","a":"c"}`, `{"a":"\u0000"}`, `{"a":"\ud800"}`, `{"a":"` + strings.Repeat("a", 81) + `"}`, `{"` + strings.Repeat("a", 41) + `":"b"}`,
		`{"1":"a","2":"a","3":"a","4":"a","5":"a","6":"a","7":"a","8":"a","9":"a"}`, `{"a":"` + strings.Repeat("😀", 80) + `","b":"` + strings.Repeat("😀", 80) + `"}`},
}

func wholeRule(low, high string) rule {
	past := func(bound string, by int64) string {
		n, _ := new(big.Int).SetString(bound, 10)
		return n.Add(n, big.NewInt(by)).String()
	}
	r := rule{
		good: []string{low, past(low, 1), past(high, -1), high, low + ".0", high + ".000", high + "e0", high + "0e-1", "1e3", "1E+3", "1000.0"},
		bad: []string{
			past(low, -1), past(high, 1), high + "0", "1e19", "1e999999", "-1e999999", "1e99999999999999999999",
			"-9223372036854775808", "-9223372036854775809", "9999999999999999999",
			"1.5", "0.5", "1e-1", high + ".1", "1e-999999", quoted("1"), quoted(""), `null`, `true`, `[]`, `[1]`, `{}`, `01`,
			`+1`, `.5`, `1.`, `0x1`, `1e`, `NaN`, `Infinity`, `-`, `--1`, `1 2`, `1_0`, `١`, ``,
		},
	}
	if low == "0" {
		r.good = append(r.good, "-0", "-0.0", "0e999999", "0.000")
	} else {
		r.bad = append(r.bad, "-0", "0.0", "0e5")
	}
	return r
}

func enumRule(values ...string) rule {
	r := rule{bad: append([]string{quoted(""), quoted("other"), quoted(strings.ToUpper(values[0])), quoted(values[0] + " "), quoted(" " + values[0]), quoted(values[0] + `\n`)}, noText...)}
	for _, value := range values {
		r.good = append(r.good, quoted(value))
	}
	return r
}

// bodied is an operation that takes a body: one that is accepted, created again each
// time, and the rule of each field. A dot leads into an object.
type bodied struct {
	id         string
	method     string
	target     string
	required   []string
	sample     func() fields
	rules      map[string]rule
	mayBeEmpty bool
}

const (
	ruledHolder = holderMark + "ruled"
	maxSafe     = "9007199254740991"
)

// bodiedOperations work in an application that newRuledTenant has made.
var bodiedOperations = slices.Concat(meteringOperations, planOperations, catalogOperations, subscriptionOperations, notificationOperations)

var meteringOperations = []bodied{
	{
		id: "createCredit", method: "POST", target: "/v1/credits", required: []string{"key", "name", "unit"},
		sample: func() fields { return fields{"key": "k-" + newName(), "name": "Gold", "unit": "coin"} },
		rules:  map[string]rule{"key": keyRule, "name": textRule(120), "unit": textRule(40)},
	},
	{
		id: "updateCredit", method: "PATCH", target: "/v1/credits/gold",
		sample: func() fields { return fields{"name": "Gold", "unit": "coin"} },
		rules:  map[string]rule{"name": textRule(120), "unit": textRule(40), "expectedRevision": wholeRule("1", "9223372036854775807")},
	},
	{
		id: "putAlertRule", method: "PUT", target: "/v1/alert-rules/low", required: []string{"kind", "creditKey", "thresholdsNanocredits"},
		sample: func() fields {
			return fields{"kind": "balance", "creditKey": "gold", "thresholdsNanocredits": []string{"1"}}
		},
		rules: map[string]rule{
			"kind": {good: []string{quoted("balance")}, bad: append([]string{quoted("allowance")}, enumRule("balance").bad...)}, "creditKey": keyRule,
			"thresholdsNanocredits": {good: []string{`["1"]`, `["9999999999999999999", "1"]`}, bad: []string{`[]`, `["0"]`, `["1", "1"]`, `["1", "2", "3", "4", "5", "6"]`, `[1]`, `null`, `"1"`, `{}`}},
			"rearmPercent":          wholeRule("100", "1000"), "quietHours": wholeRule("0", "8760"), "identity": textRule(200),
			"featureKey": {bad: append([]string{quoted("usage")}, keyRule.bad...)}, "thresholdsPercent": {bad: []string{`[1]`, `[]`, `[0]`, `[101]`, `null`}},
		},
	},
	{
		id: "createFeature", method: "POST", target: "/v1/features", required: []string{"key", "name", "unit", "creditKey", "costNanocredits"},
		sample: func() fields { return newFeature("k-"+newName(), nil) },
		rules: map[string]rule{
			"key": keyRule, "name": textRule(120), "unit": textRule(40), "creditKey": keyRule, "costNanocredits": amountRule,
			"quantityPerUnit": wholeRule("1", maxSafe), "pricingMode": enumRule("fixed", "callback"),
			"deduplicationPeriod": enumRule("none", "day", "week", "month", "billing"),
		},
	},
	{
		id: "updateFeature", method: "PATCH", target: "/v1/features/patched",
		sample: func() fields { return fields{"name": "Chat"} },
		rules: map[string]rule{
			"name": textRule(120), "unit": textRule(40), "creditKey": keyRule, "costNanocredits": amountRule,
			"quantityPerUnit": wholeRule("1", maxSafe), "pricingMode": enumRule("fixed", "callback"),
			"deduplicationPeriod": enumRule("none", "day", "week", "month", "billing"),
			"expectedRevision":    wholeRule("1", "9223372036854775807"),
		},
	},
	{
		id: "createWallet", method: "POST", target: "/v1/wallets", required: []string{"identity"},
		sample: func() fields { return fields{"identity": newHolder()} },
		rules:  map[string]rule{"identity": textRule(200)},
	},
	{
		id: "setBillingPeriod", method: "PATCH", target: "/v1/wallets/" + ruledHolder + "/billing-period", required: []string{"billingPeriod"},
		sample: func() fields { return period("day", 0) },
		rules: map[string]rule{
			"billingPeriod": {good: []string{`{"anchor":1,"interval":"week"}`}, bad: []string{`null`, `{}`, `[]`,
				`"day"`, `1`, `true`, `{"interval":"day"}`, `{"anchor":1}`}},
			"billingPeriod.interval": enumRule("day", "week", "month"), "billingPeriod.anchor": wholeRule("0", "253402300799999"),
		},
	},
	{
		id: "createDeposit", method: "POST", target: "/v1/deposits", required: []string{"identity", "creditKey", "amountNanocredits", "idempotencyKey"},
		sample: func() fields {
			return fields{"identity": newHolder(), "creditKey": "gold", "amountNanocredits": "1", "idempotencyKey": newName()}
		},
		rules: map[string]rule{"identity": textRule(200), "creditKey": keyRule, "amountNanocredits": amountRule, "idempotencyKey": textRule(200)},
	},
	{
		id: "eraseWallet", method: "POST", target: "/v1/wallets/unknown-holder/erase", required: []string{"reason", "idempotencyKey"},
		sample: func() fields { return fields{"reason": "asked", "idempotencyKey": newName()} },
		rules:  map[string]rule{"reason": textRule(200), "idempotencyKey": textRule(200)},
	},
	{
		id: "renameWallet", method: "POST", target: "/v1/wallets/unknown-holder/rename", required: []string{"identity", "idempotencyKey"},
		sample: func() fields { return fields{"identity": ruledHolder, "idempotencyKey": newName()} },
		rules:  map[string]rule{"identity": textRule(200), "idempotencyKey": textRule(200)},
	},
	{
		id: "createTransfer", method: "POST", target: "/v1/transfers", required: []string{"from", "to", "creditKey", "amountNanocredits", "reason", "idempotencyKey"},
		sample: func() fields { return newTransfer(ruledHolder, "unknown-receiver", "gold") },
		rules: map[string]rule{
			"from": textRule(200), "to": textRule(200), "creditKey": keyRule, "amountNanocredits": positiveAmountRule,
			"reason": textRule(200), "idempotencyKey": textRule(200),
		},
	},
	{
		id: "checkUsage", method: "POST", target: "/v1/check", required: []string{"identity", "feature"},
		sample: func() fields { return fields{"identity": newHolder(), "feature": "chat"} },
		rules:  usageRules(nil),
	},
	{
		id: "explainUsage", method: "POST", target: "/v1/explain", required: []string{"identity", "feature"},
		sample: func() fields { return fields{"identity": newHolder(), "feature": "chat"} },
		rules:  usageRules(nil),
	},
	{
		id: "reverseEvent", method: "POST", target: "/v1/events/ruled/reverse", required: []string{"reason", "idempotencyKey"},
		sample: func() fields { return newReversal("1") },
		rules:  map[string]rule{"amountNanocredits": positiveAmountRule, "reason": textRule(200), "idempotencyKey": textRule(200)},
	},
	{
		id: "trackUsage", method: "POST", target: "/v1/events", required: []string{"id", "identity", "feature"},
		sample: func() fields { return fields{"id": newName(), "identity": newHolder(), "feature": "chat"} },
		rules:  usageRules(map[string]rule{"id": textRule(200), "properties": propertiesRule}),
	},
	{
		id: "trackBatch", method: "POST", target: "/v1/events/batch", required: []string{"events"},
		sample: func() fields { return batchOf(fields{"id": newName(), "identity": newHolder(), "feature": "chat"}) },
		rules:  map[string]rule{"events": {good: []string{`[{}]`}, bad: []string{`null`, `{}`, `[]`, `[1]`, `"a"`}}},
	},
	{
		id: "trackGroup", method: "POST", target: "/v1/events/group", required: []string{"identity", "events"},
		sample: func() fields {
			return fields{"identity": newHolder(), "events": []fields{{"id": newName(), "feature": "chat"}}}
		},
		rules: map[string]rule{"identity": textRule(200), "events": {
			good: []string{`[{"id":"e","feature":"chat"}]`}, bad: []string{`null`, `{}`, `[]`, `[1]`, `[{}]`, `"a"`},
		}},
	},
}

func usageRules(more map[string]rule) map[string]rule {
	rules := map[string]rule{
		"identity": textRule(200), "feature": textRule(100), "amountNanocredits": amountRule, "entityId": textRule(200),
		"occurredAt": wholeRule("0", maxSafe), "quantity": wholeRule("1", maxSafe),
	}
	maps.Copy(rules, more)
	return rules
}

// newRuledTenant has what the samples name.
func newRuledTenant(t testing.TB) *tenant {
	t.Helper()
	tn := newTenant(t)
	tn.credit("gold")
	tn.feature("chat", "gold", nil)
	tn.feature("patched", "gold", nil)
	tn.plan("pro", nil)
	tn.plan("free", fields{"amountCents": 0})
	tn.settle()
	tn.post("/v1/wallets", fields{"identity": ruledHolder}).is(201)
	charged := newHolder()
	tn.deposit(charged, "gold", "1000000000")
	tn.post("/v1/events", fields{"id": "ruled", "identity": charged, "feature": "chat", "quantity": 1000}).is(201)
	return tn
}

// withRaw is the sample with one field as it stands, which may be no JSON.
func (b bodied) withRaw(name, raw string) string {
	const place = "☞"
	body := b.sample()
	outer, inner, nested := strings.Cut(name, ".")
	if nested {
		body[outer].(fields)[inner] = place
	} else {
		body[outer] = place
	}
	text, err := bodyText(body)
	if err != nil {
		panic(err)
	}
	return strings.Replace(string(text), quoted(place), raw, 1)
}

func TestRulesCoverTheDocument(t *testing.T) {
	t.Parallel()
	described, err := api.Operations()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range described {
		if op.Fields == nil {
			continue
		}
		at := slices.IndexFunc(bodiedOperations, func(b bodied) bool { return b.id == op.ID })
		if at < 0 {
			t.Errorf("%s has no rules here: add it to bodiedOperations", op.ID)
			continue
		}
		for _, name := range op.Fields {
			if _, ruled := bodiedOperations[at].rules[name]; !ruled {
				t.Errorf("%s has no rule for %s", op.ID, name)
			}
		}
	}
}

func TestBoundsAreAccepted(t *testing.T) {
	t.Parallel()
	for _, b := range bodiedOperations {
		t.Run(b.id, func(t *testing.T) {
			t.Parallel()
			tn := newRuledTenant(t)
			for name, r := range b.rules {
				for _, value := range r.good {
					got := tn.send(request{method: b.method, target: b.target, body: b.withRaw(name, value)})
					// What is well-formed may still name nothing or clash; it is not invalid.
					if !slices.Contains([]int{200, 201, 404, 409, 422}, got.status) {
						t.Errorf("%s = %.60s: %d %s", name, value, got.status, got.body)
					}
				}
			}
		})
	}
}

// TestIntegersHaveManySpellings: the value of the number counts, not its form.
func TestIntegersHaveManySpellings(t *testing.T) {
	t.Parallel()
	tn := newRuledTenant(t)
	for spelling, want := range map[string]int{"1": 1, "1.0": 1, "1e3": 1000, "1E+3": 1000, "12e-1e": 0, "1200e-2": 12, "0.5e1": 5, "100.000": 100} {
		body := fmt.Sprintf(`{"key":"k-%s","name":"n","unit":"u","creditKey":"gold","costNanocredits":"1","quantityPerUnit":%s}`, newName(), spelling)
		got := tn.post("/v1/features", body)
		if want == 0 {
			got.refused("invalid_request")
			continue
		}
		got.is(201).shows(fields{"quantityPerUnit": want})
	}
}
