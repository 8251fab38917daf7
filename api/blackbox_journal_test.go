package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// spender has entries of several kinds, credits and features.
type spender struct {
	*tenant
	identity string
	journal  []fields // all entries, newest first
	events   []fields // all events, newest first
}

func newSpender(t *testing.T) spender {
	t.Helper()
	s := spender{tenant: newTenant(t), identity: "user/" + newName() + " ü"}
	for _, credit := range []string{"gold", "iron"} {
		s.credit(credit)
		s.feature("use-"+credit, credit, nil)
		s.deposit(s.identity, credit, "1000000")
	}
	for i := range 24 {
		credit := []string{"gold", "gold", "iron"}[i%3]
		if i%7 == 6 {
			s.deposit(s.identity, credit, strconv.Itoa(i+1))
			continue
		}
		s.post("/v1/events", fields{"id": newName(), "identity": s.identity, "feature": "use-" + credit, "quantity": i%4 + 1}).is(201)
	}
	s.deposit(newHolder(), "gold", "7") // of another wallet
	s.journal = s.all("/v1/wallets/" + url.PathEscape(s.identity) + "/journal?")
	s.events = s.all("/v1/events?identity=" + url.QueryEscape(s.identity) + "&")
	if len(s.journal) != 26 || len(s.events) != 21 {
		t.Fatalf("there are %d entries and %d events", len(s.journal), len(s.events))
	}
	return s
}

// all walks a list to its end.
func (s spender) all(path string) (items []fields) {
	s.t.Helper()
	cursor := ""
	for range 100 {
		got := s.get(path + "limit=7" + cursor).is(200).object()
		for _, item := range got["data"].([]any) {
			items = append(items, item.(fields))
		}
		next, more := got["cursor"].(string)
		if !more {
			return items
		}
		cursor = "&cursor=" + next
	}
	s.t.Fatalf("%s does not end", path)
	return nil
}

func number(item fields, name string) int64 {
	n, _ := strconv.ParseInt(fmt.Sprint(item[name]), 10, 64)
	return n
}

func TestJournal(t *testing.T) {
	t.Parallel()
	s := newSpender(t)
	path := "/v1/wallets/" + url.PathEscape(s.identity) + "/journal?"
	t.Run("has every entry, numbered without a gap", func(t *testing.T) {
		for i, entry := range s.journal {
			if want := int64(len(s.journal) - i); number(entry, "seq") != want {
				t.Errorf("entry %d has the number %v", i, entry["seq"])
			}
		}
	})
	t.Run("adds up to the balances", func(t *testing.T) {
		balances := map[string]int64{}
		for _, entry := range slices.Backward(s.journal) {
			credit := entry["creditKey"].(string)
			balances[credit] += number(entry, "deltaNanocredits")
			if balances[credit] != number(entry, "balanceAfterNanocredits") {
				t.Errorf("after entry %v the balance is %v, want %d", entry["seq"], entry["balanceAfterNanocredits"], balances[credit])
			}
		}
	})
	t.Run("names the event of a charge and the key of a deposit", func(t *testing.T) {
		for _, entry := range s.journal {
			event, charged := entry["event"].(fields)
			if _, deposited := entry["idempotencyKey"]; charged == deposited || charged != (entry["kind"] == "charge") {
				t.Errorf("entry %v", entry)
			}
			if charged && event["feature"] != "use-"+entry["creditKey"].(string) {
				t.Errorf("entry %v", entry)
			}
		}
	})
	t.Run("filters as the whole list would be filtered, in either direction", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			query, kept := drawnFilter(r, s.journal)
			if credit := rapid.SampledFrom([]string{"", "gold", "iron"}).Draw(r, "credit"); credit != "" {
				query += "creditKey=" + credit + "&"
				kept = slices.DeleteFunc(kept, func(e fields) bool { return e["creditKey"] != credit })
			}
			if kind := rapid.SampledFrom([]string{"", "charge", "deposit", "grant"}).Draw(r, "kind"); kind != "" {
				query += "kind=" + kind + "&"
				kept = slices.DeleteFunc(kept, func(e fields) bool { return e["kind"] != kind })
			}
			if rapid.Bool().Draw(r, "ascending") {
				after := rapid.Int64Range(0, int64(len(s.journal))).Draw(r, "after")
				query += fmt.Sprintf("after=%d&", after)
				kept = slices.DeleteFunc(kept, func(e fields) bool { return number(e, "seq") <= after })
				slices.Reverse(kept)
			}
			if got := s.all(path + query); fmt.Sprint(got) != fmt.Sprint(kept) {
				r.Fatalf("%s gives %d entries, want %d\n%v\n%v", query, len(got), len(kept), got, kept)
			}
		})
	})
	t.Run("refuses an empty range of time", func(t *testing.T) {
		s.in(t).get(path + "from=5&to=5").refused("invalid_request")
	})
}

// drawnFilter is a range of time, and what is in it.
func drawnFilter(r *rapid.T, all []fields) (query string, kept []fields) {
	kept = slices.Clone(all)
	times := rapid.SliceOfN(rapid.SampledFrom(all), 2, 2).Draw(r, "times")
	from, to := number(times[0], "createdAt"), number(times[1], "createdAt")
	if rapid.Bool().Draw(r, "from") {
		query += fmt.Sprintf("from=%d&", from)
		kept = slices.DeleteFunc(kept, func(e fields) bool { return number(e, "createdAt") < from })
	}
	if (query == "" || from < to) && rapid.Bool().Draw(r, "to") {
		query += fmt.Sprintf("to=%d&", to)
		kept = slices.DeleteFunc(kept, func(e fields) bool { return number(e, "createdAt") >= to })
	}
	return query, kept
}

