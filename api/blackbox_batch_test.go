package api_test

import (
	"fmt"
	"strings"
	"testing"

	"purser/api"
	"purser/keys"
)

// results are the items of a batch or a group, as they were answered.
func (a answer) results() (list []fields) {
	a.t.Helper()
	for _, item := range a.object()["results"].([]any) {
		list = append(list, item.(fields))
	}
	return list
}

func (a answer) statuses() (list []string) {
	a.t.Helper()
	for i, item := range a.results() {
		if number(item, "index") != int64(i) {
			a.t.Errorf("result %d has the index %v", i, item["index"])
		}
		status := fmt.Sprint(item["status"])
		if code, failed := item["error"]; failed {
			status += " " + fmt.Sprint(code)
		}
		list = append(list, status)
	}
	return list
}

func (a answer) resultsAre(want ...string) answer {
	a.t.Helper()
	if got := a.statuses(); fmt.Sprint(got) != fmt.Sprint(want) {
		a.t.Errorf("the results are %q, not %q", got, want)
	}
	return a
}

func batchOf(events ...fields) fields { return fields{"events": events} }

func TestTrackBatch(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	tn.feature("call", "tokens", nil)
	tn.feature("quoted", "tokens", fields{"pricingMode": "callback"})
	tn.feature("daily", "tokens", fields{"deduplicationPeriod": "day"})
	other := newTenant(t)
	other.credit("tokens")
	other.feature("call", "tokens", nil)

	t.Run("reports every item in its order", func(t *testing.T) {
		identity, foreign := newHolder(), newName()
		tn.deposit(identity, "tokens", "3000")
		other.deposit(identity, "tokens", "3000")
		other.use(identity, "call", fields{"id": foreign}).is(201)
		first, day := newName(), newName()
		event := func(id string, more fields) fields {
			body := fields{"id": id, "identity": identity, "feature": "call"}
			for name, value := range more {
				body[name] = value
			}
			return body
		}
		got := tn.in(t).post("/v1/events/batch", batchOf(
			event(first, nil),
			event(first, fields{"quantity": 2}),
			event(newName(), fields{"feature": "nothing"}),
			event(newName(), fields{"quantity": 0}),
			event("", nil),
			event(newName(), fields{"color": "red"}),
			event(newName(), fields{"feature": "quoted"}),
			event(day, fields{"feature": "daily"}),
			event(newName(), fields{"feature": "daily"}),
			event(newName(), fields{"quantity": 2}),
			event(foreign, nil), // of another application: not a duplicate here
			event(newName(), nil),
			fields{},
		)).is(200).resultsAre("accepted", "duplicate", "invalid feature_not_found", "invalid invalid_request", "invalid invalid_request",
			"invalid invalid_request", "invalid amount_required", "accepted", "deduplicated", "refused insufficient_balance",
			"accepted", "refused insufficient_balance", "invalid invalid_request")
		results := got.results()
		for i, pointer := range map[int]string{2: "/events/2/feature", 3: "/events/3/quantity", 4: "/events/4/id", 5: "/events/5", 6: "/events/6", 12: "/events/12/id"} {
			if results[i]["pointer"] != pointer {
				t.Errorf("item %d points at %v, not %s", i, results[i]["pointer"], pointer)
			}
		}
		if results[0]["transactionId"] != results[1]["transactionId"] || results[8]["deduplicatedFrom"] != results[7]["transactionId"] {
			t.Errorf("the transactions are %v", results)
		}
		if counts := fmt.Sprint(got.object()["counts"]); counts != fmt.Sprint(fields{
			"accepted": 3, "duplicate": 1, "deduplicated": 1, "refused": 2, "invalid": 6, "unknown": 0}) {
			t.Errorf("the counts are %s", counts)
		}
		if balance := tn.balance(identity, "tokens"); balance != "0" {
			t.Errorf("the wallet holds %s", balance)
		}
		if balance := other.balance(identity, "tokens"); balance != "2000" {
			t.Errorf("the other application's wallet holds %s", balance)
		}
	})
	t.Run("reports an item that can't be read, and charges the others", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "5000")
		event := func(more string) string {
			return fmt.Sprintf(`{"id":%q,"identity":%q,"feature":"call"%s}`, newName(), identity, more)
		}
		got := tn.in(t).post("/v1/events/batch", `{"events":[`+strings.Join([]string{
			event(``), event(`,"entityId":"a\u0000"`), event(`,"properties":{"model":"\ud800"}`), event(`,"quantity":1,"quantity":2`),
			event(`,"properties":{"a":"b","\u0061":"c"}`), event(`,"properties":{"\u0000":"b"}`), event(`,"\ud800":1`), event(`,"id":"x"`), event(``),
		}, ",")+`]}`).is(200)
		bad := "invalid invalid_request"
		got.resultsAre("accepted", bad, bad, bad, bad, bad, bad, bad, "accepted")
		for i, want := range map[int]string{
			1: "/events/1/entityId entityId must not contain the character NUL.", 2: "/events/2/properties/model properties.model must not contain half a surrogate pair.",
			3: "/events/3/quantity quantity appears twice.", 4: "/events/4/properties/a properties.a appears twice.",
			5: "/events/5/properties properties has the name \"\ufffd\", which must be letters, digits, _ and -.",
			6: "/events/6 The event has an unknown field \"\ufffd\".", 7: "/events/7/id id appears twice.",
		} {
			if item := got.results()[i]; fmt.Sprint(item["pointer"], " ", item["message"]) != want {
				t.Errorf("item %d: %v", i, item)
			}
		}
		if balance := tn.balance(identity, "tokens"); balance != "3000" {
			t.Errorf("the wallet holds %s", balance)
		}
	})
	t.Run("is safe to send again", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "1000000")
		events := make([]fields, 1000)
		want := make([]string, len(events))
		for i := range events {
			events[i] = fields{"id": newName(), "identity": identity, "feature": "call"}
			want[i] = "accepted"
		}
		first := tn.in(t).post("/v1/events/batch", batchOf(events...)).is(200).resultsAre(want...).results()
		for i := range want {
			want[i] = "duplicate"
		}
		for i, again := range tn.in(t).post("/v1/events/batch", batchOf(events...)).is(200).resultsAre(want...).results() {
			if again["transactionId"] != first[i]["transactionId"] {
				t.Fatalf("item %d is %v, and was %v", i, again["transactionId"], first[i]["transactionId"])
			}
		}
		if balance := tn.balance(identity, "tokens"); balance != "0" {
			t.Errorf("the wallet holds %s", balance)
		}
	})
	t.Run("is refused as a whole only when it is no list of objects", func(t *testing.T) {
		one := fields{"id": newName(), "identity": newHolder(), "feature": "call"}
		many := make([]fields, 1001)
		for i := range many {
			many[i] = one
		}
		for _, body := range []any{
			batchOf(), batchOf(many...), fields{}, fields{"events": one}, fields{"events": []any{one, 1}}, fields{"events": []any{nil}},
			fields{"events": []any{[]any{one}}}, fields{"events": []any{one}, "more": true}, "[]", `{"events":[{]}`,
			`{"events":` + strings.Repeat("[", 900_000) + strings.Repeat("]", 900_000)[:100_000] + `}`,
		} {
			tn.in(t).post("/v1/events/batch", body).refused("invalid_request")
		}
	})
	t.Run("has a megabyte and no byte more", func(t *testing.T) {
		padded := func(size int) string {
			body := `{"events":[{"id":"` + newName() + `","identity":"x","feature":"nothing"}]}`
			return body + strings.Repeat(" ", size-len(body))
		}
		tn.in(t).post("/v1/events/batch", padded(1<<20)).is(200).resultsAre("invalid feature_not_found")
		tn.in(t).post("/v1/events/batch", padded(1<<20+1)).refused("body_too_large")
	})
	t.Run("is refused as a whole for a revoked key", func(t *testing.T) {
		key := tn.newKey(keys.Spec{Preset: keys.Ingestion})
		c := tn.in(t).with(key.secret)
		good := fields{"id": newName(), "identity": newHolder(), "feature": "call"}
		c.post("/v1/events/batch", batchOf(good)).is(200)
		tn.revoke(key)
		c.post("/v1/events/batch", batchOf(good)).refused("revoked_api_key")
		c.post("/v1/events/batch", batchOf(fields{})).refused("revoked_api_key")
	})
}

