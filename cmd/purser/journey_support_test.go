package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/web/browsertest"
)

// hostile would run, close tags, turn the line around and end a header.
const hostile = `<img src=x onerror=alert(1)>"'&` + "\u202e" + `=cmd</title>`

func hostileWallet(t *testing.T, p product) {
	at, tab := p.settle(t, "Hostile"), p.enter(t, browsertest.Desktop)
	at.stock()
	at.fund("ann", 10)
	at.fund(hostile, 10)
	var event map[string]any
	for _, id := range []string{"one", "two", hostile} {
		event = at.use(id, hostile)
	}

	tab.Visit(at.app + "/wallets")
	tab.Evaluate(`window.sameDocument = true`)
	tab.Fill("#field-q", "<img")
	tab.WaitGone("#results tbody tr:nth-child(2)")
	if tab.Evaluate(`window.sameDocument`) != "true" {
		t.Error("the search has loaded the page again")
	}
	tab.Follow("#results tbody th a")
	want(t, tab, "h1", "<img src=x onerror=alert(1)>")
	want(t, tab, "#balances ~ *, main", "Matches")

	sum := tab.Evaluate(`[...document.querySelectorAll("td[data-label=Change] data")].reduce((sum, d) => sum + BigInt(d.value.replace("−", "-").replace("+", "")), 0n)`)
	last := tab.Evaluate(`document.querySelector("td[data-label='Balance after'] data").value`)
	stored := at.call(http.MethodGet, "/v1/wallets/"+url.PathEscape(hostile), "", http.StatusOK)["balances"].([]any)[0].(map[string]any)["amountNanocredits"]
	if sum != "4000000000" || last != sum || stored != sum {
		t.Errorf("the entries sum up to %s, the last says %s, the wallet %s", sum, last, stored)
	}

	tab.Visit(fmt.Sprintf("%s/transactions/%s", at.app, event["transactionId"]))
	want(t, tab, ".formula", "2")
	for _, path := range []string{"/events", "/deposits", "/check?" + url.Values{"identity": {hostile}, "feature": {"messages"}, "quantity": {"1"}}.Encode()} {
		tab.Visit(at.app + path)
		if !strings.Contains(tab.Source(), "&lt;img src=x") {
			t.Errorf("%s does not show it", path)
		}
	}
}

// whyDenied compares page and API for identities that are denied for each reason, and
// for one that is allowed.
func whyDenied(t *testing.T, p product) {
	at, tab := p.settle(t, "Denials"), p.enter(t, browsertest.Desktop)
	at.stock()
	at.sell("small", 500, 1)
	for _, identity := range []string{"full", "late"} {
		tab.Visit(at.checkout(identity, "small"))
		tab.Follow(`button[value="4242424242424242"]`)
	}
	portal := at.post("/v1/billing-portal", `{"identity": "late", "returnUrl": "`+at.thanks()+`"}`)
	tab.Visit(portal["url"].(string))
	tab.Follow(`button[value="4000000000000341"]`) // it is saved, and the renewal fails
	at.advance(35)
	at.fund("rich", 10)
	at.use("within the plan", "full")

	for identity, reason := range map[string]string{
		"rich": "", "poor": "insufficient_balance", "full": "feature_limit_exceeded", "late": "subscription_inactive",
	} {
		answer := at.post("/v1/check", fmt.Sprintf(`{"identity": %q, "feature": "messages"}`, identity))
		said, _ := answer["reason"].(string)
		if said != reason || answer["allowed"] != (reason == "") {
			t.Errorf("%s: the API answers %v", identity, answer)
		}
		tab.Visit(at.app + "/check")
		tab.Fill("#field-identity", identity)
		tab.Choose("#field-feature", "messages")
		tab.Fill("#field-quantity", "1")
		tab.Follow("main form button[type=submit]")
		failed, callout := tab.Count("[data-outcome=failed]"), tab.Text(".callout")
		switch {
		case reason == "" && (failed != 0 || !strings.Contains(callout, "Allowed")):
			t.Errorf("%s: %d gates failed: %s", identity, failed, callout)
		case reason != "" && (failed != 1 || !strings.Contains(callout, "API response: "+reason)):
			t.Errorf("%s: %d gates failed: %s", identity, failed, callout)
		}
		tab.Check()
	}

	tab.Visit(at.app + "/wallets?q=late")
	tab.Follow("#results th a")
	tab.Follow(`.tabs a[href$="/subscription"]`)
	want(t, tab, ".test-strip", "+35 days")
	want(t, tab, ".callout", "Payment overdue")
	tab.Check()
	tab.Follow(`form[action$="/portal"] button`)
	want(t, tab, "main", "5.00 USD")
	want(t, tab, ".badge[data-tone=danger]", "open")
	tab.Follow(`button[value="4242424242424242"]`)
	want(t, tab, ".sandbox-due", "retry the saved card")
	tab.Check()
}

