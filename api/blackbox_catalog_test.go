package api_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
)

// noVersion has the form of a version and is none.
const noVersion = "00000000000000000000000000000000"

// catalogOf is a catalog of credits only.
func catalogOf(credits ...fields) fields {
	return fields{"credits": append([]fields{}, credits...), "features": []fields{}, "plans": []fields{}}
}

var catalogRule = rule{
	good: []string{`{"credits":[],"features":[],"plans":[]}`, `{"credits":[{"key":"gold","name":"Gold","unit":"coin"}],"features":[],"plans":[]}`},
	bad: []string{`null`, `[]`, `{}`, `"a"`, `{"credits":[],"features":[]}`, `{"credits":null,"features":[],"plans":[]}`, `{"credits":[1],"features":[],"plans":[]}`,
		`{"credits":[{"key":"A","name":"Gold","unit":"coin"}],"features":[],"plans":[]}`, `{"credits":[],"features":[],"plans":[],"stranger":1}`,
		`{"credits":[{"key":"a","name":"A","unit":"a"},{"key":"a","name":"A","unit":"a"}],"features":[],"plans":[]}`},
}

var catalogOperations = []bodied{
	{
		id: "previewCatalog", method: "POST", target: "/v1/catalog/preview", required: []string{"catalog"},
		sample: func() fields { return fields{"catalog": catalogOf()} },
		rules:  map[string]rule{"catalog": catalogRule, "archiveMissing": booleanRule},
	},
	{
		id: "applyCatalog", method: "POST", target: "/v1/catalog/apply", required: []string{"catalog", "expectedVersion"},
		sample: func() fields { return fields{"catalog": catalogOf(), "expectedVersion": noVersion} },
		rules: map[string]rule{
			// Two items of one key are refused once the version is the expected one.
			"catalog": {good: catalogRule.good, bad: catalogRule.bad[:len(catalogRule.bad)-1]}, "archiveMissing": booleanRule,
			"expectedVersion": {good: []string{quoted(noVersion)}, bad: append([]string{quoted(""), quoted(noVersion[1:]), quoted(noVersion + "0"), quoted(strings.Repeat("A", 32))}, noText...)},
		},
	},
}

// shop is a catalog with one of each kind.
func shop(cost string) fields {
	return fields{
		"credits":  []fields{{"key": "gold", "name": "Gold", "unit": "coin"}},
		"features": []fields{{"key": "chat", "name": "Chat", "unit": "token", "creditKey": "gold", "costNanocredits": cost}},
		"plans": []fields{{"key": "pro", "name": "Pro", "amountCents": 2900, "currency": "eur", "interval": "month",
			"featureLimits": []fields{}, "creditGrants": []fields{{"creditKey": "gold", "amountNanocredits": "5"}}}},
	}
}

// actions are what a comparison says of each item, such as "feature chat update".
func (a answer) actions() (list []string) {
	a.t.Helper()
	for _, change := range a.is(200).object()["changes"].([]any) {
		c := change.(fields)
		list = append(list, c["kind"].(string)+" "+c["key"].(string)+" "+c["action"].(string))
	}
	return list
}

func (tn *tenant) applies(catalog fields, more fields) answer {
	tn.t.Helper()
	return tn.post("/v1/catalog/apply", merged(fields{"catalog": catalog, "expectedVersion": tn.get("/v1/catalog").is(200).text("version")}, more))
}

func TestCatalogOfOneApplicationAppliesToAnother(t *testing.T) {
	t.Parallel()
	from, to := newTenant(t), newTenant(t)
	from.credit("gold")
	from.feature("chat", "gold", fields{"quantityPerUnit": 1000, "deduplicationPeriod": "day"})
	from.feature("quoted", "gold", fields{"pricingMode": "callback"})
	from.plan("pro", fields{
		"featureLimits": []fields{{"featureKey": "chat", "limit": 7, "period": "billing", "overage": "credits"}}, "creditGrants": []fields{{"creditKey": "gold", "amountNanocredits": "5"}},
		"featureMultipliers": []fields{{"featureKey": "chat", "basisPoints": 5000}}, "topupsEnabled": false,
	})
	source := from.get("/v1/catalog").is(200).object()["catalog"].(fields)

	preview := to.post("/v1/catalog/preview", fields{"catalog": source})
	want := "credit gold create, feature chat create, feature quoted create, plan pro create"
	if got := strings.Join(preview.actions(), ", "); got != want {
		t.Fatalf("the preview is %s, want %s", got, want)
	}
	to.get("/v1/credits").is(200).shows(fields{"data": []any{}})
	applied := to.post("/v1/catalog/apply", fields{"catalog": source, "expectedVersion": preview.text("version")}).is(200)
	stored := to.get("/v1/catalog").is(200)
	if stored.text("version") != applied.text("version") {
		t.Errorf("the version is %s, applied was %s", stored.text("version"), applied.text("version"))
	}
	stored.shows(fields{"catalog": source})
	for _, change := range to.applies(source, nil).actions() {
		if !strings.HasSuffix(change, " none") {
			t.Errorf("applied again: %s", change)
		}
	}
	if stored := to.get("/v1/catalog").is(200); stored.text("version") != applied.text("version") {
		t.Error("applying the same catalog changed the version")
	}
	// The plan works as one that was created by itself: it syncs and can be bought.
	to.settle()
	to.get("/v1/plans/pro").is(200).shows(fields{"syncStatus": "synced", "revision": 1})
	to.deposit(newHolder(), "gold", "1")
}

