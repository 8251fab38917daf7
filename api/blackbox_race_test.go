package api_test

import (
	"fmt"
	"sync"
	"testing"

	"purser/api"
)

// atOnce sends the requests together and gives the answers in their order, each
// held against the document.
func atOnce(t *testing.T, requests []request, callers ...client) []answer {
	t.Helper()
	answers, errs := make([]answer, len(requests)), make([]error, len(requests))
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, r := range requests {
		c := callers[i%len(callers)]
		r.key = c.key
		all.Go(func() {
			<-start
			if answers[i], errs[i] = c.node.exchange(r); errs[i] == nil {
				errs[i] = answers[i].check()
			}
		})
	}
	close(start)
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("%s: %v\n%s", answers[i], err, answers[i].body)
		}
		answers[i].t = t
	}
	return answers
}

// onlyOne gives the one answer with the status; all others must have the second.
func onlyOne(t *testing.T, answers []answer, first, others int) answer {
	t.Helper()
	var winners []answer
	for _, a := range answers {
		switch a.status {
		case first:
			winners = append(winners, a)
		case others:
		default:
			t.Fatalf("%s: %d\n%s", a, a.status, a.body)
		}
	}
	if len(winners) != 1 {
		t.Fatalf("%d of %d were answered with %d", len(winners), len(answers), first)
	}
	return winners[0]
}

// twoNodes is the same caller at two nodes.
func twoNodes(t *testing.T, tn *tenant) []client {
	t.Helper()
	return []client{tn.client, tn.on(newNode(t, api.Options{}, &clock{}))}
}

func TestDepositsAtOnce(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	callers := twoNodes(t, tn)

	t.Run("60 with one idempotency key make one deposit", func(t *testing.T) {
		identity, key := newHolder(), newName()
		var requests []request
		for range 60 {
			requests = append(requests, adds("/v1/deposits", merged(newDeposit(identity, "gold"), fields{"idempotencyKey": key, "amountNanocredits": "7"})))
		}
		answers := atOnce(t, requests, callers...)
		first := onlyOne(t, answers, 201, 200).shows(fields{"duplicate": false}).object()
		for _, a := range answers {
			if a.status == 200 {
				a.has(fields{"deposit": first["deposit"], "duplicate": true})
			}
		}
		if balance := tn.balance(identity, "gold"); balance != "7" {
			t.Errorf("the wallet holds %s", balance)
		}
		tn.in(t).get("/v1/deposits?identity=" + identity).is(200).has(fields{"data": []any{first["deposit"]}, "cursor": nil})
	})
	t.Run("60 with one idempotency key and different bodies make one deposit", func(t *testing.T) {
		key := newName()
		var requests []request
		var identities []string
		for i := range 60 {
			identity := newHolder()
			identities = append(identities, identity)
			requests = append(requests, adds("/v1/deposits", merged(newDeposit(identity, "gold"), fields{"idempotencyKey": key, "amountNanocredits": fmt.Sprint(i + 1)})))
		}
		answers := atOnce(t, requests, callers...)
		deposit := onlyOne(t, answers, 201, 200).object()["deposit"].(fields)
		for _, a := range answers {
			a.shows(fields{"deposit": deposit})
		}
		for _, identity := range identities {
			if identity != deposit["identity"] {
				tn.in(t).get(walletPath(identity)).refused("wallet_not_found")
				continue
			}
			if balance := tn.balance(identity, "gold"); balance != deposit["amountNanocredits"] {
				t.Errorf("the wallet holds %s of %s", balance, deposit["amountNanocredits"])
			}
		}
	})
	t.Run("60 with 60 keys into one wallet all count", func(t *testing.T) {
		identity := newHolder()
		var requests []request
		for i := range 60 {
			requests = append(requests, adds("/v1/deposits", merged(newDeposit(identity, "gold"), fields{"amountNanocredits": fmt.Sprint(i + 1)})))
		}
		for _, a := range atOnce(t, requests, callers...) {
			a.is(201)
		}
		if balance := tn.balance(identity, "gold"); balance != "1830" {
			t.Errorf("the wallet holds %s", balance)
		}
	})
}

