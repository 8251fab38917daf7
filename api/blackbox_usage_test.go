package api_test

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"purser/api"
	"purser/ids"
	"purser/store/rollups"
	"purser/store/storetest"
	"purser/tenancy"
)

// settleUsage adds up the usage of the application, as the server's job does.
func (tn *tenant) settleUsage() {
	tn.t.Helper()
	if _, err := tn.node.store.Rollups(tn.app.Scope()).RollUp(tn.t.Context(), rollups.Alone); err != nil {
		tn.t.Fatal(err)
	}
}

// aroundNow is a range of two days that has the present.
func aroundNow() string {
	now := time.Now()
	return fmt.Sprintf("from=%d&to=%d", now.Add(-24*time.Hour).UnixMilli(), now.Add(24*time.Hour).UnixMilli())
}

// A client may wait for settledUntil to pass the end of a period while there is no usage.
func TestReadingUsageHasItAddedUp(t *testing.T) {
	t.Parallel()
	tn := newTenantAt(t, newNode(t, api.Options{}, &clock{}), "Org "+ids.New().String(), false)
	called := make(chan tenancy.Scope, 100)
	tn.node.store.Stats().OnUsed(func(scope tenancy.Scope) { called <- scope })
	defer tn.node.store.Stats().KeepStats(slog.New(slog.DiscardHandler))()
	tn.get("/v1/usage?" + aroundNow()).is(200)
	select {
	case scope := <-called:
		if scope != tn.app.Scope() {
			t.Errorf("%v is added up", scope)
		}
	case <-time.After(3 * time.Minute):
		t.Error("nothing is added up")
	}
}

// usageLines are the rows of all pages, one line each, without times.
func (tn *tenant) usageLines(query string) (lines []string) {
	tn.t.Helper()
	for cursor := ""; ; {
		got := tn.get("/v1/usage?" + aroundDay + "&" + query + cursor).is(200).object()
		for _, item := range got["data"].([]any) {
			row := item.(fields)
			if fmt.Sprint(row["start"]) >= fmt.Sprint(row["end"]) || got["settledUntil"] == nil {
				tn.t.Errorf("%v of %v", row, got["settledUntil"])
			}
			lines = append(lines, fmt.Sprint(row["group"], " ", row["creditKey"], ": ", row["events"], " events, ", row["quantity"], " ", row["includedQuantity"], ", ", row["chargedNanocredits"]))
		}
		next, more := got["cursor"].(string)
		if !more {
			return lines
		}
		cursor = "&cursor=" + next
	}
}

var aroundDay = aroundNow()

