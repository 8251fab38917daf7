package api

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"purser/fault"
)

func says(err error, message string) bool {
	f, ok := err.(*fault.Fault)
	return ok && f.Code == fault.InvalidRequest && f.Message == message
}

func TestReadBodyMessages(t *testing.T) {
	doc := loaded(t)
	for _, c := range []struct{ op, body, message string }{
		{"createCredit", `{}`, `key is required.`},
		{"createCredit", `{"key":"a","unit":"b"}`, `name is required.`},
		{"createCredit", `{"key":"a","nmae":"A","unit":"b"}`, `The body has an unknown field "nmae"; did you mean "name"?`},
		{"createFeature", `{"credit_key":"a"}`, `The body has an unknown field "credit_key"; did you mean "creditKey"?`},
		{"createFeature", `{"CostNanoCredits":"1"}`, `The body has an unknown field "CostNanoCredits"; did you mean "costNanocredits"?`},
		{"createCredit", `{"key":"a","Key":"a"}`, `The body has an unknown field "Key".`},
		{"createCredit", `{"key":"a","appId":"x"}`, `The body has an unknown field "appId".`},
		{"createCredit", `{"key":"A","name":"A","unit":"b"}`, `key must be made of lower-case letters, digits, '-' and '_', and start with a letter or a digit.`},
		{"createCredit", `{"key":"a","name":"","unit":"b"}`, `name must not be empty.`},
		{"createCredit", `{"key":"a","name":1,"unit":"b"}`, `name must be a string.`},
		{"createCredit", `{"key":"a","name":` + chars(121) + `,"unit":"b"}`, `name must be at most 120 characters.`},
		{"updateCredit", `{}`, `The body must have at least one field.`},
		{"updateCredit", `{"expectedRevision":0}`, `expectedRevision must be at least 1.`},
		{"updateCredit", `{"expectedRevision":1e999999}`, `expectedRevision must be at most 9223372036854775807.`},
		{"createDeposit", `{"identity":"u","creditKey":"a","amountNanocredits":"01","idempotencyKey":"k"}`, `amountNanocredits must be a whole number as a string of digits, without sign or leading zeros, such as "1500000000".`},
		{"createDeposit", `{"identity":"u","creditKey":"a","amountNanocredits":1,"idempotencyKey":"k"}`, `amountNanocredits must be a string.`},
		{"trackUsage", `{"id":"e","identity":"u","feature":"f","quantity":1.5}`, `quantity must be a whole number.`},
		{"trackUsage", `{"id":"e","identity":"u","feature":"f","quantity":1e30}`, `quantity must be at most 9007199254740991.`},
		{"trackUsage", `{"id":"e","identity":"u","feature":"f","quantity":-1e30}`, `quantity must be at least 1.`},
		{"createFeature", `{"key":"a","name":"A","unit":"b","creditKey":"c","costNanocredits":"1","pricingMode":"free"}`, `pricingMode must be one of fixed, callback.`},
		{"updatePlan", `{"featureLimits":[{"featureKey":"a","limit":1},{"featureKey":"a","limit":-1}]}`, `featureLimits[1].limit must be at least 0.`},
		{"updatePlan", `{"featureLimits":[{"featureKey":"a"}]}`, `featureLimits[0].limit is required.`},
		{"updatePlan", `{"featureLimits":[{"featurekey":"a","limit":1}]}`, `featureLimits[0] has an unknown field "featurekey"; did you mean "featureKey"?`},
		{"updatePlan", `{"featureLimits":{}}`, `featureLimits must be an array.`},
		{"updatePlan", `{"creditGrants":` + repeated(101, `{}`) + `}`, `creditGrants must have at most 100 items.`},
		{"updatePlan", `{"active":"yes"}`, `active must be true or false.`},
		{"setBillingPeriod", `{"billingPeriod":null}`, `billingPeriod must be an object.`},
		{"createBillingPortal", `{"identity":"u","returnUrl":"x"}`, `returnUrl must be a whole http or https address, such as "https://example.com/thanks".`},
	} {
		if _, err := doc.named(t, c.op).validateBody(nil, []byte(c.body)); !says(err, c.message) {
			t.Errorf("%s %.80s:\n got %v\nwant %s", c.op, c.body, err, c.message)
		}
	}
}

