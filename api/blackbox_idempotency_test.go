package api_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"purser/api"
)

// keyed sends a body with values of the header Idempotency-Key.
func (c client) keyed(target string, body any, values ...string) answer {
	c.t.Helper()
	return c.send(request{method: http.MethodPost, target: target, body: body, header: http.Header{"Idempotency-Key": values}})
}

func without(body fields, name string) fields {
	rest := maps.Clone(body)
	delete(rest, name)
	return rest
}

func TestIdempotencyKeyHeader(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	deposit := func() fields { return newDeposit(newHolder(), "gold") }

	t.Run("the header alone is enough, and is the body's field", func(t *testing.T) {
		c, body := tn.in(t), deposit()
		key := body["idempotencyKey"].(string)
		bare := without(body, "idempotencyKey")
		first := c.keyed("/v1/deposits", bare, key).is(201).object()["deposit"].(fields)
		if first["idempotencyKey"] != key {
			t.Errorf("the deposit has the key %v", first["idempotencyKey"])
		}
		again := fields{"deposit": first, "duplicate": true}
		c.keyed("/v1/deposits", bare, key).is(200).has(again)
		c.post("/v1/deposits", body).is(200).has(again)
		c.keyed("/v1/deposits", body, key).is(200).has(again)
	})
	t.Run("a header that differs from the body is refused, and nothing is done", func(t *testing.T) {
		c := tn.in(t)
		for _, other := range []any{"another", "", nil, 5, fields{}, []any{}} {
			body := deposit()
			body["idempotencyKey"] = other
			c.keyed("/v1/deposits", body, "mine").refused("invalid_request")
			c.get(walletPath(body["identity"].(string))).refused("wallet_not_found")
		}
	})
	t.Run("the header has the bounds of the field", func(t *testing.T) {
		c, body := tn.in(t), without(deposit(), "idempotencyKey")
		for _, bad := range [][]string{{""}, {strings.Repeat("x", 201)}, {strings.Repeat("é", 201)}, {"\xff"}, {"a", "a"}, {"a", "b"}} {
			if said := c.keyed("/v1/deposits", body, bad...).refused("invalid_request").text("message"); !strings.Contains(said, "Idempotency-Key") {
				t.Errorf("%.20q is refused with %q", bad, said)
			}
		}
		for _, good := range []string{strings.Repeat("x", 200), strings.Repeat("é", 200), `"quoted"`, "a, b", "🔑"} {
			got := c.keyed("/v1/deposits", body, good).is(201).object()["deposit"].(fields)
			if got["idempotencyKey"] != good {
				t.Errorf("%.20q became %v", good, got["idempotencyKey"])
			}
		}
	})
	t.Run("without header and field the body is refused as before", func(t *testing.T) {
		said := tn.in(t).post("/v1/deposits", without(deposit(), "idempotencyKey")).refused("invalid_request").text("message")
		if said != "idempotencyKey is required." {
			t.Errorf("the message is %q", said)
		}
	})
	t.Run("every operation with the field takes the header", func(t *testing.T) {
		shop, identity := newShop(t), newHolder()
		checkout, topup := newSubscriptionCheckout(identity, "small"), newTopup(identity, "gold")
		for target, body := range map[string]fields{"/v1/subscription-checkout": checkout, "/v1/topup-checkout": topup} {
			key, bare := body["idempotencyKey"].(string), without(body, "idempotencyKey")
			first := shop.keyed(target, bare, key).is(200).object()
			shop.post(target, body).is(200).has(first)
			shop.keyed(target, bare, "other-"+key).is(200)
			bare["cancelUrl"] = "https://shop.test/elsewhere"
			shop.keyed(target, bare, key).refused("idempotency_conflict")
			shop.keyed(target, body, "other").refused("invalid_request")
		}
		free := newHolder()
		change, cancel := subscriptionPath(free)+"/change", subscriptionPath(free)+"/cancel"
		shop.keyed(change, fields{"planKey": "free"}, "c1").is(200)
		shop.keyed(change, fields{"planKey": "small"}, "c1").refused("idempotency_conflict")
		shop.keyed(cancel, fields{"cancelAtPeriodEnd": true}, "c2").is(200).shows(fields{"cancelAtPeriodEnd": true})
		shop.keyed(cancel, fields{"cancelAtPeriodEnd": false}, "c2").refused("idempotency_conflict")
		shop.keyed(cancel, fields{"cancelAtPeriodEnd": false, "idempotencyKey": "c3"}, "c4").refused("invalid_request")
	})
	t.Run("an operation without the field ignores the header", func(t *testing.T) {
		c, identity := tn.in(t), newHolder()
		c.keyed("/v1/wallets", fields{"identity": identity}, "w").is(201)
		c.keyed("/v1/wallets", fields{"identity": identity}, "w", "\xff").is(200)
	})
}

func TestTheDocumentDeclaresTheIdempotencyKeyHeader(t *testing.T) {
	t.Parallel()
	for _, op := range must(api.Operations()) {
		if takes := slices.Contains(op.Fields, "idempotencyKey"); takes != op.IdempotencyKey {
			t.Errorf("%s has the field: %t, and the header: %t", op.ID, takes, op.IdempotencyKey)
		}
	}
}
