package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"purser/store/storetest"
	"purser/web/browsertest"
)

// monthEnd is finance, who asks for the revenue and the liability of this month.
func monthEnd(t *testing.T, p product) {
	storetest.AvoidEndOf(t, 24*time.Hour)
	at, tab := p.settle(t, "Finance"), p.enter(t, browsertest.Desktop)
	at.stock()
	at.sell("small", 500, 1)
	for _, page := range []string{at.checkout("ada", "small"), at.topUp("ada", "credits")} {
		paid, err := http.DefaultTransport.RoundTrip(formPost(t, page, "card=4242424242424242"))
		if err != nil {
			t.Fatal(err)
		}
		paid.Body.Close()
	}
	held := func() any {
		return at.call(http.MethodGet, "/v1/wallets/ada", "", http.StatusOK)["balances"].([]any)[0].(map[string]any)["amountNanocredits"]
	}
	eventually(t, "plan and top-up are credited", func() bool { return held() == "15000000000" })
	at.fund("bob", 10)
	at.use("charged", "bob")

	tab.Visit(at.app)
	tab.Follow(`main a[href$="days=month"]`)
	want(t, tab, "#revenue ~ *, main", "Revenue")
	row := func(table string) string {
		return tab.Evaluate(`[...document.querySelectorAll(".table-frame[aria-label^='` + table + `'] tbody tr > *")].map((cell) => cell.textContent.trim()).join(" | ")`)
	}
	if got := row("Revenue by currency"); got != "10.00 USD | 5.00 USD | 5.00 USD | 0.00 USD" {
		t.Errorf("the revenue is %q", got)
	}
	// What customers hold is added up every ten minutes, which may have been before. Usage is
	// added up every minute, but a slow update is followed by a pause of up to usageSweep.
	eventuallyWithin(t, usageSweep+patience, "the credits are what was sold, granted, deposited and charged", func() bool {
		tab.Reload()
		return strings.HasPrefix(row("Credits sold"), "tokens | 10 | 5 | 10 | 0 | 2 | ")
	})
	tab.Check()
}

// archiveAndRestore archives an application, looks at it and restores it.
func archiveAndRestore(t *testing.T, p product) {
	at, tab := p.settle(t, "Attic"), p.enter(t, browsertest.Desktop)
	at.stock()
	at.fund("ann", 10)
	tab.Visit(at.app + "/settings")
	tab.Follow(`main a[href$="/settings/archive"]`)
	want(t, tab, "main", "1 working key")
	tab.Fill("#field-confirm", "Attic")
	tab.Follow(save)
	want(t, tab, ".flash", "Attic is archived")
	refused := at.call(http.MethodGet, "/v1/wallets/ann", "", http.StatusUnauthorized)
	if refused["error"] != "revoked_api_key" {
		t.Errorf("the key is refused with %v", refused)
	}

	tab.Follow(`main a[href$="show=archived"]`)
	tab.Follow(`.app-cards a[href="/o/acme/a/attic"]`)
	want(t, tab, ".archived-strip", "read-only since")
	tab.CheckScreens([]browsertest.Screen{browsertest.Desktop, browsertest.PhoneDark}, func(browsertest.Screen) {})
	at.walletOf(tab, "ann")
	want(t, tab, "h1", "ann")
	if tab.Count(`main a[href$="/deposit"], main a[href$="/adjust"]`) != 0 {
		t.Error("the page offers to change something")
	}
	at.call(http.MethodGet, "/v1/wallets/ann", "", http.StatusUnauthorized) // is repeated from memory for a second
	tab.Follow(".archived-strip button")
	want(t, tab, ".flash", "Application restored")
	at.call(http.MethodGet, "/v1/wallets/ann", "", http.StatusOK)
}
