package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func chars(n int) string { return `"` + strings.Repeat("x", n) + `"` }

// wide has n code points in 4n bytes and 2n UTF-16 units.
func wide(n int) string { return `"` + strings.Repeat("😀", n) + `"` }

func repeated(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

// Values at, below and past the bounds of each kind of field.
type bounds struct{ good, bad []string }

var (
	textOf = func(limit int) bounds {
		return bounds{
			[]string{chars(1), chars(limit), wide(limit), `" "`, `"a/b"`, `".."`, `"%"`},
			[]string{`""`, chars(limit + 1), wide(limit + 1), `1`, `null`, `true`, `["a"]`, `{}`},
		}
	}
	keys80 = bounds{
		[]string{`"a"`, `"0"`, `"a_b-c9"`, `"a-"`, chars(80)},
		[]string{`""`, chars(81), `"A"`, `"_a"`, `"-a"`, `"a b"`, `"a.b"`, `"é"`, `"a\n"`, `"a\u0001"`, `1`, `null`},
	}
	nanocredits = bounds{
		[]string{`"0"`, `"1"`, `"10"`, `"9223372036854775808"`, `"9999999999999999999"`},
		[]string{`""`, `"00"`, `"01"`, `"-1"`, `"+1"`, `"1.0"`, `"1e3"`, `" 1"`, `"1\n"`, `"٣"`, `"10000000000000000000"`, `0`, `1`, `null`, `true`},
	}
	positiveNanocredits = bounds{nanocredits.good[1:], append([]string{`"0"`}, nanocredits.bad...)}
	labels              = bounds{
		[]string{`{}`, `{"a":"b"}`, `{"` + strings.Repeat("a", 40) + `":"` + strings.Repeat("é", 80) + `"}`, someProperties(8), `{"A-z_0":"\u0001 \""}`},
		[]string{`null`, `[]`, `"a"`, `1`, `{"a":""}`, `{"a":1}`, `{"a":null}`, `{"a":{}}`, `{"":"b"}`, `{"a b":"b"}`, `{"a.b":"b"}`, `{"é":"b"}`,
			`{"` + strings.Repeat("a", 41) + `":"b"}`, `{"a":"` + strings.Repeat("a", 81) + `"}`, someProperties(9)},
	}
	whole = func(low, high int64) bounds {
		b := bounds{
			[]string{fmt.Sprint(low), fmt.Sprintf("%d.0", low), fmt.Sprint(high), fmt.Sprintf("%d.000e0", high)},
			[]string{fmt.Sprint(low - 1), fmt.Sprint(high + 1), "1e999999", "-1e999999", "9999999999999999999", "1.5", "0.5", `"1"`, `""`, `true`, `null`, `[1]`},
		}
		if low == 0 {
			b.good = append(b.good, "-0", "-0.0", "0e5")
		} else {
			b.bad = append(b.bad, "0", "-0")
		}
		if high >= 1000 {
			b.good = append(b.good, "1e3", "1E+3", "1000")
		}
		return b
	}
	boolean = bounds{[]string{`true`, `false`}, []string{`0`, `1`, `"true"`, `null`, `""`}}
	oneOf   = func(values ...string) bounds {
		b := bounds{nil, []string{`""`, `"other"`, `null`, `1`, `[]`, `"` + strings.ToUpper(values[0]) + `"`, `"` + values[0] + ` "`}}
		for _, value := range values {
			b.good = append(b.good, `"`+value+`"`)
		}
		return b
	}
	address = bounds{
		[]string{`"https://a.example"`, `"HTTPS://A.example"`, `"Http://a.example"`, `"http://localhost:3000/x?y=z#w"`, `"https://a.example/{CHECKOUT_SESSION_ID}"`, `"https://[::1]/"`, `"https://a.example/` + strings.Repeat("x", 2048-18) + `"`},
		[]string{`""`, `"a.example"`, `"/a"`, `"//a.example"`, `"ftp://a.example"`, `"javascript:alert(1)"`, `"https://"`, `"https:///a"`, `"https://a b"`, `"https://a.example/\u0001"`, `"https://a.example\\b"`, `"https://a.example/\\"`, `"https:\\\\a.example"`, `"https://é.example"`, `"https://a:b:c"`, `"https://[::1"`, `"https://[x]/"`, `"https://a.example/%zz"`, `"https://a.example/` + strings.Repeat("x", 2048-17) + `"`, `1`, `null`},
	}
	currency = bounds{[]string{`"eur"`, `"usd"`}, []string{`"EUR"`, `"eu"`, `"euro"`, `"e1r"`, `""`, `1`, `null`}}
	revision = bounds{[]string{`1`, `1.0`, `9007199254740993`, `9223372036854775807`}, []string{`0`, `-1`, `1.5`, `"1"`, `null`, `9223372036854775808`, `1e999999`}}
	listOf   = func(item string) bounds {
		return bounds{[]string{`[]`, repeated(1, item), repeated(100, item)}, []string{repeated(101, item), `{}`, `null`, `""`, `[1]`, `[null]`, `[[]]`, `[{}]`}}
	}
	typeList = bounds{
		[]string{`[]`, `["deposit.created"]`, repeated(50, `"key.revoked"`)},
		[]string{repeated(51, `"key.revoked"`), `["deposit"]`, `[""]`, `{}`, `null`, `""`, `[1]`, `[null]`, `[[]]`},
	}
	description = bounds{[]string{`""`, chars(500), wide(500)}, []string{chars(501), `1`, `null`, `[]`}}
	endpointIDs = bounds{
		[]string{`"whe_01kdvdna0cfx9a26nnrw56xpp0"`, `"whe_7zzzzzzzzzzzzzzzzzzzzzzzzz"`},
		[]string{`""`, `"whe_"`, `"ntf_01kdvdna0cfx9a26nnrw56xpp0"`, `"whe_01kdvdna0cfx9a26nnrw56xpp"`, `"whe_8zzzzzzzzzzzzzzzzzzzzzzzzz"`, `"WHE_01kdvdna0cfx9a26nnrw56xpp0"`, `1`, `null`},
	}
	catalogs = bounds{
		[]string{`{"credits":[],"features":[],"plans":[]}`, `{"credits":` + repeated(500, `{"key":"a","name":"A","unit":"u"}`) + `,"features":[],"plans":[]}`},
		[]string{`{}`, `null`, `[]`, `{"credits":[],"features":[]}`, `{"credits":[],"features":[],"plans":[],"x":1}`, `{"credits":[{}],"features":[],"plans":[]}`,
			`{"credits":` + repeated(501, `{"key":"a","name":"A","unit":"u"}`) + `,"features":[],"plans":[]}`},
	}
	safe       = int64(9007199254740991)
	limitItem  = `{"featureKey":"a","limit":1}`
	grantItem  = `{"creditKey":"a","amountNanocredits":"1"}`
	multiplier = `{"featureKey":"a","basisPoints":1}`
	limitWith  = func(member string) func(string) string {
		return func(value string) string { return `[` + withField(limitItem, member, value) + `]` }
	}
)

// fields says for each operation which bounds each field of its body has, and
// which fields may not be left out.
var fields = map[string]struct {
	required string
	bounds   map[string]bounds
}{
	"createCredit": {"key name unit", map[string]bounds{"key": keys80, "name": textOf(120), "unit": textOf(40)}},
	"updateCredit": {"", map[string]bounds{"expectedRevision": revision, "name": textOf(120), "unit": textOf(40)}},
	"putAlertRule": {"kind", map[string]bounds{
		"kind": oneOf("balance", "allowance"), "creditKey": keys80, "featureKey": keys80, "identity": textOf(200),
		"rearmPercent": whole(100, 1000), "quietHours": whole(0, 8760),
		"thresholdsNanocredits": {[]string{`["1"]`, repeated(5, `"1"`)}, []string{`[]`, repeated(6, `"1"`), `["0"]`, `[1]`, `[null]`, `"1"`, `null`, `{}`}},
		"thresholdsPercent":     {[]string{`[1]`, `[100]`, repeated(5, `1`)}, []string{`[]`, repeated(6, `1`), `[0]`, `[101]`, `["1"]`, `[1.5]`, `1`, `null`, `{}`}},
	}},
	"createFeature": {"key name unit creditKey costNanocredits", map[string]bounds{
		"key": keys80, "name": textOf(120), "unit": textOf(40), "creditKey": keys80, "costNanocredits": nanocredits,
		"quantityPerUnit": whole(1, safe), "pricingMode": oneOf("fixed", "callback"), "deduplicationPeriod": oneOf("none", "day", "week", "month", "billing"),
	}},
	"updateFeature": {"", map[string]bounds{
		"expectedRevision": revision, "name": textOf(120), "unit": textOf(40), "creditKey": keys80, "costNanocredits": nanocredits,
		"quantityPerUnit": whole(1, safe), "pricingMode": oneOf("fixed", "callback"), "deduplicationPeriod": oneOf("none", "day", "week", "month", "billing"),
	}},
	"createPlan": {"key name amountCents currency interval featureLimits", map[string]bounds{
		"key": keys80, "name": textOf(120), "amountCents": whole(0, 99999999), "currency": currency, "interval": oneOf("month", "year"),
		"featureLimits": listOf(limitItem), "creditGrants": listOf(grantItem), "featureMultipliers": listOf(multiplier),
		"topupsEnabled": boolean, "active": boolean,
	}},
	"updatePlan": {"", map[string]bounds{
		"name": textOf(120), "amountCents": whole(0, 99999999), "currency": currency, "interval": oneOf("month", "year"),
		"featureLimits": listOf(limitItem), "creditGrants": listOf(grantItem), "featureMultipliers": listOf(multiplier),
		"topupsEnabled": boolean, "active": boolean, "expectedRevision": revision,
	}},
	"previewCatalog": {"catalog", map[string]bounds{"catalog": catalogs, "archiveMissing": boolean}},
	"applyCatalog": {"catalog expectedVersion", map[string]bounds{
		"catalog": catalogs, "archiveMissing": boolean,
		"expectedVersion": {[]string{`"0123456789abcdef0123456789abcdef"`}, []string{`""`, `"0123456789abcdef0123456789abcde"`, `"0123456789ABCDEF0123456789ABCDEF"`, `1`, `null`}},
	}},
	"changeSubscription":        {"planKey idempotencyKey", map[string]bounds{"planKey": keys80, "idempotencyKey": textOf(200)}},
	"previewSubscriptionChange": {"planKey", map[string]bounds{"planKey": keys80}},
	"cancelSubscription":        {"cancelAtPeriodEnd idempotencyKey", map[string]bounds{"cancelAtPeriodEnd": boolean, "idempotencyKey": textOf(200)}},
	"createSubscriptionCheckout": {"identity planKey successUrl cancelUrl idempotencyKey", map[string]bounds{
		"identity": textOf(200), "planKey": keys80, "successUrl": address, "cancelUrl": address, "idempotencyKey": textOf(200),
	}},
	"createTopupCheckout": {"identity creditKey amountNanocredits amountCents currency successUrl cancelUrl idempotencyKey", map[string]bounds{
		"identity": textOf(200), "creditKey": keys80, "amountNanocredits": nanocredits, "amountCents": whole(1, 99999999),
		"currency": currency, "successUrl": address, "cancelUrl": address, "idempotencyKey": textOf(200),
	}},
	"createBillingPortal": {"identity returnUrl", map[string]bounds{"identity": textOf(200), "returnUrl": address}},
	"createWallet":        {"identity", map[string]bounds{"identity": textOf(200)}},
	"setBillingPeriod":    {"billingPeriod", map[string]bounds{"billingPeriod": {nil, []string{`null`, `{}`, `[]`, `"month"`, `{"interval":"month"}`, `{"anchor":0}`, `{"interval":"month","anchor":0,"x":1}`}}}},
	"createDeposit": {"identity creditKey amountNanocredits idempotencyKey", map[string]bounds{
		"identity": textOf(200), "creditKey": keys80, "amountNanocredits": nanocredits, "idempotencyKey": textOf(200),
	}},
	"checkUsage": {"identity feature", map[string]bounds{
		"identity": textOf(200), "feature": textOf(100), "amountNanocredits": nanocredits,
		"occurredAt": whole(0, safe), "entityId": textOf(200), "quantity": whole(1, safe),
	}},
	"eraseWallet":  {"reason idempotencyKey", map[string]bounds{"reason": textOf(200), "idempotencyKey": textOf(200)}},
	"renameWallet": {"identity idempotencyKey", map[string]bounds{"identity": textOf(200), "idempotencyKey": textOf(200)}},
	"createTransfer": {"from to creditKey amountNanocredits reason idempotencyKey", map[string]bounds{
		"from": textOf(200), "to": textOf(200), "creditKey": keys80, "amountNanocredits": positiveNanocredits, "reason": textOf(200), "idempotencyKey": textOf(200),
	}},
	"createWebhookEndpoint": {"url", map[string]bounds{"url": address, "types": typeList, "description": description}},
	"updateWebhookEndpoint": {"", map[string]bounds{
		"expectedRevision": revision, "url": address, "types": typeList, "description": description, "status": oneOf("enabled", "paused"),
	}},
	"rotateWebhookSecret":   {"", map[string]bounds{"expectedRevision": revision, "overlapSeconds": whole(0, 604800)}},
	"testWebhookEndpoint":   {"type", map[string]bounds{"type": oneOf("deposit.created", "webhook.paused")}},
	"replayWebhooks":        {"fromSeq only", map[string]bounds{"fromSeq": whole(1, safe), "toSeq": whole(1, safe), "only": oneOf("failed", "all")}},
	"redeliverNotification": {"", map[string]bounds{"endpointId": endpointIDs}},
	"reverseEvent": {"reason idempotencyKey", map[string]bounds{
		"amountNanocredits": positiveNanocredits, "reason": textOf(200), "idempotencyKey": textOf(200),
	}},
	"explainUsage": {"identity feature", map[string]bounds{
		"identity": textOf(200), "feature": textOf(100), "amountNanocredits": nanocredits,
		"occurredAt": whole(0, safe), "entityId": textOf(200), "quantity": whole(1, safe),
	}},
	// An invalid item is reported in the results, so any object is one.
	"trackBatch": {"events", map[string]bounds{"events": {
		[]string{`[{}]`, `[{"id":1}]`, manyItems(`{}`, 1000)},
		[]string{`null`, `{}`, `[]`, `[1]`, `[null]`, `[[]]`, manyItems(`{}`, 1001)},
	}}},
	"trackGroup": {"identity events", map[string]bounds{
		"identity": textOf(200),
		"events": {
			[]string{`[{"id":"e","feature":"f"}]`, manyItems(`{"id":"e","feature":"f"}`, 20)},
			[]string{`null`, `{}`, `[]`, `[1]`, `[{}]`, `[{"id":"e"}]`, `[{"id":"e","feature":"f","identity":"u"}]`, manyItems(`{"id":"e","feature":"f"}`, 21)},
		},
	}},
	"trackUsage": {"id identity feature", map[string]bounds{
		"id": textOf(200), "identity": textOf(200), "feature": textOf(100), "amountNanocredits": nanocredits,
		"occurredAt": whole(0, safe), "entityId": textOf(200), "quantity": whole(1, safe), "properties": labels,
	}},
}

// nested are the bounds of fields below the first level, each put in its place.
var nested = []struct {
	op     string
	field  string
	place  func(value string) string
	bounds bounds
}{
	{"createPlan", "featureLimits", limitWith("featureKey"), keys80},
	{"createPlan", "featureLimits", limitWith("limit"), whole(0, safe)},
	{"createPlan", "featureLimits", limitWith("period"), oneOf("month", "billing")},
	{"updatePlan", "featureLimits", limitWith("overage"), oneOf("block", "credits")},
	{"createPlan", "creditGrants", func(v string) string { return `[` + withField(grantItem, "creditKey", v) + `]` }, keys80},
	{"createPlan", "creditGrants", func(v string) string { return `[` + withField(grantItem, "amountNanocredits", v) + `]` }, nanocredits},
	{"createPlan", "featureMultipliers", func(v string) string { return `[` + withField(multiplier, "featureKey", v) + `]` }, keys80},
	{"updatePlan", "featureMultipliers", func(v string) string { return `[` + withField(multiplier, "basisPoints", v) + `]` }, whole(0, 1000000)},
	{"setBillingPeriod", "billingPeriod", func(v string) string { return `{"interval":` + v + `,"anchor":0}` }, oneOf("day", "week", "month")},
	{"setBillingPeriod", "billingPeriod", func(v string) string { return `{"interval":"day","anchor":` + v + `}` }, whole(0, 253402300799999)},
}

func manyItems(item string, n int) string {
	return "[" + strings.Repeat(item+",", n-1) + item + "]"
}

// exampleBody is a body that the document shows.
func exampleBody(t testing.TB, op *operation) string {
	t.Helper()
	node := expanded(t).Object("paths").Object(op.path).Object(strings.ToLower(op.method))
	example, err := json.Marshal(node.Object("requestBody").Object("content").Object("application/json").Object("example"))
	if err != nil {
		t.Fatal(err)
	}
	return string(example)
}

// withField sets a field of a body to a value, or takes it away.
func withField(body, name, value string) string {
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		panic(err)
	}
	delete(object, name)
	if value != "" {
		object[name] = json.RawMessage("0")
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	// Put in afterwards, as it is: encoding would tidy up what is being tested.
	return strings.Replace(string(text), `"`+name+`":0`, `"`+name+`":`+value, 1)
}

func TestReadBodyBounds(t *testing.T) {
	doc := loaded(t)
	tried := map[string]bool{}
	for id, f := range fields {
		op := doc.named(t, id)
		tried[id] = true
		t.Run(id, func(t *testing.T) {
			body := exampleBody(t, op)
			for name, bounds := range f.bounds {
				expectBody(t, op, body, name, bounds, func(value string) string { return value })
				required := strings.Contains(" "+f.required+" ", " "+name+" ")
				_, err := op.validateBody(nil, []byte(withField(body, name, "")))
				if required && !says(err, name+" is required.") {
					t.Errorf("without %s: %v", name, err)
				}
				if !required && err != nil && id != "updateCredit" {
					t.Errorf("%s should be optional: %v", name, err)
				}
			}
			for _, p := range op.body.properties {
				if _, listed := f.bounds[p.name]; !listed {
					t.Errorf("%s is not in the table", p.name)
				}
			}
			for _, unknown := range []string{"orgId", "appId", "x", ""} {
				_, err := op.validateBody(nil, []byte(withField(body, unknown, "1")))
				if want := fmt.Sprintf("The body has an unknown field %q.", unknown); !says(err, want) {
					t.Errorf("%s: %v", want, err)
				}
			}
		})
	}
	for _, n := range nested {
		t.Run(n.op+" "+n.field, func(t *testing.T) {
			op := doc.named(t, n.op)
			expectBody(t, op, exampleBody(t, op), n.field, n.bounds, n.place)
		})
	}
	for _, op := range doc.operations {
		if (op.body != nil) != tried[op.id] {
			t.Errorf("%s is not in the table", op.id)
		}
	}
}

func expectBody(t *testing.T, op *operation, body, name string, b bounds, place func(string) string) {
	t.Helper()
	for _, value := range b.good {
		if v := checkedText(t, op, withField(body, name, place(value))); v != nil {
			t.Errorf("%s %.60s is refused: %s %s", name, value, v.path, v.broken)
		}
	}
	for _, value := range b.bad {
		v := checkedText(t, op, withField(body, name, place(value)))
		if v == nil {
			t.Errorf("%s %.60s is accepted", name, value)
		} else if !strings.HasPrefix(v.path, name) {
			t.Errorf("%s %.60s is refused as %s %s", name, value, v.path, v.broken)
		}
	}
}

// checkedText leaves the size aside, which a hundred items can pass.
func checkedText(t *testing.T, op *operation, body string) *violation {
	t.Helper()
	object, err := decodeJSON([]byte(body), op.body, op.items != nil)
	if err != nil {
		t.Fatalf("%.80s: %v", body, err)
	}
	return op.envelope.check(object)
}

// someProperties are n properties.
func someProperties(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`"name-%d":"value"`, i)
	}
	return "{" + strings.Join(names, ",") + "}"
}

// propertiesOf are properties of that many bytes together.
func propertiesOf(bytes int) string {
	rest := bytes - 7*(1+70)
	members := []string{fmt.Sprintf(`"x":%q`, strings.Repeat("é", (rest-1)/2)+strings.Repeat("a", (rest-1)%2))}
	for i := range 7 {
		members = append(members, fmt.Sprintf(`"%d":%q`, i, strings.Repeat("é", 35)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// The bytes of all properties together are beyond JSON Schema, so the oracle doesn't
// judge them.
func TestPropertiesAreLimitedTogether(t *testing.T) {
	op := loaded(t).named(t, "trackUsage")
	body := exampleBody(t, op)
	for bytes, want := range map[int]string{511: "", 512: "", 513: "must be at most 512 bytes together, names and values"} {
		v := checkedText(t, op, withField(body, "properties", propertiesOf(bytes)))
		if got := v; (got == nil) != (want == "") || got != nil && (got.broken != want || got.path != "properties") {
			t.Errorf("%d bytes: %+v", bytes, got)
		}
	}
}
