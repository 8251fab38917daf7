package main

import (
	"fmt"
	"net/http"
	"testing"

	"purser/web/browsertest"
)

// topUp is the address of a hosted page on which ten tokens are bought.
func (p place) topUp(identity, idempotencyKey string) string {
	p.Helper()
	page := p.post("/v1/topup-checkout", fmt.Sprintf(`{"identity": %q, "creditKey": "tokens", "amountNanocredits": "10000000000", "amountCents": 500, "currency": "usd",
		"successUrl": %q, "cancelUrl": %q, "idempotencyKey": %q}`, identity, p.thanks(), p.base+"/docs/usage", idempotencyKey))
	return page["url"].(string)
}

func checkouts(t *testing.T, p product) {
	at, tab := p.settle(t, "Till"), p.enter(t, browsertest.Desktop)
	at.stock()
	tab.Allow(http.StatusPaymentRequired)
	follow := func(button string, status int, address string) {
		t.Helper()
		if got := tab.Follow(fmt.Sprintf("button[value=%q]", button)); got != status {
			t.Errorf("%s: %d", button, got)
		}
		if address != "" && tab.Address() != address {
			t.Errorf("%s leads to %s", button, tab.Address())
		}
	}

	page := at.topUp("ann", "declined, then authenticated")
	tab.Visit(page)
	follow("4000000000000002", http.StatusPaymentRequired, page)
	want(t, tab, "[role=alert]", "declined")
	follow("4000002500003155", http.StatusOK, "")
	want(t, tab, "h1", "Confirm it's you")
	tab.CheckThemes()
	follow("fail", http.StatusOK, page)
	want(t, tab, "[role=alert]", "not authenticated")
	if wallet := at.call(http.MethodGet, "/v1/wallets/ann", "", http.StatusOK); len(wallet["balances"].([]any)) > 0 {
		t.Errorf("without a payment there is %v", wallet)
	}
	follow("4000002500003155", http.StatusOK, "")
	follow("complete", http.StatusOK, at.thanks())

	tab.Visit(at.topUp("ann", "paid"))
	tab.CheckThemes()
	tab.Fill("#card", "4242 4242 4242 4242")
	tab.Focus("#card")
	if status := tab.Enter(); status != http.StatusOK || tab.Address() != at.thanks() {
		t.Errorf("paying leads to %s with %d", tab.Address(), status)
	}
	page = at.topUp("ann", "expired")
	tab.Visit(page)
	follow("expire", http.StatusOK, page)
	want(t, tab, "h1", "expired")
	tab.CheckThemes()

	tab.Visit(at.app + "/checkouts")
	states := tab.Evaluate(`[...document.querySelectorAll("tbody .badge")].map((badge) => badge.textContent.replace(/ \d.*/, "")).join()`)
	if states != "Expired,Paid,Paid" {
		t.Errorf("the checkouts are %s", states)
	}
	at.walletOf(tab, "ann")
	want(t, tab, "main .table", "20")
}

