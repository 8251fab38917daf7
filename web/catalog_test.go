package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/tenancy"
)

// hostile is a name that would run if a page let it.
const hostile = `<script>alert("1")</script>'" & <b>`

func (r *harness) credit(t *testing.T, key string) metering.Credit {
	t.Helper()
	credit, err := r.db.App(r.app.Scope()).Credit(t.Context(), key)
	noError(t, err)
	return credit
}

func (r *harness) newCredit(t *testing.T, key string) {
	t.Helper()
	noError(t, r.db.App(r.app.Scope()).CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: key, Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: r.site.Now()}))
}

func (r *harness) feature(t *testing.T, key string) metering.Feature {
	t.Helper()
	feature, err := r.db.App(r.app.Scope()).Feature(t.Context(), key)
	noError(t, err)
	return feature
}

// newFeature is one that costs a quarter of a credit.
func (r *harness) newFeature(t *testing.T, key, creditKey string) metering.Feature {
	t.Helper()
	feature, err := r.db.App(r.app.Scope()).CreateFeature(t.Context(), metering.Feature{
		ID: ids.New(), Key: key, Name: "Messages", Unit: "message", CreditKey: creditKey, Cost: metering.PerCredit / 4, QuantityPerUnit: 1,
		PricingMode: metering.Fixed, Deduplication: metering.DeduplicateNone, Revision: 1, CreatedAt: r.site.Now(),
	})
	noError(t, err)
	return feature
}

func wantTexts(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("%q is missing", text)
		}
	}
}

func TestCreditPages(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Developer)

	t.Run("make a credit and list it, with its name as text", func(t *testing.T) {
		reply := b.post(t, r.appPath("credits", "new"), url.Values{"key": {"tokens"}, "name": {hostile}, "unit": {"token"}})
		if reply.status != http.StatusSeeOther || reply.location != r.appPath("credits") {
			t.Fatalf("status %d, to %s", reply.status, reply.location)
		}
		list := b.get(t, r.appPath("credits")).body
		wantTexts(t, list, "&lt;script&gt;alert(", "Credit tokens created.")
		if strings.Contains(list, "<script>alert") {
			t.Error("the name is markup")
		}
		if action, target, _ := r.lastAction(t); action != "credit.create" || target != "tokens" {
			t.Errorf("the log says %s of %s", action, target)
		}
	})

	t.Run("say what is wrong at its field, and keep what was typed", func(t *testing.T) {
		reply := b.post(t, r.appPath("credits", "new"), url.Values{"key": {"Tokens!"}, "name": {" "}, "unit": {strings.Repeat("u", 41)}})
		if reply.status != http.StatusUnprocessableEntity {
			t.Errorf("status %d", reply.status)
		}
		wantTexts(t, reply.body, `value="Tokens!"`, "Use 1 to 80 characters", "Enter a name.", "must be 40 characters or fewer",
			`href="#field-key"`, `aria-describedby="field-key-hint field-key-error"`)
	})

	t.Run("say that a key is taken", func(t *testing.T) {
		reply := b.post(t, r.appPath("credits", "new"), url.Values{"key": {"tokens"}, "name": {"Again"}, "unit": {"token"}})
		if reply.status != http.StatusUnprocessableEntity {
			t.Errorf("status %d", reply.status)
		}
		wantTexts(t, reply.body, "A credit with the key", `href="#field-key"`)
	})

	t.Run("reach a credit whose key is new", func(t *testing.T) {
		r.newCredit(t, "new")
		if reply := b.get(t, r.appPath("credits", "new", "edit")); reply.status != http.StatusOK || !strings.Contains(reply.body, "Can&#39;t be changed.") {
			t.Errorf("status %d", reply.status)
		}
	})

	t.Run("show who may only look a form that cannot be sent", func(t *testing.T) {
		support := r.join(t, tenancy.Support)
		reply := support.get(t, r.appPath("credits", "tokens", "edit"))
		if reply.status != http.StatusOK || !strings.Contains(reply.body, "fieldset class=\"form-part\" disabled") {
			t.Errorf("status %d", reply.status)
		}
		if reply := support.post(t, r.appPath("credits", "tokens", "edit"), url.Values{"name": {"A"}, "unit": {"b"}, "revision": {"1"}}); reply.status != http.StatusForbidden {
			t.Errorf("status %d", reply.status)
		}
		if strings.Contains(support.get(t, r.appPath("credits")).body, r.appPath("credits", "new")+`"`) {
			t.Error("the list offers to make one")
		}
	})

	t.Run("answer an address that is none with the page for that", func(t *testing.T) {
		for _, path := range []string{"credits/none/edit", "credits/%00/edit", "credits/%FF/edit", "credits?before=x", "features/%00/edit", "plans/%00/edit", "keys/%00", "keys/key_%00"} {
			if reply := b.get(t, r.appPath()+"/"+path); reply.status != http.StatusNotFound {
				t.Errorf("%s: status %d", path, reply.status)
			}
		}
	})
}