func TestEvents(t *testing.T) {
	t.Parallel()
	s := newSpender(t)
	t.Run("are found by their id, with what explains the amount", func(t *testing.T) {
		for _, e := range s.events {
			got := s.in(t).get("/v1/events/" + e["id"].(string)).is(200).object()
			if fmt.Sprint(got) != fmt.Sprint(e) {
				t.Errorf("got %v, want %v", got, e)
			}
			charge := got["charge"].(fields)
			if number(got, "amountNanocredits") != number(charge, "costNanocredits")*number(charge, "billableQuantity") {
				t.Errorf("the amount of %v is not explained", got)
			}
		}
	})
	t.Run("have ids of any text", func(t *testing.T) {
		for _, id := range []string{"a/b", "100%", "ü 😀", "?x=1&y=2", "."} {
			s.in(t).post("/v1/events", fields{"id": id, "identity": s.identity, "feature": "use-gold"}).is(201)
			if got := s.in(t).get("/v1/events/" + url.PathEscape(id)).is(200).text("id"); got != id {
				t.Errorf("got %q, want %q", got, id)
			}
		}
	})
	t.Run("filter as the whole list would be filtered", func(t *testing.T) {
		all := s.all("/v1/events?")
		rapid.Check(t, func(r *rapid.T) {
			query, kept := drawnFilter(r, all)
			if rapid.Bool().Draw(r, "identity") {
				query += "identity=" + url.QueryEscape(s.identity) + "&"
			}
			if feature := rapid.SampledFrom([]string{"", "use-gold", "use-iron"}).Draw(r, "feature"); feature != "" {
				query += "feature=" + feature + "&"
				kept = slices.DeleteFunc(kept, func(e fields) bool { return e["feature"] != feature })
			}
			if got := s.all("/v1/events?" + query); fmt.Sprint(got) != fmt.Sprint(kept) {
				r.Fatalf("%s gives %d events, want %d", query, len(got), len(kept))
			}
		})
	})
}

func TestBalancesAsOfAMoment(t *testing.T) {
	t.Parallel()
	s := newSpender(t)
	path := "/v1/wallets/" + url.PathEscape(s.identity) + "/balances"
	t.Run("are those after the last entry by then", func(t *testing.T) {
		for _, at := range s.journal {
			want := map[string]any{}
			for _, e := range slices.Backward(s.journal) {
				if number(e, "createdAt") <= number(at, "createdAt") {
					want[e["creditKey"].(string)] = e["balanceAfterNanocredits"]
				}
			}
			got := map[string]any{}
			for _, b := range s.in(t).get(fmt.Sprintf("%s?at=%d", path, number(at, "createdAt"))).is(200).object()["balances"].([]any) {
				got[b.(fields)["creditKey"].(string)] = b.(fields)["amountNanocredits"]
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("at %v: got %v, want %v", at["createdAt"], got, want)
			}
		}
	})
	t.Run("are none before the first entry, and the present ones without a moment", func(t *testing.T) {
		s.in(t).get(path + "?at=1").is(200).has(fields{"identity": s.identity, "at": 1, "balances": []fields{}})
		now := s.in(t).get("/v1/wallets/" + url.PathEscape(s.identity)).is(200).object()["balances"]
		if got := s.in(t).get(path).is(200).object()["balances"]; fmt.Sprint(got) != fmt.Sprint(now) {
			t.Errorf("got %v, want %v", got, now)
		}
	})
	t.Run("of the future are refused", func(t *testing.T) {
		s.in(t).get(path + "?at=9007199254740991").refused("invalid_request")
	})
}

func TestExplainAgreesWithCheck(t *testing.T) {
	t.Parallel()
	s := newSpender(t)
	for _, quantity := range []int{1, 2, 1_000_000} {
		body := fields{"identity": s.identity, "feature": "use-gold", "quantity": quantity}
		checked := s.post("/v1/check", body).is(200).object()
		explained := s.post("/v1/explain", body).is(200).object()
		gates := explained["gates"].([]any)
		delete(explained, "gates")
		if fmt.Sprint(checked) != fmt.Sprint(explained) {
			t.Errorf("check says %v, explain %v", checked, explained)
		}
		last := gates[len(gates)-1].(fields)
		if last["gate"] != "balance" || last["passed"] != checked["allowed"] ||
			last["required"] != checked["amountNanocredits"] || last["actual"] != checked["balanceNanocredits"] {
			t.Errorf("the last gate is %v of %v", last, checked)
		}
	}
	t.Run("and shows what a check rejects", func(t *testing.T) {
		body := fields{"identity": s.identity, "feature": "use-gold", "amountNanocredits": "5"}
		s.in(t).post("/v1/check", body).refused("amount_not_accepted")
		got := s.in(t).post("/v1/explain", body).is(200).object()
		first := got["gates"].([]any)[0].(fields)
		if got["allowed"] != false || got["reason"] != "amount_not_accepted" || first["gate"] != "amount" || first["outcome"] != "failed" {
			t.Errorf("got %v", got)
		}
	})
}
