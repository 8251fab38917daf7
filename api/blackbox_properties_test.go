package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestProperties(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	tn.feature("call", "tokens", nil)
	identity := newHolder()
	tn.deposit(identity, "tokens", "1000000")
	labels := fields{"model": "large", "project": "átlas \"1\" <b>"}
	event := func(id string, properties any) fields {
		body := fields{"id": id, "identity": identity, "feature": "call"}
		if properties != nil {
			body["properties"] = properties
		}
		return body
	}
	read := func(t *testing.T, id string) any {
		t.Helper()
		return tn.in(t).get("/v1/events/" + id).is(200).object()["properties"]
	}
	same := func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }
	single, plain, empty := newName(), newName(), newName()
	t.Run("come back with the event, and only if they were sent", func(t *testing.T) {
		tn.in(t).post("/v1/events", event(single, labels)).is(201)
		tn.in(t).post("/v1/events", event(plain, nil)).is(201)
		tn.in(t).post("/v1/events", event(empty, fields{})).is(201)
		if got := read(t, single); !same(got, labels) {
			t.Errorf("got %v", got)
		}
		for _, id := range []string{plain, empty} {
			if _, given := tn.in(t).get("/v1/events/" + id).is(200).object()["properties"]; given {
				t.Errorf("an event without any has properties")
			}
		}
		for _, path := range []string{"/v1/events?limit=100", "/v1/events?limit=100&identity=" + identity} {
			for _, item := range tn.in(t).get(path).is(200).object()["data"].([]any) {
				if e := item.(fields); (e["id"] == single) != same(e["properties"], labels) {
					t.Errorf("%s lists %v", path, e)
				}
			}
		}
	})
	t.Run("of a repeat are ignored, as all its fields are", func(t *testing.T) {
		repeat := tn.in(t).post("/v1/events", event(single, fields{"model": "small"})).is(200)
		if repeat.text("status") != "duplicate" || !same(read(t, single), labels) {
			t.Errorf("the repeat is %s, the event has %v", repeat.text("status"), read(t, single))
		}
	})
	t.Run("are those of each item of a batch and of a group", func(t *testing.T) {
		a, b, c, d, big := newName(), newName(), newName(), newName(), newName()
		got := tn.in(t).post("/v1/events/batch", batchOf(event(a, labels), event(b, nil), event(newName(), fields{"a b": "c"}),
			event(big, fields{"a": strings.Repeat("😀", 80), "b": strings.Repeat("😀", 80)}), event(newName(), fields{"a": 1}))).is(200).
			resultsAre("accepted", "accepted", "invalid invalid_request", "invalid invalid_request", "invalid invalid_request")
		if p := got.results()[4]["pointer"]; p != "/events/4/properties/a" {
			t.Errorf("the pointer is %v", p)
		}
		if p := got.results()[3]["pointer"]; p != "/events/3/properties" {
			t.Errorf("the pointer is %v", p)
		}
		tn.in(t).get("/v1/events/" + big).refused("event_not_found")
		tn.in(t).post("/v1/events/group", fields{"identity": identity, "events": []fields{
			{"id": c, "feature": "call", "properties": fields{"step": "1"}}, {"id": d, "feature": "call"},
		}}).is(201)
		for id, want := range map[string]any{a: labels, b: nil, c: fields{"step": "1"}, d: nil} {
			if got := read(t, id); !same(got, want) {
				t.Errorf("%s has %v, want %v", id, got, want)
			}
		}
	})
	t.Run("are not for checks", func(t *testing.T) {
		tn.in(t).post("/v1/check", fields{"identity": identity, "feature": "call", "properties": labels}).refused("invalid_request")
	})
}