func TestUsageIsGrouped(t *testing.T) {
	t.Parallel()
	storetest.AvoidEndOf(t, time.Hour)
	tn := newTenant(t)
	if got := tn.get("/v1/usage?" + aroundDay).is(200).object(); len(got["data"].([]any)) != 0 || got["settledUntil"] != nil || got["cursor"] != nil {
		t.Errorf("before any usage: %v", got)
	}
	tn.credit("gold")
	tn.credit("iron")
	tn.feature("chat", "gold", nil)
	tn.feature("image", "iron", nil)
	ann, bob := newHolder(), newHolder()
	for _, identity := range []string{ann, bob} {
		tn.deposit(identity, "gold", "1000000")
		tn.deposit(identity, "iron", "1000000")
	}
	cost := tn.get("/v1/features/chat").is(200).object()["costNanocredits"].(string)
	for i := range 3 {
		model := []string{"large", "small", "large"}[i]
		tn.post("/v1/events", fields{"id": newName(), "identity": ann, "feature": "chat", "quantity": i + 1, "entityId": "seat-1",
			"properties": fields{"model": model, "project": "atlas"}}).is(201)
	}
	tn.post("/v1/events", fields{"id": newName(), "identity": bob, "feature": "image", "quantity": 5}).is(201)
	tn.settleUsage()
	var one int64
	if _, err := fmt.Sscan(cost, &one); err != nil {
		t.Fatal(err)
	}
	chat, image := fmt.Sprint(6*one), fmt.Sprint(5*one)
	for query, want := range map[string][]string{
		"": {
			"map[] gold: 3 events, <nil> <nil>, " + chat,
			"map[] iron: 1 events, <nil> <nil>, " + image,
		},
		"groupBy=feature&limit=1&bucket=month": {
			"map[feature:chat] gold: 3 events, 6 0, " + chat,
			"map[feature:image] iron: 1 events, 5 0, " + image,
		},
		"feature=chat&bucket=hour&timezone=America/New_York": {"map[] gold: 3 events, 6 0, " + chat},
		"identity=" + url.QueryEscape(bob):                   {"map[] iron: 1 events, <nil> <nil>, " + image},
		"groupBy=identity&limit=1": {
			"map[identity:" + ann + "] gold: 3 events, <nil> <nil>, " + chat,
			"map[identity:" + bob + "] iron: 1 events, <nil> <nil>, " + image,
		},
		"groupBy=property:model&limit=1": {
			"map[properties:map[model:large]] gold: 2 events, <nil> <nil>, " + fmt.Sprint(4*one),
			"map[properties:map[model:small]] gold: 1 events, <nil> <nil>, " + fmt.Sprint(2*one),
		},
		"groupBy=feature,property:model&bucket=month&limit=1": {
			"map[feature:chat properties:map[model:large]] gold: 2 events, 4 0, " + fmt.Sprint(4*one),
			"map[feature:chat properties:map[model:small]] gold: 1 events, 2 0, " + fmt.Sprint(2*one),
		},
		"groupBy=entity":                         {"map[entityId:seat-1] gold: 3 events, <nil> <nil>, " + chat},
		"groupBy=entity&feature=image":           nil,
		"groupBy=property:unknown":               nil,
		"groupBy=feature,identity&feature=image": {"map[feature:image identity:" + bob + "] iron: 1 events, 5 0, " + image},
	} {
		if got := tn.usageLines(query); !sameLines(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", query, got, want)
		}
	}
	byKey := tn.usageLines("groupBy=feature,key&feature=chat")
	if len(byKey) != 1 || !strings.Contains(byKey[0], "keyId:key_") {
		t.Errorf("by key: %q", byKey)
	}
}

// sameLines compares without order: rows of one bucket are in the order of ids.
func sameLines(got, want []string) bool {
	seen := map[string]int{}
	for _, line := range got {
		seen[line]++
	}
	for _, line := range want {
		seen[line]--
	}
	for _, n := range seen {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestUsageRefuses(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	for query, message := range map[string]string{
		"from=1":                                           "to is required",
		"from=2&to=2":                                      "from must be before to",
		"from=0&to=2682000001&bucket=hour":                 "744 buckets",
		"from=0&to=2764800001&groupBy=identity":            "at most 31 buckets",
		"from=0&to=1&timezone=Mars":                        "timezone must be",
		"from=0&to=1&timezone=Local":                       "timezone must be",
		"from=0&to=1&timezone=Asia/Kolkata":                "whole number of hours",
		"from=0&to=1&identity=a&groupBy=key":               "can't be combined",
		"from=0&to=1&identity=a&groupBy=identity":          "can't be combined",
		"from=0&to=1&groupBy=identity,key":                 "groupBy",
		"from=0&to=1&groupBy=property:":                    "groupBy",
		"from=0&to=1&groupBy=entity,key":                   "groupBy",
		"from=0&to=1&identity=a&groupBy=entity":            "can't be combined",
		"from=0&to=1&bucket=hour&groupBy=entity":           "Choose days or months",
		"from=0&to=1&timezone=Asia/Tokyo&groupBy=entity":   "timezone UTC",
		"from=0&to=7948800001&groupBy=property:model":      "at most 92 days",
		"from=0&to=7948800000&groupBy=property:model":      "",
		"from=0&to=1&limit=1001":                           "limit",
		"from=0&to=1&cursor=abc":                           "Invalid cursor",
		"from=0&to=1&bucket=week":                          "bucket",
		"from=0&to=9007199254740991&bucket=month":          "24 buckets",
		"from=9007199254740990&to=9007199254740991":        "",
		"from=0&to=2678400000&bucket=hour":                 "",
		"from=0&to=2678400000&bucket=day&groupBy=identity": "",
	} {
		got := tn.get("/v1/usage?" + query)
		if message == "" {
			got.is(200)
			continue
		}
		if text := got.is(400).object()["message"].(string); !strings.Contains(text, message) {
			t.Errorf("%s: %s", query, text)
		}
	}
}