func TestBatchesCountAgainstTheRateLimit(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	tn.feature("free", "tokens", fields{"costNanocredits": "0"})
	identity := newHolder()
	batch := func(size int) fields {
		events := make([]fields, size)
		for i := range events {
			events[i] = fields{"id": newName(), "identity": identity, "feature": "free"}
		}
		return batchOf(events...)
	}
	t.Run("by ten items", func(t *testing.T) {
		// One token that takes hours to come back: a batch of ten costs one, of eleven two.
		limited := tn.on(limitedNode(t, api.Options{RateLimit: 0.0001})).in(t)
		limited.post("/v1/events/batch", batch(10)).is(200)
		refused := batch(1)
		if wait := retryAfter(limited.post("/v1/events/batch", refused).refused("rate_limited")); wait > 10_000 {
			t.Errorf("after ten items the key waits %d seconds", wait)
		}
		fresh := limited.with(tn.newKey(keys.Spec{Preset: keys.Ingestion}).secret)
		fresh.post("/v1/events/batch", batch(11)).is(200)
		if wait := retryAfter(fresh.post("/v1/events/batch", batch(1)).refused("rate_limited")); wait <= 10_000 || wait > 20_000 {
			t.Errorf("after eleven items the key waits %d seconds", wait)
		}
		tn.in(t).post("/v1/events/batch", refused).is(200).resultsAre("accepted") // nothing was done
	})
	t.Run("and the largest needs a full bucket, and owes the rest", func(t *testing.T) {
		limited := tn.on(limitedNode(t, api.Options{RateLimit: 0.0001})).in(t)
		limited.post("/v1/events/batch", batch(1000)).is(200)
		if wait := retryAfter(limited.post("/v1/events/batch", batch(1000)).refused("rate_limited")); wait <= 990_000 || wait > 1_000_000 {
			t.Errorf("after a thousand items the key waits %d seconds", wait)
		}
	})
}

