package api_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/sandbox"
)

var addressRule = rule{
	good: []string{
		quoted("https://a.test"), quoted("http://127.0.0.1:3000/x?y=z#w"), quoted("https://a.test/%C3%A9"), quoted("https://[::1]/"), quoted("HTTPS://a.test"),
		quoted("https://a.test/" + repeated("x", 2048-15)),
	},
	bad: append([]string{
		quoted(""), quoted("a.test"), quoted("/thanks"), quoted("//a.test"), quoted("ftp://a.test"), quoted("javascript:alert(1)"), quoted("https://"),
		quoted(" https://a.test"), quoted("https://a.test/a b"), quoted("https://é.test"), quoted(`https://a.test\@b.test`),
		quoted("https://a.test/" + repeated("x", 2048-14)),
	}, noText...),
}

var subscriptionOperations = []bodied{
	{
		id: "changeSubscription", method: "POST", target: "/v1/subscriptions/" + ruledHolder + "/change", required: []string{"planKey", "idempotencyKey"},
		sample: func() fields { return fields{"planKey": "free", "idempotencyKey": newName()} },
		rules:  map[string]rule{"planKey": keyRule, "idempotencyKey": textRule(200)},
	},
	{
		id: "previewSubscriptionChange", method: "POST", target: "/v1/subscriptions/" + ruledHolder + "/preview-change", required: []string{"planKey"},
		sample: func() fields { return fields{"planKey": "free"} },
		rules:  map[string]rule{"planKey": keyRule},
	},
	{
		id: "cancelSubscription", method: "POST", target: "/v1/subscriptions/" + ruledHolder + "/cancel", required: []string{"cancelAtPeriodEnd", "idempotencyKey"},
		sample: func() fields { return fields{"cancelAtPeriodEnd": false, "idempotencyKey": newName()} },
		rules:  map[string]rule{"cancelAtPeriodEnd": booleanRule, "idempotencyKey": textRule(200)},
	},
	{
		id: "createSubscriptionCheckout", method: "POST", target: "/v1/subscription-checkout",
		required: []string{"identity", "planKey", "successUrl", "cancelUrl", "idempotencyKey"},
		sample:   func() fields { return newSubscriptionCheckout(newHolder(), "pro") },
		rules: map[string]rule{
			"identity": textRule(200), "planKey": keyRule, "successUrl": addressRule, "cancelUrl": addressRule, "idempotencyKey": textRule(200),
		},
	},
	{
		id: "createTopupCheckout", method: "POST", target: "/v1/topup-checkout",
		required: []string{"identity", "creditKey", "amountNanocredits", "amountCents", "currency", "successUrl", "cancelUrl", "idempotencyKey"},
		sample:   func() fields { return newTopup(newHolder(), "gold") },
		rules: map[string]rule{
			"identity": textRule(200), "creditKey": keyRule, "amountNanocredits": amountRule, "amountCents": wholeRule("1", "99999999"),
			"currency": currencyRule, "successUrl": addressRule, "cancelUrl": addressRule, "idempotencyKey": textRule(200),
		},
	},
	{
		id: "createBillingPortal", method: "POST", target: "/v1/billing-portal", required: []string{"identity", "returnUrl"},
		sample: func() fields { return fields{"identity": newHolder(), "returnUrl": "https://shop.test/account"} },
		rules:  map[string]rule{"identity": textRule(200), "returnUrl": addressRule},
	},
}

// newShop sells a small plan and a big one, both known to the provider.
func newShop(t testing.TB) *tenant {
	t.Helper()
	tn := newTenant(t)
	tn.credit("gold")
	tn.feature("chat", "gold", nil)
	tn.plan("small", fields{
		"creditGrants":  []fields{{"creditKey": "gold", "amountNanocredits": "5000"}},
		"featureLimits": []fields{{"featureKey": "chat", "limit": 10, "period": "billing", "overage": "block"}},
	})
	tn.plan("big", fields{
		"amountCents": 9900, "creditGrants": []fields{{"creditKey": "gold", "amountNanocredits": "20000"}},
		"featureMultipliers": []fields{{"featureKey": "chat", "basisPoints": 5000}}, "topupsEnabled": false,
	})
	tn.plan("free", fields{"amountCents": 0})
	tn.settle()
	return tn
}

