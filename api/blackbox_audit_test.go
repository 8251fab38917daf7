package api_test

import (
	"slices"
	"strings"
	"testing"

	"purser/ids"
	"purser/keys"
	"purser/store"
	"purser/store/people"
	"purser/store/reports"
	"purser/tenancy/audit"
)

// auditLog is the log of the tenant's organization, oldest first.
func (tn *tenant) auditLog() []audit.Entry {
	tn.t.Helper()
	list, _, err := tn.node.store.Org(tn.app.OrgID).AuditLog(tn.t.Context(), people.AuditPage{Limit: 100})
	if err != nil {
		tn.t.Fatal(err)
	}
	slices.Reverse(list)
	return list
}

func TestChangesOfAPIKeysAreAudited(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	key := tn.newKey(keys.Spec{Preset: keys.Setup})
	c := tn.with(key.secret)
	before := len(tn.auditLog())
	identity, once := newHolder(), newName()
	c.post("/v1/credits", fields{"key": "gold", "name": "Gold", "unit": "coin"}).is(201)
	c.patch("/v1/credits/gold", fields{"name": "Golden"}).is(200)
	c.post("/v1/features", fields{"key": "chat", "name": "Chat", "unit": "call", "creditKey": "gold", "costNanocredits": "1000"}).is(201)
	c.patch("/v1/features/chat", fields{"costNanocredits": "2000"}).is(200)
	plan := fields{
		"key": "pro", "name": "Pro", "amountCents": 900, "currency": "usd", "interval": "month",
		"featureLimits": []any{}, "creditGrants": []any{}, "featureMultipliers": []any{}, "topupsEnabled": false, "active": true,
	}
	c.post("/v1/plans", plan).is(201)
	c.patch("/v1/plans/pro", fields{"name": "Professional"}).is(200)
	deposit := fields{"identity": identity, "creditKey": "gold", "amountNanocredits": "5000", "idempotencyKey": once}
	c.post("/v1/deposits", deposit).is(201)
	c.post("/v1/deposits", deposit).is(200) // changes nothing
	used := newName()
	c.post("/v1/events", fields{"id": used, "identity": identity, "feature": "chat"}).is(201)
	reversal := newReversal("3")
	c.post("/v1/events/"+used+"/reverse", reversal).is(201)
	c.post("/v1/events/"+used+"/reverse", reversal).is(200) // changes nothing
	receiver := newHolder()
	c.post("/v1/wallets", fields{"identity": receiver}).is(201)
	transfer := newTransfer(identity, receiver, "gold")
	c.post("/v1/transfers", transfer).is(201)
	c.post("/v1/transfers", transfer).is(200) // changes nothing
	rename := fields{"identity": newHolder(), "idempotencyKey": newName()}
	c.post("/v1/wallets/"+receiver+"/rename", rename).is(200)
	c.post("/v1/wallets/"+receiver+"/rename", rename).is(200) // changes nothing
	erase := fields{"reason": "asked", "idempotencyKey": newName()}
	c.post("/v1/wallets/"+rename["identity"].(string)+"/erase", erase).is(200)
	c.post("/v1/wallets/"+rename["identity"].(string)+"/erase", erase).is(200) // changes nothing

	c.post("/v1/plans", merged(plan, fields{"key": "max", "amountCents": 9900})).is(201)
	tn.settle()
	buyer := newHolder() // has no wallet yet
	c.post(subscriptionPath(buyer)+"/cancel", fields{"cancelAtPeriodEnd": true, "idempotencyKey": newName()}).refused("subscription_not_found")
	c.post("/v1/topup-checkout", newTopup(buyer, "gold")).is(200)
	tn.pay(c.post("/v1/subscription-checkout", newSubscriptionCheckout(buyer, "pro")).is(200).text("url"), "4242424242424242")
	c.post(subscriptionPath(buyer)+"/change", fields{"planKey": "max", "idempotencyKey": newName()}).is(200)
	c.post(subscriptionPath(buyer)+"/cancel", fields{"cancelAtPeriodEnd": true, "idempotencyKey": newName()}).is(200)
	c.post(subscriptionPath(buyer)+"/cancel", fields{"cancelAtPeriodEnd": false, "idempotencyKey": newName()}).is(200)
	bought := tn.get(walletPath(buyer)).is(200).text("id")

	var actions []string
	for _, e := range tn.auditLog()[before:] {
		actions = append(actions, e.Action)
		if kind, _, _ := strings.Cut(e.Action, "."); slices.Contains([]string{"topup", "checkout", "subscription"}, kind) && e.Target != bought || strings.Contains(e.After, buyer) {
			t.Errorf("%s is about %s, with %s", e.Action, e.Target, e.After)
		}
		if !strings.Contains(e.Name, key.Name) || !strings.Contains(e.Name, key.ID.Format(ids.APIKey)) || !e.UserID.IsZero() || e.RequestID.IsZero() || e.AppID != tn.app.ID {
			t.Errorf("%s is by %+v", e.Action, e.Actor)
		}
	}
	byKeys, _, err := tn.node.store.Org(tn.app.OrgID).AuditLog(t.Context(), people.AuditPage{Actor: audit.Keys, Limit: 100})
	if err != nil || len(byKeys) < len(actions) || strings.Contains(byKeys[len(byKeys)-1].Name, "command line") {
		t.Errorf("the log of all keys has %d entries, %v", len(byKeys), err)
	}
	want := "credit.create credit.update feature.create feature.update plan.create plan.update deposit.create event.reverse wallet.transfer wallet.rename wallet.erase " +
		"plan.create topup.create checkout.create subscription.change subscription.cancel subscription.undo-cancel"
	if got := strings.Join(actions, " "); got != want {
		t.Errorf("the log has %s, want %s", got, want)
	}
	if verified, err := tn.node.store.Org(tn.app.OrgID).VerifyAudit(t.Context()); err != nil || len(verified.Differences) != 0 {
		t.Errorf("the chain is broken: %v, %v", verified.Differences, err)
	}
}

func TestFailedRequestsSayWhomTheyConcern(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	tn.feature("chat", "gold", nil)
	identity := newHolder()
	tn.use(identity, "chat", nil).refused("insufficient_balance")
	tn.get(walletPath("missing-" + identity)).refused("wallet_not_found")
	revoked := tn.newKey(keys.Spec{Preset: keys.Setup})
	tn.revoke(revoked)
	tn.with(revoked.secret).post("/v1/events", fields{"id": newName(), "identity": identity, "feature": "chat"}).is(401)

	list, _, err := tn.node.store.Reports(tn.app.Scope()).Requests(t.Context(), reports.RequestQuery{Failed: true, Page: store.Page{Limit: 10}})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 {
		t.Fatalf("%d failures are kept: %+v", len(list), list)
	}
	if got := list[1]; got.Identity != identity || got.Feature != "chat" || got.Code != "insufficient_balance" {
		t.Errorf("the refused use is %+v", got)
	}
	if got := list[0]; got.Identity != "missing-"+identity || got.Feature != "" {
		t.Errorf("the missing wallet is %+v", got)
	}
}
