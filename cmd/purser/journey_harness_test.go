package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/web/browsertest"
)

// The journeys are walked in a real browser, on one server that runs as 'purser
// serve' does. Each has an application of its own. Whatever the browser complains
// of on the way fails the journey: see package browsertest.

// The owner is made by the first journey. The others sign in as them.
const (
	ownerEmail    = "ann@example.com"
	ownerPassword = "seven grey herons at dusk"
)

// place is an application of the owner's, and a backend that uses it.
type place struct {
	caller
	product product
	made    madeKey
	app     string // its address
}

// settle makes an application for a journey. Its name is its slug, capitalized.
func (p product) settle(t *testing.T, name string, args ...string) place {
	t.Helper()
	made := p.newKey(t, append([]string{"--org", "Acme", "--app", name, "--preset", "setup"}, args...)...)
	return place{caller: caller{t, p.base, made.Secret}, product: p, made: made, app: p.base + "/o/acme/a/" + strings.ToLower(name)}
}

// enter opens a tab in which the owner is signed in. The login is sent without the
// browser, which takes less time than its pages; enterAs uses the form.
func (p product) enter(t *testing.T, screen browsertest.Screen) *browsertest.Tab {
	t.Helper()
	jar := signIn(t, p.base, ownerEmail, ownerPassword).client.Jar
	at, err := url.Parse(p.base)
	if err != nil {
		t.Fatal(err)
	}
	tab := browsertest.Open(t, screen)
	for _, cookie := range jar.Cookies(at) {
		tab.SetCookie(p.base, cookie.Name, cookie.Value)
	}
	return tab
}

// enterAs opens a tab and signs in by the form.
func (p product) enterAs(t *testing.T, screen browsertest.Screen, email, password string) *browsertest.Tab {
	t.Helper()
	tab := browsertest.Open(t, screen)
	tab.Visit(p.base + "/login")
	tab.Fill("#field-email", email)
	tab.Fill("#field-password", password)
	if status := tab.Follow("main button[type=submit]"); status != http.StatusOK || !strings.HasPrefix(tab.Address(), p.base+"/o") {
		t.Fatalf("signing in leads to %s with %d", tab.Address(), status)
	}
	return tab
}

// visit opens a page as the owner. Some need a password that was entered in the last ten
// minutes: on a busy machine the sign-in can be longer ago.
func visit(tab *browsertest.Tab, address string) (status int) {
	status = tab.Visit(address)
	if strings.Contains(tab.Address(), "/confirm?next=") {
		tab.Fill("#field-password", ownerPassword)
		status = tab.Follow("main button[type=submit]")
	}
	return status
}

// make sends what makes something.
func (p place) make(path, body string) map[string]any {
	p.Helper()
	return p.call(http.MethodPost, path, body, http.StatusCreated)
}

// stock makes a credit and a feature that costs two of it.
func (p place) stock() {
	p.Helper()
	p.make("/v1/credits", `{"key": "tokens", "name": "Tokens", "unit": "token"}`)
	p.make("/v1/features", `{"key": "messages", "name": "Messages", "unit": "message", "creditKey": "tokens", "costNanocredits": "2000000000"}`)
}

// fund deposits whole tokens.
func (p place) fund(identity string, tokens int) {
	p.Helper()
	p.make("/v1/deposits", fmt.Sprintf(`{"identity": %q, "creditKey": "tokens", "amountNanocredits": "%d000000000", "idempotencyKey": %q}`, identity, tokens, "fund-"+identity))
}

// use tracks one message.
func (p place) use(event, identity string) map[string]any {
	p.Helper()
	return p.make("/v1/events", fmt.Sprintf(`{"id": %q, "identity": %q, "feature": "messages"}`, event, identity))
}

// sell makes a plan of 29 dollars a month with ten messages in it, and waits until
// the payment provider knows it.
func (p place) sell(key string, cents, messages int) {
	p.Helper()
	p.make("/v1/plans", fmt.Sprintf(`{"key": %q, "name": %q, "amountCents": %d, "currency": "usd", "interval": "month",
		"featureLimits": [{"featureKey": "messages", "limit": %d}], "creditGrants": [{"creditKey": "tokens", "amountNanocredits": "5000000000"}]}`,
		key, strings.ToUpper(key[:1])+key[1:], cents, messages))
	eventually(p.T, "the plan "+key+" is synchronized", func() bool {
		return p.call(http.MethodGet, "/v1/plans/"+key, "", http.StatusOK)["syncStatus"] == "synced"
	})
}

// checkout is the address of a hosted page that sells a subscription.
func (p place) checkout(identity, plan string) string {
	p.Helper()
	page := p.post("/v1/subscription-checkout", fmt.Sprintf(`{"identity": %q, "planKey": %q, "successUrl": %q, "cancelUrl": %q, "idempotencyKey": %q}`,
		identity, plan, p.thanks(), p.base+"/docs/usage", identity+" subscribes to "+plan))
	return page["url"].(string)
}

// thanks is where customers are sent after paying: any page will do.
func (p place) thanks() string { return p.base + "/docs/payments" }

// subscription is what the API says about one.
func (p place) subscription(identity string) map[string]any {
	p.Helper()
	return p.call(http.MethodGet, "/v1/subscriptions/"+identity, "", http.StatusOK)
}

// walletOf opens the page of a wallet.
func (p place) walletOf(tab *browsertest.Tab, identity string) {
	p.Helper()
	tab.Visit(p.app + "/wallets?" + url.Values{"q": {identity}}.Encode())
	tab.Follow("#results tbody th a")
}

// want fails unless the part of the page reads so.
func want(t *testing.T, tab *browsertest.Tab, selector, text string) {
	t.Helper()
	if got := tab.Text(selector); !strings.Contains(got, text) {
		t.Errorf("%s: %s reads %q, want %q", tab.Address(), selector, got, text)
	}
}
