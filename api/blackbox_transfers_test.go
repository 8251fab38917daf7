package api_test

import (
	"fmt"
	"testing"

	"purser/fault"
)

func TestTransfers(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	team, member := newHolder(), newHolder()
	tn.deposit(team, "tokens", "1000")
	tn.post("/v1/wallets", fields{"identity": member}).is(201)
	balance := func(t *testing.T, identity string) string {
		t.Helper()
		balances := tn.in(t).get("/v1/wallets/" + identity).is(200).object()["balances"].([]any)
		if len(balances) == 0 {
			return "0"
		}
		return balances[0].(fields)["amountNanocredits"].(string)
	}
	body := newTransfer(team, member, "tokens")
	body["amountNanocredits"] = "400"
	t.Run("move credits, once", func(t *testing.T) {
		first := tn.in(t).post("/v1/transfers", body).is(201).object()
		made := first["transfer"].(fields)
		for name, want := range body {
			if made[name] != want {
				t.Errorf("%s is %v, want %v", name, made[name], want)
			}
		}
		again := tn.in(t).post("/v1/transfers", body).is(200).object()
		if first["duplicate"] != false || again["duplicate"] != true || fmt.Sprint(again["transfer"]) != fmt.Sprint(made) {
			t.Errorf("got %v, then %v", first, again)
		}
		if a, b := balance(t, team), balance(t, member); a != "600" || b != "400" {
			t.Errorf("the balances are %s and %s", a, b)
		}
		for identity, c := range map[string]struct{ delta, other string }{team: {"-400", member}, member: {"400", team}} {
			entry := tn.in(t).get("/v1/wallets/" + identity + "/journal?kind=transfer").is(200).object()["data"].([]any)[0].(fields)
			side := entry["transfer"].(fields)
			if entry["deltaNanocredits"] != c.delta || side["identity"] != c.other || side["id"] != made["id"] || entry["idempotencyKey"] != body["idempotencyKey"] ||
				(entry["id"] == made["id"]) != (identity == team) {
				t.Errorf("the entry of %s is %v", identity, entry)
			}
		}
	})
	for name, c := range map[string]struct {
		change fields
		code   fault.Code
	}{
		"with a key of another one": {fields{"idempotencyKey": body["idempotencyKey"], "reason": "another"}, fault.IdempotencyConflict},
		"to the sender":             {fields{"to": team}, fault.TransferToSelf},
		"past the balance":          {fields{"amountNanocredits": "601"}, fault.InsufficientBalance},
		"of an unknown credit":      {fields{"creditKey": "none"}, fault.CreditNotFound},
		"from an unknown wallet":    {fields{"from": newHolder()}, fault.WalletNotFound},
		"to an unknown wallet":      {fields{"to": newHolder()}, fault.WalletNotFound},
		"of nothing":                {fields{"amountNanocredits": "0"}, fault.InvalidRequest},
	} {
		t.Run(name+" are refused", func(t *testing.T) {
			changed := newTransfer(team, member, "tokens")
			for field, value := range c.change {
				changed[field] = value
			}
			tn.in(t).post("/v1/transfers", changed).refused(c.code)
		})
	}
	t.Run("may move all", func(t *testing.T) {
		rest := newTransfer(team, member, "tokens")
		rest["amountNanocredits"] = "600"
		tn.in(t).post("/v1/transfers", rest).is(201)
		if a, b := balance(t, team), balance(t, member); a != "0" || b != "1000" {
			t.Errorf("the balances are %s and %s", a, b)
		}
	})
}

func TestRenamedWallets(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	old, taken, renamed := newHolder(), newHolder(), newHolder()
	tn.deposit(old, "tokens", "1000")
	tn.deposit(taken, "tokens", "5")
	before := tn.get("/v1/wallets/" + old).is(200).object()
	body := fields{"identity": renamed, "idempotencyKey": newName()}
	t.Run("keep their id and balances, once for a key", func(t *testing.T) {
		for _, duplicate := range []bool{false, true} {
			got := tn.in(t).post("/v1/wallets/"+old+"/rename", body).is(200).object()
			wallet := got["wallet"].(fields)
			if got["duplicate"] != duplicate || wallet["id"] != before["id"] || wallet["identity"] != renamed || fmt.Sprint(wallet["balances"]) != fmt.Sprint(before["balances"]) {
				t.Errorf("got %v", got)
			}
		}
		tn.in(t).get("/v1/wallets/" + old).refused(fault.WalletNotFound)
		tn.in(t).get("/v1/wallets/" + renamed + "/journal").is(200)
	})
	for name, c := range map[string]struct {
		of, to, key string
		code        fault.Code
	}{
		"with a key of another one":  {renamed, newHolder(), body["idempotencyKey"].(string), fault.IdempotencyConflict},
		"to an identity in use":      {renamed, taken, newName(), fault.IdentityTaken},
		"of an identity without one": {old, newHolder(), newName(), fault.WalletNotFound},
	} {
		t.Run(name+" are refused", func(t *testing.T) {
			tn.in(t).post("/v1/wallets/"+c.of+"/rename", fields{"identity": c.to, "idempotencyKey": c.key}).refused(c.code)
		})
	}
}

func TestErasedWallets(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	former, gone := newHolder(), newHolder()
	tn.deposit(former, "tokens", "1000")
	rename := fields{"identity": gone, "idempotencyKey": newName()}
	tn.post("/v1/wallets/"+former+"/rename", rename).is(200)
	wallet := tn.get("/v1/wallets/" + gone).is(200).text("id")
	body := fields{"reason": "asked by letter", "idempotencyKey": newName()}
	tn.post("/v1/wallets/"+gone+"/erase", fields{"reason": "asked by " + gone, "idempotencyKey": newName()}).refused(fault.InvalidRequest)
	for _, duplicate := range []bool{false, true} {
		got := tn.post("/v1/wallets/"+gone+"/erase", body).is(200).object()
		if got["duplicate"] != duplicate || got["erasure"].(fields)["walletId"] != wallet {
			t.Errorf("got %v", got)
		}
	}
	tn.get("/v1/wallets/" + gone).refused(fault.WalletNotFound)
	tn.post("/v1/wallets/"+gone+"/erase", fields{"reason": "asked by letter", "idempotencyKey": newName()}).refused(fault.WalletNotFound)
	tn.post("/v1/wallets/"+former+"/rename", rename).refused(fault.IdempotencyConflict)
	var tombstone string
	for _, w := range tn.get("/v1/wallets?limit=25").is(200).object()["data"].([]any) {
		if w.(fields)["id"] == wallet {
			tombstone = w.(fields)["identity"].(string)
		}
	}
	for _, c := range []struct {
		method, target string
		body           fields
	}{
		{"GET", "/v1/wallets/" + tombstone, nil},
		{"POST", "/v1/deposits", newDeposit(tombstone, "tokens")},
		{"POST", "/v1/transfers", newTransfer(tombstone, gone, "tokens")},
		{"POST", "/v1/events", fields{"id": newName(), "identity": tombstone, "feature": "x", "quantity": 1}},
		{"GET", "/v1/events?identity=" + tombstone, nil},
	} {
		if c.method == "GET" {
			tn.get(c.target).refused(fault.InvalidRequest)
		} else {
			tn.post(c.target, c.body).refused(fault.InvalidRequest)
		}
	}
}