// explainYesterday is support's question about a past denial, from an address in any case.
func explainYesterday(t *testing.T, p product) {
	at := p.settle(t, "Yesterday")
	at.stock()
	at.fund("felix@wingtip.example", 1)
	refused := `{"id": "too much", "identity": "felix@wingtip.example", "feature": "messages", "quantity": 50}`
	at.call(http.MethodPost, "/v1/events", refused, http.StatusConflict)
	at.advance(1)
	at.make("/v1/deposits", `{"identity": "felix@wingtip.example", "creditKey": "tokens", "amountNanocredits": "900000000000", "idempotencyKey": "enough for today"}`)
	tab := p.enter(t, browsertest.Desktop)
	tab.Visit(at.app)
	tab.Click(".search-link")
	tab.Wait("#palette[open]")
	tab.Fill("#palette-field", "FELIX@Wingtip.Example")
	tab.Wait(`#palette-hits a[href*="/wallets/wal_"]`)
	tab.Check()
	tab.Follow(`#palette-hits a[href*="/wallets/wal_"]`)
	want(t, tab, "h1", "felix@wingtip.example")
	tab.Follow(`.tabs a[href$="/denials"]`)
	tab.Follow("tbody th a")
	want(t, tab, "[data-outcome=failed]", "Balance covers the charge")
	want(t, tab, "main", "too much")
	tab.Follow(`main a[href*="/requests/req_"]`)
	want(t, tab, "main", "409")
	tab.Check()
}

// driveSandbox is a newcomer who sells a plan, waits a month and refunds it, without a
// terminal.
func driveSandbox(t *testing.T, p product) {
	at, tab := p.settle(t, "Sandbox"), p.enter(t, browsertest.Desktop)
	at.stock()
	at.sell("small", 500, 1)
	tab.Visit(at.app + "/wallets/new")
	tab.Fill("#field-identity", "newcomer")
	tab.Follow("main button[type=submit]")
	want(t, tab, "main", "Wallet created.")
	wallet := tab.Address()
	tab.Follow(`a[href$="/deposit"]`)
	tab.Fill("#field-amount", "12.5")
	tab.Follow("main form[method=get] button[type=submit]")
	want(t, tab, "main", "Balance after")
	tab.Check()
	tab.Follow(`form[action$="/deposit"] button`)
	want(t, tab, "main", "Added 12.5 tokens.")
	tab.Follow(`a[href$="/checkout"]`)
	tab.Follow(`form[action$="/checkout"] button`)
	link := tab.Text("#checkout-url")
	tab.Visit(link)
	tab.Follow(`button[value="4242424242424242"]`)
	if status := at.subscription("newcomer")["status"]; status != "active" {
		t.Fatalf("the subscription is %v", status)
	}
	first := at.subscription("newcomer")["periodEnd"]

	tab.Visit(at.app + "/sandbox")
	tab.Follow(`button[value="month"]`)
	want(t, tab, "main", "Sandbox time is now")
	want(t, tab, ".test-strip", "+31 days")
	if second := at.subscription("newcomer")["periodEnd"]; second == first {
		t.Error("the subscription has not renewed")
	}
	tab.Follow(`button[value="hold"]`)
	want(t, tab, "#webhooks ~ *, main", "Held")
	tab.Follow(`button[value="release"]`)
	want(t, tab, "main", "Webhooks released")
	tab.Follow(`form[action$="/fail"] button`)
	want(t, tab, "main", "The next renewal will fail.")
	tab.Follow(`button[value="month"]`)
	want(t, tab, "main", "Payment overdue")
	tab.Check()
	tab.Follow(`button[value="fail"]`)
	want(t, tab, ".flash", "The payment failed")
	tab.Follow(`button[value="pay"]`)
	want(t, tab, ".flash", "Invoice paid.")
	if hold := at.subscription("newcomer")["paymentHold"]; hold == true {
		t.Error("the subscription is still on hold")
	}
	tab.Follow(`form[action$="/refund"] button`)
	want(t, tab, "main", "Refunded 5.00 USD")
	tab.Check()

	tab.Visit(wallet)
	tab.Click("#cancel-plan > summary")
	tab.Follow(`#cancel-plan button[type=submit]`)
	want(t, tab, "main", "The subscription ends at the end of the current period.")
	tab.Follow(`button[value="undo"]`)
	want(t, tab, "main", "The cancellation was undone. The subscription will renew.")
	if at.subscription("newcomer")["cancelAtPeriodEnd"] != false {
		t.Error("it is still canceled")
	}
}