func TestTwoTabsEditOneCredit(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Developer)
	r.newCredit(t, "tokens")
	path := r.appPath("credits", "tokens", "edit")
	first := b.post(t, path, url.Values{"name": {"From the first"}, "unit": {"token"}, "revision": {"1"}})
	if first.status != http.StatusSeeOther {
		t.Fatalf("status %d", first.status)
	}
	second := b.post(t, path, url.Values{"name": {"From the second"}, "unit": {"token"}, "revision": {"1"}})

	t.Run("the second is shown both versions, and nothing is saved", func(t *testing.T) {
		if second.status != http.StatusConflict || r.credit(t, "tokens").Name != "From the first" {
			t.Errorf("status %d, it is called %q", second.status, r.credit(t, "tokens").Name)
		}
		wantTexts(t, second.body, "This changed while you were editing", "<bdi>From the first</bdi>", "<bdi>From the second</bdi>", `value="From the second"`)
	})

	t.Run("sending it once more replaces the stored one", func(t *testing.T) {
		revision := regexp.MustCompile(`name="revision" value="(\d+)"`).FindStringSubmatch(second.body)
		if revision == nil || revision[1] != "2" {
			t.Fatalf("the form is of revision %v", revision)
		}
		reply := b.post(t, path, url.Values{"name": {"From the second"}, "unit": {"token"}, "revision": {revision[1]}})
		if got := r.credit(t, "tokens"); reply.status != http.StatusSeeOther || got.Name != "From the second" || got.Revision != 3 {
			t.Errorf("status %d, it is %+v", reply.status, got)
		}
	})

	t.Run("a form without a revision is not taken", func(t *testing.T) {
		for _, revision := range []string{"", "0", "-1", "x"} {
			if reply := b.post(t, path, url.Values{"name": {"A"}, "unit": {"b"}, "revision": {revision}}); reply.status != http.StatusUnprocessableEntity {
				t.Errorf("%q: status %d", revision, reply.status)
			}
		}
		if r.credit(t, "tokens").Revision != 3 {
			t.Error("it was changed")
		}
	})
}

