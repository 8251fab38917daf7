package api_test

import (
	"fmt"
	"net/url"
	"testing"

	"purser/store/storetest"
)

func TestCreateDeposit(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	tn.credit("silver")
	body := func(identity, credit, amount, key string) fields {
		return fields{"identity": identity, "creditKey": credit, "amountNanocredits": amount, "idempotencyKey": key}
	}

	t.Run("shows every field, and makes the wallet", func(t *testing.T) {
		c, identity, key := tn.in(t), newHolder(), newName()
		c.post("/v1/deposits", body(identity, "gold", "1500000000", key)).is(201).has(fields{
			"deposit": fields{
				"id": idOf("dep"), "identity": identity, "creditKey": "gold", "amountNanocredits": "1500000000",
				"idempotencyKey": key, "createdAt": recent(tn.node),
			},
			"duplicate": false,
		})
		c.get(walletPath(identity)).is(200).
			shows(fields{"balances": []fields{{"creditKey": "gold", "amountNanocredits": "1500000000"}}})
	})
	t.Run("gives the first record back for its key, whatever the body says", func(t *testing.T) {
		c, identity, other, key := tn.in(t), newHolder(), newHolder(), newName()
		first := c.post("/v1/deposits", body(identity, "gold", "7", key)).is(201).object()
		again := fields{"deposit": first["deposit"], "duplicate": true}
		for _, repeat := range []fields{
			body(identity, "gold", "7", key), body(identity, "gold", "8", key), body(identity, "silver", "7", key),
			body(other, "gold", "7", key), body(identity, "unknown-credit", "7", key),
		} {
			c.post("/v1/deposits", repeat).is(200).has(again)
		}
		c.get(walletPath(other)).refused("wallet_not_found")
		if balance := tn.balance(identity, "gold"); balance != "7" {
			t.Errorf("the wallet holds %s", balance)
		}
	})
	t.Run("takes a key of any characters, and tells near ones apart", func(t *testing.T) {
		identity := newHolder()
		near := []string{"k", "K", "k ", " k", "k\u0301", "\u1e31", "k\n", "k%20", "🔑", `k"`}
		for _, key := range near {
			tn.in(t).post("/v1/deposits", body(identity, "gold", "1", key)).is(201)
		}
		for _, key := range near {
			tn.in(t).post("/v1/deposits", body(identity, "gold", "1", key)).is(200)
		}
		if balance := tn.balance(identity, "gold"); balance != fmt.Sprint(len(near)) {
			t.Errorf("%d keys made %s", len(near), balance)
		}
	})
	t.Run("refuses a credit that nothing has, and makes nothing", func(t *testing.T) {
		c, identity, key := tn.in(t), newHolder(), newName()
		c.post("/v1/deposits", body(identity, "bronze", "1", key)).refused("credit_not_found")
		c.get(walletPath(identity)).refused("wallet_not_found")
		c.post("/v1/deposits", body(identity, "gold", "1", key)).is(201) // the refusal left its key free
	})
	t.Run("takes nothing at all as an amount", func(t *testing.T) {
		c, identity := tn.in(t), newHolder()
		c.post("/v1/deposits", body(identity, "gold", "0", newName())).is(201)
		c.get(walletPath(identity)).is(200).shows(fields{"balances": []fields{{"creditKey": "gold", "amountNanocredits": "0"}}})
	})
	t.Run("refuses a sum of more than 19 digits, and changes nothing", func(t *testing.T) {
		c, identity, key := tn.in(t), newHolder(), newName()
		c.post("/v1/deposits", body(identity, "gold", "9999999999999999998", newName())).is(201)
		c.post("/v1/deposits", body(identity, "gold", "2", key)).refused("balance_overflow")
		c.post("/v1/deposits", body(identity, "gold", "9999999999999999999", newName())).refused("balance_overflow")
		c.post("/v1/deposits", body(identity, "gold", "1", key)).is(201)
		c.post("/v1/deposits", body(identity, "gold", "0", newName())).is(201)
		c.post("/v1/deposits", body(identity, "gold", "1", newName())).refused("balance_overflow")
		if balance := tn.balance(identity, "gold"); balance != "9999999999999999999" {
			t.Errorf("the wallet holds %s", balance)
		}
	})
}

func TestTooManyBalances(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	identity := newHolder()
	for i := range 101 {
		tn.credit(fmt.Sprintf("credit-%d", i))
	}
	for i := range 100 {
		tn.deposit(identity, fmt.Sprintf("credit-%d", i), "1")
	}
	key := newName()
	last := fields{"identity": identity, "creditKey": "credit-100", "amountNanocredits": "1", "idempotencyKey": key}
	tn.post("/v1/deposits", last).refused("too_many_balances")
	tn.deposit(identity, "credit-0", "1") // into one that is there
	if held := len(tn.get(walletPath(identity)).is(200).object()["balances"].([]any)); held != 100 {
		t.Errorf("the wallet holds %d credits", held)
	}
	last["identity"] = newHolder()
	tn.post("/v1/deposits", last).is(201) // the refusal left its key free
}