func TestReadBodyEdges(t *testing.T) {
	doc := loaded(t)
	t.Run("accepts a patch with only expectedRevision", func(t *testing.T) {
		for _, id := range []string{"updateCredit", "updateFeature", "updatePlan"} {
			if _, err := doc.named(t, id).validateBody(nil, []byte(`{"expectedRevision":3}`)); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
	t.Run("accepts an empty patch of a plan alone", func(t *testing.T) {
		for id, want := range map[string]bool{"updateCredit": false, "updateFeature": false, "updatePlan": true} {
			if _, err := doc.named(t, id).validateBody(nil, []byte(`{}`)); (err == nil) != want {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
	t.Run("refuses what no operation accepts", func(t *testing.T) {
		for name, bad := range badBodies {
			if _, err := doc.named(t, "updatePlan").validateBody(nil, []byte(bad.body)); !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("says the same thing each time", func(t *testing.T) {
		body := []byte(`{"z":1,"y":1,"x":1,"w":1}`)
		for range 50 {
			if _, err := doc.named(t, "createCredit").validateBody(nil, body); !says(err, `The body has an unknown field "w".`) {
				t.Fatal(err)
			}
		}
	})
	t.Run("repeats little of what it was sent", func(t *testing.T) {
		body := `{"` + strings.Repeat("é", 4000) + `":1}`
		_, err := doc.named(t, "createCredit").validateBody(nil, []byte(body))
		if err == nil || utf8.RuneCountInString(err.Error()) > 120 {
			t.Error(err)
		}
	})
}

// TestNoHandlerReadsAFlaw: what can't be read refuses its item, whichever field it is in.
func TestNoHandlerReadsAFlaw(t *testing.T) {
	op := loaded(t).named(t, "trackBatch")
	for _, p := range op.items.properties {
		for _, bad := range []string{`"\u0000"`, `"a\udc00"`, `1,"` + p.name + `":1`, `{"a":"b","a":"b"}`, `["\u0000"]`} {
			in, err := op.validateBody(nil, []byte(`{"events":[{"`+p.name+`":`+bad+`}]}`))
			if err != nil {
				t.Errorf("%s %s: the batch is refused: %v", p.name, bad, err)
				continue
			}
			value := in.Objects("events")[0][p.name]
			if v := p.schema.check(value); v == nil || !strings.HasPrefix(v.under(p.name).path, p.name) {
				t.Errorf("%s %s is accepted as %v", p.name, bad, value)
			}
		}
	}
	for _, body := range []string{`{"events":[{}],"events":[{}]}`, `{"events":["\u0000"]}`, `{"events":"\ud800"}`, `{"events":[{}],"\u0000":1}`, `"\u0000"`} {
		if _, err := op.validateBody(nil, []byte(body)); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestReadBodyDefaults(t *testing.T) {
	doc := loaded(t)
	read := func(id, body string) input {
		t.Helper()
		in, err := doc.named(t, id).validateBody(nil, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	feature := read("createFeature", `{"key":"a","name":"A","unit":"b","creditKey":"c","costNanocredits":"9999999999999999999"}`)
	if feature.Int("quantityPerUnit") != 1 || feature.Text("pricingMode") != "fixed" || feature.Text("deduplicationPeriod") != "none" {
		t.Errorf("a feature without options is %v", feature)
	}
	if feature.Amount("costNanocredits").String() != "9999999999999999999" {
		t.Errorf("19 nines became %s", feature.Amount("costNanocredits"))
	}
	plan := read("createPlan", `{"key":"a","name":"A","amountCents":0,"currency":"eur","interval":"year","featureLimits":[{"featureKey":"f","limit":2},{"featureKey":"g","limit":3,"overage":"credits"}]}`)
	limits := plan.Objects("featureLimits")
	if !plan.Bool("active") || !plan.Bool("topupsEnabled") || len(plan.Objects("creditGrants")) != 0 || !plan.Has("featureMultipliers") ||
		limits[0].Text("period") != "month" || limits[0].Text("overage") != "block" || limits[1].Text("overage") != "credits" {
		t.Errorf("a plan without options is %v", plan)
	}
	if plan = read("createPlan", `{"key":"a","name":"A","amountCents":0,"currency":"eur","interval":"year","featureLimits":[],"active":false}`); plan.Bool("active") {
		t.Error("a default replaced what was given")
	}
	patch := read("updatePlan", `{"featureLimits":[{"featureKey":"f","limit":2}]}`)
	if len(patch) != 1 || patch.Objects("featureLimits")[0].Text("period") != "month" {
		t.Errorf("a patch has defaults where nothing was given: %v", patch)
	}
	if patch = read("updateFeature", `{"name":"B"}`); len(patch) != 1 {
		t.Errorf("a patch has defaults where nothing was given: %v", patch)
	}
	event := read("trackUsage", `{"id":"e","identity":"u","feature":"f"}`)
	if event.Int("quantity") != 1 || event.Has("amountNanocredits") || event.Has("occurredAt") || event.Has("entityId") {
		t.Errorf("an event without options is %v", event)
	}
	if event = read("trackUsage", `{"id":"e","identity":"u","feature":"f","quantity":1e3,"occurredAt":9007199254740991}`); event.Int("quantity") != 1000 || event.Int("occurredAt") != safe {
		t.Errorf("the event is %v", event)
	}
}

func TestReadQuery(t *testing.T) {
	doc := loaded(t)
	for _, c := range []struct{ op, query, message string }{
		{"listCredits", ``, ``},
		{"listCredits", `limit=1`, ``},
		{"listCredits", `limit=100&cursor=x`, ``},
		{"listCredits", `&&limit=%31%30&`, ``},
		{"listCredits", `cursor=` + strings.Repeat("x", 4096), ``},
		{"listCredits", `cursor=` + strings.Repeat("%F0%9F%98%80", 4096), ``},
		{"listWallets", `limit=25`, ``},
		{"listDeposits", `identity=a%2Fb+c%F0%9F%98%80&creditKey=tokens&limit=7`, ``},
		{"listDeposits", `identity=%25`, ``},
		{"listCredits", `limit=0`, `limit must be at least 1.`},
		{"listCredits", `limit=101`, `limit must be at most 100.`},
		{"listWallets", `limit=26`, `limit must be at most 25.`},
		{"listCredits", `limit=-1`, `limit must be at least 1.`},
		{"listCredits", `limit=99999999999999999999`, `limit must be at most 100.`},
		{"listCredits", `limit=`, `limit must be a whole number.`},
		{"listCredits", `limit`, `limit must be a whole number.`},
		{"listCredits", `limit=010`, `limit must be a whole number.`},
		{"listCredits", `limit=%2B5`, `limit must be a whole number.`},
		{"listCredits", `limit=+5`, `limit must be a whole number.`},
		{"listCredits", `limit=5%20`, `limit must be a whole number.`},
		{"listCredits", `limit=5.0`, `limit must be a whole number.`},
		{"listCredits", `limit=1e1`, `limit must be a whole number.`},
		{"listCredits", `limit=-0`, `limit must be a whole number.`},
		{"listCredits", `limit=-`, `limit must be a whole number.`},
		{"listCredits", `limit=%D9%A3`, `limit must be a whole number.`},
		{"listCredits", `limit=5&limit=5`, `limit appears twice.`},
		{"listCredits", `cursor=`, `cursor must not be empty.`},
		{"listCredits", `cursor=` + strings.Repeat("x", 4097), `cursor must be at most 4096 characters.`},
		{"listCredits", `cursor=%00`, `cursor must not contain the character NUL.`},
		{"listCredits", `cursor=%FF`, `cursor must be valid UTF-8.`},
		{"listCredits", `cursor=%ED%A0%80`, `cursor must be valid UTF-8.`},
		{"listCredits", `cursor=%zz`, `The query is malformed. Percent-encode its names and values.`},
		{"listCredits", `limit=1;cursor=x`, `The query is malformed. Percent-encode its names and values.`},
		{"listCredits", `Limit=5`, `The query has an unknown parameter "Limit"; did you mean "limit"?`},
		{"listCredits", `limt=5`, `The query has an unknown parameter "limt"; did you mean "limit"?`},
		{"listCredits", `appId=app_1`, `The query has an unknown parameter "appId".`},
		{"listCredits", `=5`, `The query has an unknown parameter "".`},
		{"listCredits", `%FF%00=5`, "The query has an unknown parameter \"\ufffd\ufffd\"."},
		{"getApplication", `x=1`, `The query has an unknown parameter "x".`},
		{"createWallet", `identity=u`, `The query has an unknown parameter "identity".`},
		{"listDeposits", ``, `identity is required.`},
		{"listDeposits", `identity=`, `identity must not be empty.`},
		{"listDeposits", `identity=` + strings.Repeat("x", 200), ``},
		{"listDeposits", `identity=` + strings.Repeat("x", 201), `identity must be at most 200 characters.`},
		{"listDeposits", `identity=u&creditKey=A`, `creditKey must be made of lower-case letters, digits, '-' and '_', and start with a letter or a digit.`},
	} {
		in, err := doc.named(t, c.op).readQuery(c.query)
		if c.message != "" && !says(err, c.message) {
			t.Errorf("%s?%.60s:\n got %v\nwant %s", c.op, c.query, err, c.message)
		}
		if c.message == "" && (err != nil || in.Int("limit") < 1) {
			t.Errorf("%s?%.60s: %v, %v", c.op, c.query, in, err)
		}
	}
	in, err := doc.named(t, "listDeposits").readQuery(`identity=a%2Fb+c`)
	if err != nil || in.Text("identity") != "a/b c" || in.Int("limit") != 10 || in.Has("cursor") || in.Has("creditKey") {
		t.Errorf("got %v, %v", in, err)
	}
}

func TestCheckPath(t *testing.T) {
	doc := loaded(t)
	for _, c := range []struct{ op, name, value, message string }{
		{"getCredit", "key", "a_b-9", ""},
		{"getCredit", "key", strings.Repeat("a", 80), ""},
		{"getCredit", "key", strings.Repeat("a", 81), "key must be at most 80 characters."},
		{"getCredit", "key", "", "key must not be empty."},
		{"getCredit", "key", "A", "key must be made of lower-case letters, digits, '-' and '_', and start with a letter or a digit."},
		{"getCredit", "key", "a\x00", "key must not contain the character NUL."},
		{"getWallet", "identity", "a/b", ""},
		{"getWallet", "identity", "..", ""},
		{"getWallet", "identity", "%2F %", ""},
		{"getWallet", "identity", strings.Repeat("😀", 200), ""},
		{"getWallet", "identity", strings.Repeat("😀", 201), "identity must be at most 200 characters."},
		{"getWallet", "identity", "\xff", "identity must be valid UTF-8."},
		{"getWallet", "identity", "\x00", "identity must not contain the character NUL."},
	} {
		err := doc.named(t, c.op).checkPath(map[string]string{c.name: c.value})
		if c.message == "" && err != nil || c.message != "" && !says(err, c.message) {
			t.Errorf("%s %.20q: got %v, want %q", c.op, c.value, err, c.message)
		}
	}
	if err := doc.named(t, "getCredit").checkPath(nil); !says(err, "key is required.") {
		t.Errorf("a path without its parameter: %v", err)
	}
	if err := doc.named(t, "getCredit").checkPath(map[string]string{"name": "a"}); err == nil || fault.Is(err, fault.InvalidRequest) {
		t.Errorf("a route that the document does not know is a bug, not a refusal: %v", err)
	}
}

// FuzzReadQuery: what is accepted holds to the document, and says the same again
// when it is written again.
func FuzzReadQuery(f *testing.F) {
	for _, seed := range []string{
		``, `limit=0`, `limit=100`, `limit=5&limit=5`, `limit=01`, `limit=1e999999`, `limit=%2B5`, `cursor=%00`, `identity=%FF`, `identity=a%2Fb&cursor=x`,
		`identity=u&appId=app_1`, `identity=%ED%A0%80`, `a;b`, `%`, `=`, `identity=` + strings.Repeat("%F0%9F%98%80", 201), `limit=9999999999999999999&identity=u`,
	} {
		f.Add(seed)
	}
	op := loaded(f).named(f, "listDeposits")
	f.Fuzz(func(t *testing.T, raw string) {
		in, err := op.readQuery(raw)
		if err != nil {
			if !fault.Is(err, fault.InvalidRequest) || utf8.RuneCountInString(err.Error()) > 250 || !utf8.ValidString(err.Error()) {
				t.Fatalf("%q is refused with %q", raw, err)
			}
			return
		}
		identity := in.Text("identity")
		if n := utf8.RuneCountInString(identity); n < 1 || n > 200 || !utf8.ValidString(identity) || strings.Contains(identity, "\x00") {
			t.Fatalf("the identity %q is accepted", identity)
		}
		if limit := in.Int("limit"); limit < 1 || limit > 100 {
			t.Fatalf("the limit %d is accepted", limit)
		}
		again := url.Values{}
		for name, value := range in {
			again.Set(name, fmt.Sprint(value))
		}
		if second, err := op.readQuery(again.Encode()); err != nil || fmt.Sprint(second) != fmt.Sprint(in) {
			t.Fatalf("%v became %v, %v", in, second, err)
		}
	})
}