func featureFields(change url.Values) url.Values {
	fields := url.Values{
		"key": {"messages"}, "name": {"Messages"}, "unit": {"message"}, "credit": {"tokens"}, "cost": {"0.25"}, "quantity": {"1000"},
		"pricing_mode": {"fixed"}, "deduplication": {"none"},
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

func TestFeaturePages(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Developer)
	r.newCredit(t, "tokens")

	t.Run("read decimal credits exactly", func(t *testing.T) {
		for key, c := range map[string]struct {
			cost string
			want metering.Amount
		}{"least": {"0.000000001", 1}, "most": {"9999999999.999999999", metering.MaxAmount}, "third": {"0.1", 100_000_000}} {
			reply := b.post(t, r.appPath("features", "new"), featureFields(url.Values{"key": {key}, "cost": {c.cost}}))
			if reply.status != http.StatusSeeOther {
				t.Fatalf("%s: status %d", c.cost, reply.status)
			}
			if got := r.feature(t, key); got.Cost != c.want || got.QuantityPerUnit != 1000 || got.CreditKey != "tokens" {
				t.Errorf("%s: it is %+v", c.cost, got)
			}
			if body := b.get(t, r.appPath("features", key, "edit")).body; !strings.Contains(body, `value="`+c.cost+`"`) {
				t.Errorf("%s does not come back as it was written", c.cost)
			}
		}
	})

	t.Run("refuse what is no exact amount, count or choice", func(t *testing.T) {
		for name, change := range map[string]url.Values{
			"ten decimals":   {"cost": {"0.0000000001"}},
			"a comma":        {"cost": {"0,25"}},
			"an exponent":    {"cost": {"1e3"}},
			"a minus":        {"cost": {"-1"}},
			"no cost":        {"cost": {""}},
			"no quantity":    {"quantity": {"0"}},
			"half of one":    {"quantity": {"1.5"}},
			"past 2^53":      {"quantity": {strconv.FormatInt(metering.MaxQuantity+1, 10)}},
			"another mode":   {"pricing_mode": {"free"}},
			"another period": {"deduplication": {"year"}},
			"no credit":      {"credit": {"none"}},
		} {
			reply := b.post(t, r.appPath("features", "new"), featureFields(change))
			if reply.status != http.StatusUnprocessableEntity || !strings.Contains(reply.body, `class="problems"`) {
				t.Errorf("%s: status %d", name, reply.status)
			}
		}
		if reply := b.get(t, r.appPath("features", "messages", "edit")); reply.status != http.StatusNotFound {
			t.Error("one of them was made")
		}
	})

	t.Run("need no cost where each event brings its amount", func(t *testing.T) {
		reply := b.post(t, r.appPath("features", "new"), featureFields(url.Values{"key": {"agent"}, "pricing_mode": {"callback"}, "cost": {""}}))
		if reply.status != http.StatusSeeOther {
			t.Fatalf("status %d", reply.status)
		}
		if got := r.feature(t, "agent"); got.Cost != 0 || got.PricingMode != metering.Callback {
			t.Errorf("it is %+v", got)
		}
		body := b.get(t, r.appPath("features", "agent", "edit")).body
		if control := regexp.MustCompile(`<input[^>]* name="cost"[^>]*>`).FindString(body); control == "" || strings.Contains(control, " required") {
			t.Errorf("the browser is told %q", control)
		}
	})

	t.Run("disable what is locked, and say why", func(t *testing.T) {
		r.newFeature(t, "limited", "tokens")
		r.newPlan(t, "pro", "limited")
		body := b.get(t, r.appPath("features", "limited", "edit")).body
		wantTexts(t, body, "a plan or subscription uses this feature")
		for _, field := range []string{"cost", "credit", "quantity"} {
			if control := regexp.MustCompile(`<(?:input|select)[^>]* name="` + field + `"[^>]*>`).FindString(body); !strings.Contains(control, " disabled") {
				t.Errorf("%s is %q", field, control)
			}
		}
		// What a browser sends then: nothing of the locked fields.
		reply := b.post(t, r.appPath("features", "limited", "edit"), url.Values{
			"name": {"Renamed"}, "unit": {"message"}, "deduplication": {"day"}, "revision": {"1"},
		})
		if got := r.feature(t, "limited"); reply.status != http.StatusSeeOther || got.Name != "Renamed" || got.Cost != metering.PerCredit/4 {
			t.Errorf("status %d, it is %+v", reply.status, got)
		}
	})

	t.Run("refuse a forged change of what is locked", func(t *testing.T) {
		reply := b.post(t, r.appPath("features", "limited", "edit"), featureFields(url.Values{"revision": {"2"}, "cost": {"1"}}))
		if got := r.feature(t, "limited"); reply.status != http.StatusUnprocessableEntity || got.Cost != metering.PerCredit/4 || got.Revision != 2 {
			t.Errorf("status %d, it is %+v", reply.status, got)
		}
		wantTexts(t, reply.body, "its credit, cost, quantity per unit and pricing mode can", `value="0.25"`)
	})

	t.Run("compare two tabs", func(t *testing.T) {
		r.newFeature(t, "shared", "tokens")
		path := r.appPath("features", "shared", "edit")
		if reply := b.post(t, path, featureFields(url.Values{"revision": {"1"}, "cost": {"1"}})); reply.status != http.StatusSeeOther {
			t.Fatalf("status %d", reply.status)
		}
		reply := b.post(t, path, featureFields(url.Values{"revision": {"1"}, "cost": {"2"}}))
		if reply.status != http.StatusConflict || r.feature(t, "shared").Cost != metering.PerCredit {
			t.Errorf("status %d", reply.status)
		}
		wantTexts(t, reply.body, "<bdi>2</bdi>", "<bdi>1</bdi>", `name="revision" value="2"`, "<bdi>Fixed</bdi>", "<bdi>Every event</bdi>")
	})
}

// Names that only the API can store survive a form, and can be edited in it.
func TestNamesFromTheAPISurviveTheForm(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Developer)
	const odd = " line\none\r\n\x07 "
	noError(t, r.db.App(r.app.Scope()).CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "odd", Name: odd, Unit: " ", Revision: 1, CreatedAt: r.site.Now()}))
	path := r.appPath("credits", "odd", "edit")
	// A browser leaves line breaks out of the field.
	shown := url.Values{"name": {" lineone\x07 "}, "unit": {" "}, "revision": {"1"}}
	if reply := b.post(t, path, shown); reply.status != http.StatusSeeOther {
		t.Fatalf("status %d", reply.status)
	}
	if got := r.credit(t, "odd"); got.Name != odd || got.Unit != " " || got.Revision != 1 {
		t.Errorf("saved without a change, it is %+v", got)
	}
	shown.Set("unit", " coin ")
	if reply := b.post(t, path, shown); reply.status != http.StatusSeeOther {
		t.Fatalf("status %d", reply.status)
	}
	if got := r.credit(t, "odd"); got.Name != odd || got.Unit != "coin" || got.Revision != 2 {
		t.Errorf("with another unit, it is %+v", got)
	}
}