// advance moves the sandbox's clock ahead.
func (p place) advance(days int64) {
	p.Helper()
	clock := "/sandbox/apps/" + p.made.AppID + "/clock"
	now := int64(p.call(http.MethodGet, clock, "", http.StatusOK)["now"].(float64))
	to, err := json.Marshal(map[string]int64{"advanceTo": now + days*24*60*60*1000})
	if err != nil {
		p.Fatal(err)
	}
	p.post(clock, string(to))
}

func exportDeposits(t *testing.T, p product) {
	at, tab := p.settle(t, "Deposits"), p.enter(t, browsertest.Desktop)
	at.stock()
	at.make("/v1/credits", `{"key": "coins", "name": "Coins", "unit": "coin"}`)
	at.fund("ann", 10)
	at.fund("bob", 20)
	at.make("/v1/deposits", `{"identity": "=cmd|calc", "creditKey": "coins", "amountNanocredits": "1", "idempotencyKey": "@sum"}`)
	tab.WithoutScripts()
	tab.Visit(at.app + "/deposits")
	if got := tab.Count("tbody tr"); got != 3 {
		t.Errorf("there are %d deposits", got)
	}
	tab.Choose("#field-credit", "coins")
	tab.Follow(".filters button")
	if got := tab.Count("tbody tr"); got != 1 || !strings.Contains(tab.Address(), "credit=coins") {
		t.Errorf("%s shows %d deposits", tab.Address(), got)
	}
	export := tab.Evaluate(`document.querySelector("a[href*='deposits.csv']").href`)
	reader := tab.Beside(t, browsertest.Desktop)
	reader.Visit(at.app + "/deposits")
	rows, err := csv.NewReader(strings.NewReader(reader.Fetch(export))).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v: %v", err, rows)
	}
	if row := rows[1]; row[2] != "'=cmd|calc" || row[6] != "1" || row[7] != "'@sum" {
		t.Errorf("the row is %q", row)
	}
}

// phone opens everything in the menu with a thumb.
func phone(t *testing.T, p product) {
	at, tab := p.settle(t, "Phone"), p.enterAs(t, browsertest.Phone, ownerEmail, ownerPassword)
	at.stock()
	at.fund("ann", 10)
	at.use("one", "ann")
	tab.Visit(at.app)
	menu := strings.Fields(tab.Evaluate(`[...document.querySelectorAll(".nav a")].map((a) => a.getAttribute("href")).join(" ")`))
	if len(menu) < 14 {
		t.Errorf("the menu has only %v", menu)
	}
	for _, href := range menu {
		tab.Click(".topbar button")
		tab.Wait(".sidebar .nav a")
		if status := tab.Follow(fmt.Sprintf(".sidebar .nav a[href=%q]", href)); status != http.StatusOK {
			t.Errorf("%s: %d", href, status)
		}
		tab.WaitGone(".sidebar")
		if tab.Count("main h1") != 1 || !strings.HasPrefix(tab.Title(), "[Test]") {
			t.Errorf("%s: %d headings, and the title is %q", href, tab.Count("main h1"), tab.Title())
		}
	}
}
