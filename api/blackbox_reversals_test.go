package api_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"purser/store/storetest"
)

func TestReversals(t *testing.T) {
	t.Parallel()
	storetest.AvoidEndOf(t, 24*time.Hour) // two events have to fall on one day
	tn := newTenant(t)
	tn.credit("tokens")
	tn.feature("image", "tokens", fields{"costNanocredits": "40"})
	tn.feature("daily", "tokens", fields{"costNanocredits": "40", "deduplicationPeriod": "day"})
	holder := newHolder()
	tn.deposit(holder, "tokens", "1000")
	charge := func(t *testing.T, feature string) string {
		t.Helper()
		id := "image/" + newName()
		tn.in(t).post("/v1/events", fields{"id": id, "identity": holder, "feature": feature}).is(201)
		return id
	}
	reverse := func(t *testing.T, id string, body fields) answer {
		t.Helper()
		return tn.in(t).post("/v1/events/"+url.PathEscape(id)+"/reverse", body)
	}
	balance := func(t *testing.T) int64 {
		t.Helper()
		b := tn.in(t).get("/v1/wallets/" + holder).is(200).object()["balances"].([]any)[0].(fields)
		return number(b, "amountNanocredits")
	}
	t.Run("return the whole charge, once", func(t *testing.T) {
		id, before := charge(t, "image"), balance(t)
		body := fields{"reason": "No image came", "idempotencyKey": newName()}
		first := reverse(t, id, body).is(201).object()
		made := first["reversal"].(fields)
		if first["duplicate"] != false || made["eventId"] != id || made["amountNanocredits"] != "40" || made["reason"] != "No image came" {
			t.Errorf("got %v", first)
		}
		again := reverse(t, id, body).is(200).object()
		if again["duplicate"] != true || fmt.Sprint(again["reversal"]) != fmt.Sprint(made) {
			t.Errorf("got %v, want %v", again, made)
		}
		if got := balance(t); got != before+40 {
			t.Errorf("the balance is %d, it was %d", got, before)
		}
		reverse(t, id, fields{"reason": "x", "idempotencyKey": newName()}).refused("event_not_reversible")
		reverse(t, id, fields{"reason": "x", "idempotencyKey": newName(), "amountNanocredits": "1"}).refused("reversal_too_large")
		reverse(t, id, fields{"reason": "another", "idempotencyKey": body["idempotencyKey"]}).refused("idempotency_conflict")
		event := tn.in(t).get("/v1/events/" + url.PathEscape(id)).is(200).object()
		if fmt.Sprint(event["reversals"]) != fmt.Sprint([]any{made}) || event["amountNanocredits"] != "40" {
			t.Errorf("the event is %v", event)
		}
		entry := tn.in(t).get("/v1/wallets/" + holder + "/journal?kind=reversal&limit=1").is(200).object()["data"].([]any)[0].(fields)
		if entry["reversalOf"] != id || entry["deltaNanocredits"] != "40" || entry["id"] != made["id"] || entry["idempotencyKey"] != body["idempotencyKey"] {
			t.Errorf("the entry is %v", entry)
		}
	})
	t.Run("return parts, up to the charge", func(t *testing.T) {
		id, before := charge(t, "image"), balance(t)
		for _, amount := range []string{"1", "30"} {
			reverse(t, id, newReversal(amount)).is(201)
		}
		reverse(t, id, newReversal("10")).refused("reversal_too_large")
		rest := reverse(t, id, fields{"reason": "x", "idempotencyKey": newName()}).is(201).object()["reversal"].(fields)
		if rest["amountNanocredits"] != "9" || balance(t) != before+40 {
			t.Errorf("the rest is %v, the balance %d", rest, balance(t))
		}
	})
	t.Run("let the next usage of a period be charged", func(t *testing.T) {
		id := charge(t, "daily")
		again := fields{"id": newName(), "identity": holder, "feature": "daily"}
		tn.in(t).post("/v1/events", again).is(200)
		reverse(t, again["id"].(string), fields{"reason": "x", "idempotencyKey": newName()}).refused("event_not_reversible")
		reverse(t, id, fields{"reason": "x", "idempotencyKey": newName()}).is(201)
		charge(t, "daily")
		repeated := tn.in(t).post("/v1/events", fields{"id": id, "identity": holder, "feature": "daily"}).is(200)
		if repeated.text("status") != "duplicate" {
			t.Errorf("the event sent again is %s", repeated.text("status"))
		}
	})
	t.Run("of an unknown event are refused", func(t *testing.T) {
		reverse(t, "none", newReversal("1")).refused("event_not_found")
	})
	t.Run("are in the balance of every later moment", func(t *testing.T) {
		journal := tn.in(t).get("/v1/wallets/" + holder + "/journal?limit=1").is(200).object()["data"].([]any)[0].(fields)
		at := tn.in(t).get(fmt.Sprintf("/v1/wallets/%s/balances?at=%d", holder, number(journal, "createdAt"))).is(200).object()
		if got := number(at["balances"].([]any)[0].(fields), "amountNanocredits"); got != balance(t) {
			t.Errorf("as of the last entry the balance is %d, now %d", got, balance(t))
		}
	})
}