func TestSubscriptionLife(t *testing.T) {
	t.Parallel()
	tn := newShop(t)
	holder := newHolder()
	change := func(plan string) answer {
		return tn.post(subscriptionPath(holder)+"/change", fields{"planKey": plan, "idempotencyKey": newName()})
	}
	cancel := func(atEnd bool) answer {
		return tn.post(subscriptionPath(holder)+"/cancel", fields{"cancelAtPeriodEnd": atEnd, "idempotencyKey": newName()})
	}

	if got := tn.get(subscriptionPath(holder)).is(200); string(got.body) != "null" {
		t.Fatalf("an identity without a plan has %s", got.body)
	}
	tn.buy(holder, "small")
	bought := tn.get(subscriptionPath(holder)).is(200).shows(fields{
		"id": idOf(ids.Subscription), "identity": holder, "planKey": "small", "status": "active", "cancelAtPeriodEnd": false, "paymentHold": false, "topupsEnabled": true,
		"creditGrants":  []any{fields{"creditKey": "gold", "amountNanocredits": "5000"}},
		"featureLimits": []any{fields{"featureKey": "chat", "limit": json.Number("10"), "period": "billing", "overage": "block"}}, "featureMultipliers": []any{},
	})
	for _, absent := range []string{"scheduledChange", "pendingChange"} {
		if _, has := bought.object()[absent]; has {
			t.Errorf("it has %s: %s", absent, bought.body)
		}
	}
	if got := tn.balance(holder, "gold"); got != "5000" {
		t.Errorf("the balance is %s", got)
	}

	change("big").is(200).shows(fields{"planKey": "big", "topupsEnabled": false, "featureMultipliers": []any{fields{"featureKey": "chat", "basisPoints": json.Number("5000")}}})
	if got := tn.balance(holder, "gold"); got != "25000" {
		t.Errorf("after the upgrade the balance is %s", got)
	}
	deposits, entries := tn.get("/v1/deposits?identity="+url.QueryEscape(holder)).is(200), tn.get("/v1/wallets/"+url.PathEscape(holder)+"/journal").is(200)
	for i, deposit := range deposits.object()["data"].([]any) {
		if entry := entries.object()["data"].([]any)[i].(fields); entry["id"] != deposit.(fields)["id"] {
			t.Errorf("a grant is %v among the deposits, and %v in the journal", deposit.(fields)["id"], entry["id"])
		}
	}
	down := change("small").is(200).shows(fields{"planKey": "big"}).object()
	if queued, _ := down["scheduledChange"].(fields); queued["planKey"] != "small" || queued["effectiveAt"] != down["periodEnd"] {
		t.Errorf("the downgrade waits as %v", down["scheduledChange"])
	}
	ending := cancel(true).is(200).shows(fields{"cancelAtPeriodEnd": true}).object()
	if ending["scheduledChange"] != nil {
		t.Error("the downgrade outlives the cancellation")
	}
	change("small").refused("cancellation_scheduled")
	cancel(false).is(200).shows(fields{"cancelAtPeriodEnd": false})
	change("big").refused("already_on_plan")
	tn.post("/v1/subscription-checkout", newSubscriptionCheckout(holder, "small")).refused("subscription_exists")
	tn.post("/v1/topup-checkout", newTopup(holder, "gold")).refused("topups_disabled")
	portal := tn.post("/v1/billing-portal", fields{"identity": holder, "returnUrl": "https://shop.test/account"}).is(200)
	if !strings.HasPrefix(portal.text("url"), "http://purser.test/sandbox/") {
		t.Errorf("the portal is at %s", portal.text("url"))
	}
}