func TestPatchesAtOnce(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	tn.feature("chat", "gold", nil)
	callers := twoNodes(t, tn)
	for _, path := range []string{"/v1/credits/gold", "/v1/features/chat"} {
		t.Run("20 of one revision let exactly one win: "+path, func(t *testing.T) {
			var requests []request
			for i := range 20 {
				requests = append(requests, changes(path, fields{"expectedRevision": 1, "name": fmt.Sprintf("Name %d", i)}))
			}
			winner := onlyOne(t, atOnce(t, requests, callers...), 200, 409).shows(fields{"revision": 2}).object()
			tn.in(t).get(path).is(200).has(winner)
		})
		t.Run("20 without a revision all count: "+path, func(t *testing.T) {
			var requests []request
			for i := range 20 {
				requests = append(requests, changes(path, fields{"name": fmt.Sprintf("Other %d", i)}))
			}
			for _, a := range atOnce(t, requests, callers...) {
				a.is(200)
			}
			tn.in(t).get(path).is(200).shows(fields{"revision": 22})
		})
	}
}

func TestCreationsAtOnce(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	callers := twoNodes(t, tn)
	times := func(n int, r func() request) (all []request) {
		for range n {
			all = append(all, r())
		}
		return all
	}
	t.Run("20 of one identity make one wallet", func(t *testing.T) {
		identity := newHolder()
		answers := atOnce(t, times(20, func() request { return adds("/v1/wallets", fields{"identity": identity}) }), callers...)
		wallet := onlyOne(t, answers, 201, 200).object()
		for _, a := range answers {
			a.has(wallet)
		}
	})
	t.Run("20 of one key make one credit", func(t *testing.T) {
		body := fields{"key": "silver", "name": "Silver", "unit": "coin"}
		onlyOne(t, atOnce(t, times(20, func() request { return adds("/v1/credits", body) }), callers...), 201, 409)
	})
	t.Run("20 of one key make one feature", func(t *testing.T) {
		onlyOne(t, atOnce(t, times(20, func() request { return adds("/v1/features", newFeature("once", nil)) }), callers...), 201, 409)
	})
}

func TestEventsAtOnce(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	tn.feature("chat", "gold", nil)
	tn.feature("daily", "gold", fields{"deduplicationPeriod": "day"})
	callers := twoNodes(t, tn)

	t.Run("60 with one event id are charged once", func(t *testing.T) {
		event := newName()
		var identities []string
		var requests []request
		for i := range 60 {
			if i < 3 {
				identities = append(identities, newHolder())
				tn.deposit(identities[i], "gold", "100000")
			}
			requests = append(requests, adds("/v1/events", fields{"id": event, "identity": identities[i%3], "feature": "chat", "quantity": i + 1}))
		}
		answers := atOnce(t, requests, callers...)
		first := onlyOne(t, answers, 201, 200).object()
		for _, a := range answers {
			a.shows(fields{"transactionId": first["transactionId"], "amountNanocredits": first["amountNanocredits"]})
		}
		left := 0
		for _, identity := range identities {
			var held int
			fmt.Sscan(tn.balance(identity, "gold"), &held)
			left += held
		}
		if spent := fmt.Sprint(300000 - left); spent != first["amountNanocredits"] {
			t.Errorf("%s was spent for a charge of %s", spent, first["amountNanocredits"])
		}
	})
	t.Run("60 uses of a balance for 7 are accepted 7 times", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "gold", "7999")
		var requests []request
		for range 60 {
			requests = append(requests, adds("/v1/events", fields{"id": newName(), "identity": identity, "feature": "chat"}))
		}
		accepted := 0
		for _, a := range atOnce(t, requests, callers...) {
			if a.status == 201 {
				accepted++
				continue
			}
			a.refused("insufficient_balance")
		}
		if balance := tn.balance(identity, "gold"); accepted != 7 || balance != "999" {
			t.Errorf("%d were accepted, and %s is left", accepted, balance)
		}
	})
	t.Run("60 uses of one entity in a period are charged once", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "gold", "5000")
		var requests []request
		for range 60 {
			requests = append(requests, adds("/v1/events", fields{"id": newName(), "identity": identity, "feature": "daily", "entityId": "e", "occurredAt": inside}))
		}
		answers := atOnce(t, requests, callers...)
		first := onlyOne(t, answers, 201, 200).text("transactionId")
		for _, a := range answers {
			if a.status == 200 {
				a.shows(fields{"status": "deduplicated", "deduplicatedFrom": first})
			}
		}
		if balance := tn.balance(identity, "gold"); balance != "4000" {
			t.Errorf("the wallet holds %s", balance)
		}
	})
}