func changePlan(t *testing.T, p product) {
	at, tab := p.settle(t, "Changes"), p.enter(t, browsertest.Desktop)
	at.stock()
	at.sell("small", 500, 1)
	at.sell("big", 2900, 100)
	tab.Visit(at.checkout("ada", "small"))
	tab.Follow(`button[value="4000002760003184"]`) // asks for a proof every time
	tab.Follow(`button[value=complete]`)
	states := func(want string) {
		t.Helper()
		tab.Visit(at.app + "/subscriptions")
		if got := tab.Evaluate(`[...document.querySelectorAll("td[data-label=State] .badge")].map((badge) => badge.textContent.replace(/ \d.*/, "")).join()`); got != want {
			t.Errorf("the subscription is %s, want %s", got, want)
		}
	}
	states("Active")

	changed := at.post("/v1/subscriptions/ada/change", `{"planKey": "big", "idempotencyKey": "up"}`)
	pending, waits := changed["pendingChange"].(map[string]any)
	if !waits || changed["planKey"] != "small" {
		t.Fatalf("the upgrade does not wait: %v", changed)
	}
	states("Active,Upgrade: payment pending")
	tab.Visit(pending["paymentUrl"].(string))
	tab.CheckThemes()
	if tab.Count(`button[value=complete]`) == 0 {
		tab.Follow(`button[value="4242424242424242"]`)
	} else {
		tab.Follow(`button[value=complete]`)
	}
	eventually(t, "the upgrade holds", func() bool { return at.subscription("ada")["planKey"] == "big" })
	states("Active")

	if changed = at.post("/v1/subscriptions/ada/change", `{"planKey": "small", "idempotencyKey": "down"}`); changed["scheduledChange"] == nil {
		t.Errorf("the downgrade does not wait: %v", changed)
	}
	states("Active,Downgrades")
	at.post("/v1/subscriptions/ada/cancel", `{"cancelAtPeriodEnd": true, "idempotencyKey": "end"}`)
	states("Active,Cancels")
	at.post("/v1/subscriptions/ada/cancel", `{"cancelAtPeriodEnd": false, "idempotencyKey": "keep"}`)
	states("Active")
	at.walletOf(tab, "ada")
	tab.Follow(`.tabs a[href$="/subscription"]`)
	want(t, tab, "main", "Big")
}

// refundTopUp is an admin who returns a top-up that is partly spent.
func refundTopUp(t *testing.T, p product) {
	at := p.settle(t, "Refunds")
	at.stock()
	at.make("/v1/wallets", `{"identity": "ada"}`)
	admin := p.invite(t, p.enter(t, browsertest.Desktop), "rita@example.com", `document.querySelector("[name=role][value=admin]").click()`)
	at.walletOf(admin, "ada")
	admin.Follow(`main a[href$="/topup"]`)
	admin.Fill("#field-amount", "10")
	admin.Fill("#field-price", "5.00")
	admin.Follow(save)
	paid, err := http.DefaultTransport.RoundTrip(formPost(t, admin.Text("#checkout-url"), "card=4242424242424242"))
	if err != nil {
		t.Fatal(err)
	}
	paid.Body.Close()
	eventually(t, "the top-up is credited", func() bool {
		return len(at.call(http.MethodGet, "/v1/wallets/ada", "", http.StatusOK)["balances"].([]any)) > 0
	})
	for i := range 2 {
		at.use(fmt.Sprint("spent ", i), "ada")
	}
	at.walletOf(admin, "ada")
	topUp := admin.Evaluate(`[...document.querySelectorAll("main tbody tr")].find((row) => row.textContent.includes("Top-up")).querySelector("a[href*='/transactions/']").href`)
	admin.Visit(topUp)
	want(t, admin, "#payment ~ *, main", "5.00")
	admin.Follow(`main a[href$="/refund"]`)
	want(t, admin, "main", "debt")
	admin.CheckScreens([]browsertest.Screen{browsertest.Desktop, browsertest.PhoneDark}, func(browsertest.Screen) {})
	admin.Allow(http.StatusUnprocessableEntity)
	admin.Evaluate(`document.querySelector("main form").noValidate = true`)
	if status := admin.Follow(save); status != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: %d", status)
	}
	admin.Focus("#field-reason")
	admin.Press("Bought by mistake")
	admin.Follow(save)
	want(t, admin, ".flash", "Refund of")
	eventually(t, "the credits are taken back", func() bool {
		balance := at.call(http.MethodGet, "/v1/wallets/ada", "", http.StatusOK)["balances"].([]any)[0].(map[string]any)
		return balance["amountNanocredits"] == "0" && balance["debtNanocredits"] == "4000000000"
	})
	admin.Reload()
	want(t, admin, "main", "Refunded")
	if admin.Count(`main a[href$="/refund"]`) != 0 {
		t.Error("the payment can be refunded again")
	}
	at.walletOf(admin, "ada")
	want(t, admin, "main", "4")
	admin.Visit(p.base + "/o/acme/audit")
	want(t, admin, "main tbody", "Bought by mistake")
}