// TestPreviewedChanges previews each change and then makes it.
func TestPreviewedChanges(t *testing.T) {
	t.Parallel()
	tn := newShop(t)
	holder := newHolder()
	preview := func(plan string) answer {
		return tn.post(subscriptionPath(holder)+"/preview-change", fields{"planKey": plan}).is(200)
	}
	change := func(plan string) answer {
		return tn.post(subscriptionPath(holder)+"/change", fields{"planKey": plan, "idempotencyKey": newName()})
	}
	limited := fields{"limit": json.Number("10"), "period": "billing", "overage": "block"}

	preview("small").shows(fields{"kind": "start", "needs": "checkout", "refusedBy": "subscription_not_found", "chargeCents": json.Number("2900")})
	preview("free").shows(fields{"kind": "start", "needs": "nothing", "chargeCents": json.Number("0"), "grants": []any{}})
	tn.get(walletPath(holder)).refused("wallet_not_found")
	tn.buy(holder, "small")

	up := preview("big").shows(fields{
		"kind": "upgrade", "needs": "payment_method", "chargeCents": json.Number("9900"), "currency": "eur", "effectiveAt": recent(tn.node),
		"grants":      []any{fields{"creditKey": "gold", "amountNanocredits": "20000"}},
		"limits":      []any{fields{"featureKey": "chat", "from": limited}},
		"multipliers": []any{fields{"featureKey": "chat", "from": json.Number("10000"), "to": json.Number("5000")}},
	}).object()
	if up["refusedBy"] != nil || up["releases"] != nil || tn.balance(holder, "gold") != "5000" {
		t.Errorf("the preview is %v, and the balance %s", up, tn.balance(holder, "gold"))
	}
	change("big").is(200).shows(fields{"planKey": "big"})
	if got := tn.balance(holder, "gold"); got != "25000" {
		t.Errorf("the upgrade brings %s", got)
	}

	down := preview("small").shows(fields{
		"kind": "downgrade", "needs": "nothing", "chargeCents": json.Number("2900"), "limits": []any{fields{"featureKey": "chat", "to": limited}},
		"multipliers": []any{fields{"featureKey": "chat", "from": json.Number("5000"), "to": json.Number("10000")}},
	}).object()
	scheduled, _ := change("small").is(200).object()["scheduledChange"].(fields)
	if scheduled["effectiveAt"] != down["effectiveAt"] {
		t.Errorf("it takes effect at %v, and the preview says %v", scheduled["effectiveAt"], down["effectiveAt"])
	}
	preview("big").shows(fields{"kind": "same", "releases": fields{"scheduledPlanKey": "small"}, "grants": []any{}})
	change("big").is(200)
	preview("big").shows(fields{"kind": "same", "refusedBy": "already_on_plan"})
	change("big").refused("already_on_plan")
	tn.post(subscriptionPath(holder)+"/preview-change", fields{"planKey": "none"}).refused("plan_not_found")
}

func TestPendingChange(t *testing.T) {
	t.Parallel()
	tn := newShop(t)
	holder := newHolder()
	tn.buy(holder, "small")
	portal := tn.post("/v1/billing-portal", fields{"identity": holder, "returnUrl": "https://shop.test/account"}).is(200)
	tn.pay(portal.text("url"), "4000000000000341")
	waiting := tn.post(subscriptionPath(holder)+"/change", fields{"planKey": "big", "idempotencyKey": newName()}).is(200).shows(fields{"planKey": "small"})
	pending, _ := waiting.object()["pendingChange"].(fields)
	if pending["planKey"] != "big" || pending["expiresAt"] == nil || pending["paymentUrl"] == nil {
		t.Fatalf("it waits as %v", pending)
	}
	tn.pay(pending["paymentUrl"].(string), "4242424242424242")
	after := tn.get(subscriptionPath(holder)).is(200).shows(fields{"planKey": "big"}).object()
	if after["pendingChange"] != nil || tn.balance(holder, "gold") != "25000" {
		t.Errorf("after the payment it is %v", after)
	}
}