func TestListDeposits(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	tn.credit("silver")
	tn.feature("chat", "gold", nil)
	identity := newHolder()
	one := tn.deposit(identity, "gold", "9000").object()["deposit"]
	two := tn.deposit(identity, "silver", "0").object()["deposit"]
	tn.use(identity, "chat", nil).is(201) // moves the balance, and is no deposit
	three := tn.deposit(identity, "gold", "9999999999999990999").object()["deposit"]
	tn.deposit(newHolder(), "gold", "1")
	list := "/v1/deposits?identity=" + url.QueryEscape(identity)

	t.Run("shows every field of an identity's deposits, newest first", func(t *testing.T) {
		tn.in(t).get(list).is(200).has(fields{"data": []any{three, two, one}, "cursor": nil})
	})
	t.Run("shows those of one credit when asked", func(t *testing.T) {
		tn.in(t).get(list + "&creditKey=gold").is(200).has(fields{"data": []any{three, one}, "cursor": nil})
		tn.in(t).get(list + "&creditKey=silver").is(200).has(fields{"data": []any{two}, "cursor": nil})
	})
	t.Run("refuses a credit that nothing has", func(t *testing.T) {
		tn.in(t).get(list + "&creditKey=bronze").refused("credit_not_found")
	})
	t.Run("is empty for an identity without a wallet", func(t *testing.T) {
		tn.in(t).get("/v1/deposits?identity=" + newHolder()).is(200).has(fields{"data": []fields{}, "cursor": nil})
	})
	t.Run("needs an identity, once, of 1 to 200 characters", func(t *testing.T) {
		for _, query := range []string{
			"", "?", "?identity=", "?identity", "?creditKey=gold", "?identity=a&identity=b", "?identity=a&identity=a", "?Identity=a",
			"?identity=%00", "?identity=%FF", "?identity=%ED%A0%80", "?identity=a;b", "?identity=%zz",
			"?identity=" + repeated("%F0%9F%98%80", 201), "?identity=" + repeated("a", 201),
		} {
			tn.in(t).get("/v1/deposits" + query).refused("invalid_request")
		}
		tn.in(t).get("/v1/deposits?identity=" + repeated("%F0%9F%98%80", 200)).is(200)
	})
	t.Run("refuses a credit key that is none", func(t *testing.T) {
		for _, key := range []string{"", "Gold", "-gold", "gold%20", "g%C3%B6ld", repeated("a", 81)} {
			tn.in(t).get(list + "&creditKey=" + key).refused("invalid_request")
		}
	})
	t.Run("reads an identity of any characters from the query, decoded once", func(t *testing.T) {
		for _, odd := range oddIdentities() {
			made := tn.deposit(odd, "gold", "1").object()["deposit"]
			tn.in(t).get("/v1/deposits?identity=" + url.QueryEscape(odd)).is(200).has(fields{"data": []any{made}, "cursor": nil})
		}
	})
}

func TestEntriesHaveTheTimeOfTheSandboxClock(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	const offset = 400 * 24 * 3_600_000
	storetest.Exec(t, storetest.URL(t), `UPDATE app_state SET clock_offset = $2, epoch = epoch + 1 WHERE app_id = $1`, tn.app.ID, offset)
	tn.credit("gold")
	tn.feature("chat", "gold", nil)
	ann, bob, event := newHolder(), newHolder(), newName()
	tn.deposit(bob, "gold", "1")
	tn.deposit(ann, "gold", "5000")
	tn.use(ann, "chat", fields{"id": event}).is(201)
	for _, c := range []struct {
		name, path string
		body       fields
	}{
		{"deposit", "/v1/deposits", fields{"identity": ann, "creditKey": "gold", "amountNanocredits": "1"}},
		{"reversal", "/v1/events/" + event + "/reverse", fields{"reason": "late"}},
		{"transfer", "/v1/transfers", fields{"from": ann, "to": bob, "creditKey": "gold", "amountNanocredits": "1", "reason": "late"}},
	} {
		before := tn.node.clock.now() + offset
		c.body["idempotencyKey"] = newName()
		made := number(tn.post(c.path, c.body).is(201).object()[c.name].(fields), "createdAt")
		entry := tn.get(walletPath(ann) + "/journal?limit=1").is(200).object()["data"].([]any)[0].(fields)
		if made < before || made > tn.node.clock.now()+offset || entry["kind"] != c.name || number(entry, "createdAt") != made {
			t.Errorf("the %s was made at %d, from %d on, with the entry %v", c.name, made, before, entry)
		}
	}
}