func TestTrackGroup(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	tn.feature("input", "tokens", nil)
	tn.feature("output", "tokens", fields{"costNanocredits": "3000"})
	group := func(identity string, events ...fields) fields {
		return fields{"identity": identity, "events": events}
	}

	t.Run("charges all or none", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "5000")
		first := group(identity, fields{"id": newName(), "feature": "input"}, fields{"id": newName(), "feature": "output"})
		tn.in(t).post("/v1/events/group", first).is(201).resultsAre("accepted", "accepted")
		tn.in(t).post("/v1/events/group", first).is(200).resultsAre("duplicate", "duplicate")
		second := group(identity, fields{"id": newName(), "feature": "input"}, fields{"id": newName(), "feature": "output"})
		tn.in(t).post("/v1/events/group", second).refused("insufficient_balance").shows(fields{"index": 1})
		if balance := tn.balance(identity, "tokens"); balance != "1000" {
			t.Errorf("the wallet holds %s", balance)
		}
		events := second["events"].([]fields)
		tn.use(identity, "input", fields{"id": events[0]["id"]}).is(201)
		tn.deposit(identity, "tokens", "10000")
		tn.in(t).post("/v1/events/group", second).refused("group_conflict").shows(fields{"index": 0})
	})
	t.Run("names the item that refuses it", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "5000")
		tn.in(t).post("/v1/events/group", group(identity, fields{"id": newName(), "feature": "input"}, fields{"id": newName(), "feature": "nothing"})).
			refused("feature_not_found").shows(fields{"index": 1})
		if balance := tn.balance(identity, "tokens"); balance != "5000" {
			t.Errorf("the wallet holds %s", balance)
		}
	})
	t.Run("keeps its bounds", func(t *testing.T) {
		same, many := newName(), make([]fields, 21)
		for i := range many {
			many[i] = fields{"id": newName(), "feature": "input"}
		}
		for _, body := range []fields{
			group(newHolder()), group(newHolder(), many...), group("", many[0]), {"events": many[:1]}, {"identity": newHolder()},
			group(newHolder(), fields{"id": same, "feature": "input"}, fields{"id": same, "feature": "output"}),
			group(newHolder(), fields{"id": newName(), "feature": "input", "identity": newHolder()}),
		} {
			tn.in(t).post("/v1/events/group", body).refused("invalid_request")
		}
		identity := newHolder()
		tn.deposit(identity, "tokens", "20000")
		tn.in(t).post("/v1/events/group", group(identity, many[:20]...)).is(201)
		if balance := tn.balance(identity, "tokens"); balance != "0" {
			t.Errorf("the wallet holds %s", balance)
		}
	})
}