func TestTopupCheckout(t *testing.T) {
	t.Parallel()
	tn := newShop(t)
	holder := newHolder()
	body := newTopup(holder, "gold")
	page := tn.post("/v1/topup-checkout", body).is(200).shows(fields{"id": idOf(ids.Checkout)})
	t.Run("gives the same page to the same request, and refuses another under its key", func(t *testing.T) {
		tn.in(t).post("/v1/topup-checkout", body).is(200).shows(fields{"id": page.text("id"), "url": page.text("url")})
		tn.in(t).post("/v1/topup-checkout", merged(body, fields{"amountCents": 501})).refused("idempotency_conflict")
	})
	t.Run("changes the balance once it is paid", func(t *testing.T) {
		if got := tn.balance(holder, "gold"); got != "0" {
			t.Errorf("before, it is %s", got)
		}
		tn.pay(page.text("url"), "4242424242424242")
		if got := tn.balance(holder, "gold"); got != "1000" {
			t.Errorf("after, it is %s", got)
		}
		deposits := tn.in(t).get("/v1/deposits?identity=" + holder).is(200).object()["data"].([]any)
		if len(deposits) != 1 || deposits[0].(fields)["idempotencyKey"] != nil {
			t.Errorf("the deposits are %v", deposits)
		}
	})
	t.Run("refuses what cannot be sold", func(t *testing.T) {
		for code, change := range map[fault.Code]fields{
			"credit_not_found": {"creditKey": "none"}, "amount_too_small": {"amountCents": 49},
			"invalid_request": {"amountCents": 0},
		} {
			tn.in(t).post("/v1/topup-checkout", merged(newTopup(holder, "gold"), change)).refused(code)
		}
		if got := tn.in(t).post("/v1/topup-checkout", merged(newTopup(holder, "gold"), fields{"amountNanocredits": "0"})); got.status != 422 {
			t.Errorf("nothing for money is %d %s", got.status, got.body)
		}
	})
}

func TestSubscriptionRefusals(t *testing.T) {
	t.Parallel()
	tn := newShop(t)
	tn.plan("asleep", fields{"active": false})
	tn.plan("dollars", fields{"amountCents": 9900, "currency": "usd"})
	tn.settle()
	tn.plan("fresh", nil)
	bought := newHolder()
	tn.buy(bought, "small")
	change := func(identity, plan string) answer {
		return tn.post(subscriptionPath(identity)+"/change", fields{"planKey": plan, "idempotencyKey": newName()})
	}
	change(newHolder(), "small").refused("subscription_not_found")
	change(bought, "none").refused("plan_not_found")
	change(bought, "small").refused("already_on_plan")
	change(bought, "asleep").refused("plan_inactive")
	change(bought, "dollars").refused("currency_mismatch")
	tn.post(subscriptionPath(newHolder())+"/cancel", fields{"cancelAtPeriodEnd": true, "idempotencyKey": newName()}).refused("subscription_not_found")
	unpaid := newHolder() // the first payment is not confirmed yet, which is no overdue one
	tn.deposit(unpaid, "gold", "1")
	tn.subscribe(unpaid, "chat", metering.StatusIncomplete, metering.Limit{Limit: 10, Period: metering.LimitMonth, Overage: metering.OverageBlock})
	change(unpaid, "big").refused("payment_hold")
	tn.post(subscriptionPath(unpaid)+"/cancel", fields{"cancelAtPeriodEnd": true, "idempotencyKey": newName()}).refused("payment_hold")
	tn.post("/v1/subscription-checkout", newSubscriptionCheckout(newHolder(), "none")).refused("plan_not_found")
	tn.post("/v1/subscription-checkout", newSubscriptionCheckout(newHolder(), "asleep")).refused("plan_inactive")

	t.Run("a free plan starts at once", func(t *testing.T) {
		holder := newHolder()
		tn.in(t).post(subscriptionPath(holder)+"/change", fields{"planKey": "free", "idempotencyKey": newName()}).is(200).
			shows(fields{"planKey": "free", "status": "active"})
	})
	t.Run("the same change under its key is answered again, another is not", func(t *testing.T) {
		key := newName()
		first := tn.in(t).post(subscriptionPath(bought)+"/change", fields{"planKey": "big", "idempotencyKey": key}).is(200)
		again := tn.in(t).post(subscriptionPath(bought)+"/change", fields{"planKey": "big", "idempotencyKey": key}).is(200)
		if string(first.body) != string(again.body) {
			t.Errorf("first %s\nagain %s", first.body, again.body)
		}
		tn.in(t).post(subscriptionPath(bought)+"/change", fields{"planKey": "small", "idempotencyKey": key}).refused("idempotency_conflict")
	})
}