func TestCatalogIsAppliedWhollyOrNotAtAll(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.applies(shop("1000"), nil).is(200)
	before := tn.get("/v1/catalog").is(200)

	t.Run("a stale version applies nothing", func(t *testing.T) {
		tn.post("/v1/catalog/apply", fields{"catalog": shop("2000"), "expectedVersion": noVersion}).refused("catalog_changed")
	})
	locked := newTenant(t)
	locked.applies(shop("1000"), nil).is(200)
	locked.patch("/v1/plans/pro", fields{"featureLimits": []fields{{"featureKey": "chat", "limit": 1}}}).is(200)
	kept := locked.get("/v1/catalog").is(200)
	more := shop("2000")
	more["credits"] = append(more["credits"].([]fields), fields{"key": "silver", "name": "Silver", "unit": "coin"})
	t.Run("a locked price blocks everything, and is named", func(t *testing.T) {
		preview := locked.post("/v1/catalog/preview", fields{"catalog": more})
		if got := strings.Join(preview.actions(), ", "); got != "credit gold none, credit silver create, feature chat blocked, plan pro update" {
			t.Errorf("the preview is %s", got)
		}
		if refusal := locked.applies(more, nil).refused("feature_pricing_locked"); !strings.Contains(string(refusal.body), "chat") {
			t.Errorf("the refusal does not name the feature: %s", refusal.body)
		}
		locked.get("/v1/catalog").is(200).has(kept.object())
	})
	t.Run("an unknown reference blocks everything", func(t *testing.T) {
		unknown := shop("1000")
		unknown["features"].([]fields)[0]["creditKey"] = "nope"
		tn.applies(unknown, nil).refused("credit_not_found")
	})
	t.Run("a key that is listed twice is invalid", func(t *testing.T) {
		twice := catalogOf(fields{"key": "gold", "name": "A", "unit": "a"}, fields{"key": "gold", "name": "B", "unit": "b"})
		tn.applies(twice, nil).refused("invalid_request")
		tn.post("/v1/catalog/preview", fields{"catalog": twice}).refused("invalid_request")
	})
	tn.get("/v1/catalog").is(200).has(before.object())
	t.Run("plans that are missing stay, unless they are to be archived", func(t *testing.T) {
		none := shop("1000")
		none["plans"] = []fields{}
		tn.applies(none, nil).is(200)
		tn.get("/v1/plans/pro").is(200).shows(fields{"active": true})
		tn.applies(none, fields{"archiveMissing": true}).is(200)
		tn.get("/v1/plans/pro").is(200).shows(fields{"active": false, "revision": 2})
	})
}

// TestConcurrentCatalogsNeverMix: of two applies of one version one wins, and no usage is
// priced by half of a catalog.
func TestConcurrentCatalogsNeverMix(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	pair := func(cost string) fields {
		catalog := shop(cost)
		catalog["features"] = append(catalog["features"].([]fields), fields{"key": "image", "name": "Image", "unit": "image", "creditKey": "gold", "costNanocredits": cost})
		return catalog
	}
	tn.applies(pair("1"), nil).is(200)
	holder := newHolder()
	tn.deposit(holder, "gold", "1000000000")
	var group sync.WaitGroup
	version := tn.get("/v1/catalog").is(200).text("version")
	won := make([]int, 4)
	for i := range won {
		group.Go(func() {
			won[i] = tn.post("/v1/catalog/apply", fields{"catalog": pair(strconv.Itoa(i + 2)), "expectedVersion": version}).status
		})
	}
	for range 20 {
		got := tn.post("/v1/events/group", fields{"identity": holder, "events": []fields{
			{"id": newName(), "feature": "chat"}, {"id": newName(), "feature": "image"},
		}}).is(201).object()
		results := got["results"].([]any)
		a, b := results[0].(fields)["amountNanocredits"], results[1].(fields)["amountNanocredits"]
		if a != b {
			t.Errorf("one group was charged %v and %v", a, b)
		}
	}
	group.Wait()
	wins := 0
	for _, status := range won {
		switch status {
		case 200:
			wins++
		case 409:
		default:
			t.Errorf("an apply ended with %d", status)
		}
	}
	if wins != 1 {
		t.Errorf("%d of %d applies won: %v", wins, len(won), won)
	}
}