func TestLivePaymentsNeedAnAccount(t *testing.T) {
	t.Parallel()
	tn := newTenantAt(t, sharedNode(t), "Live "+newName(), true)
	tn.credit("gold")
	tn.plan("pro", nil)
	tn.settle()
	for target, body := range map[string]fields{
		"/v1/topup-checkout":        newTopup(newHolder(), "gold"),
		"/v1/subscription-checkout": newSubscriptionCheckout(newHolder(), "pro"),
		"/v1/billing-portal":        {"identity": newHolder(), "returnUrl": "https://shop.test/account"},
	} {
		tn.post(target, body).refused("payments_not_configured")
	}
}

func TestApplicationClock(t *testing.T) {
	t.Parallel()
	tn := newShop(t)
	holder := newHolder()
	tn.buy(holder, "small")
	was := tn.get(subscriptionPath(holder)).is(200).object()
	const month = 32 * 24 * time.Hour
	to := time.Now().Add(month).UnixMilli()
	if _, err := tn.node.cashier.sandbox.Advance(t.Context(), tn.app.ID, to); err != nil {
		t.Fatal(err)
	}
	t.Run("renews what is due on the way", func(t *testing.T) {
		tn.in(t).get(subscriptionPath(holder)).is(200).shows(fields{"status": "active", "periodStart": was["periodEnd"]})
		if got := tn.balance(holder, "gold"); got != "10000" {
			t.Errorf("the balance is %s", got)
		}
	})
	t.Run("dates what is written", func(t *testing.T) {
		for _, got := range []answer{
			tn.in(t).post("/v1/wallets", fields{"identity": newHolder()}).is(201),
			tn.in(t).post("/v1/credits", fields{"key": "late", "name": "Late", "unit": "coin"}).is(201),
		} {
			number, _ := got.object()["createdAt"].(json.Number)
			if at, err := number.Int64(); err != nil || at < to {
				t.Errorf("%s is dated %d, before %d", got, at, to)
			}
		}
	})
	t.Run("is no other application's", func(t *testing.T) {
		other := newTenant(t)
		other.post("/v1/wallets", fields{"identity": newHolder()}).is(201).shows(fields{"createdAt": recent(other.node)})
	})
}

func TestProviderUnavailable(t *testing.T) {
	t.Parallel()
	tn := newShop(t)
	body := newTopup(newHolder(), "gold")
	// The client tries three times before it gives up.
	tn.node.cashier.sandbox.Inject(tn.app.ID, sandbox.Fault{Kind: sandbox.Conflict, Times: 3, Only: "POST /v1/checkout/sessions"})
	tn.post("/v1/topup-checkout", body).refused("provider_unavailable")
	page := tn.post("/v1/topup-checkout", body).is(200)
	tn.post("/v1/topup-checkout", body).is(200).shows(fields{"id": page.text("id"), "url": page.text("url")})
}
