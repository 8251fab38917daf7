package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"purser/store/storetest"
	"purser/web/browsertest"
)

// makeSecret makes a key with the preset for everything, and leaves the tab where
// its secret is shown.
func (p place) makeSecret(tab *browsertest.Tab, name string) string {
	p.Helper()
	visit(tab, p.app+"/keys/new")
	tab.Fill("#field-name", name)
	tab.Click("[name=preset][value=setup]")
	tab.Follow("main button[type=submit]")
	return tab.Text("#secret")
}

func keyOnce(t *testing.T, p product) {
	at, tab := p.settle(t, "Secrets"), p.enter(t, browsertest.Desktop)
	tab.Allow(http.StatusConflict)
	secret := at.makeSecret(tab, "Shown once")
	caller{t, p.base, secret}.call(http.MethodGet, "/v1/application", "", http.StatusOK)
	if tab.Header("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control is %q", tab.Header("Cache-Control"))
	}
	random := secret[strings.LastIndex(secret, "_")+1:]
	gone := func(where, text string) {
		t.Helper()
		if len(random) < 20 || strings.Contains(text, random) {
			t.Errorf("the secret is in %s", where)
		}
	}

	if status := tab.Reload(); status != http.StatusConflict {
		t.Errorf("reloading answers %d", status)
	}
	gone("the page after a reload", tab.Source())
	want(t, tab, "main", "already exists")

	secret = at.makeSecret(tab, "Stored")
	random = secret[strings.LastIndex(secret, "_")+1:]
	if !strings.Contains(tab.Source(), random) {
		t.Error("the search does not find the secret where it is shown")
	}
	tab.Follow(".secret a")
	page := tab.Address()
	gone("the page of the key", tab.Source())
	tab.Back()
	gone("the page after Back", tab.Source())
	tab.Forward()
	gone("the page after Forward", tab.Source())

	other := tab.Beside(t, browsertest.Desktop)
	for _, address := range []string{page, at.app + "/keys", at.app + "/keys/new", p.base + "/o/acme/audit", at.app + "/requests"} {
		other.Visit(address)
		gone("another tab at "+address, other.Source())
		gone("what the server sends for "+address, other.Fetch(address))
	}
	gone("the browser's stores", other.Evaluate(`JSON.stringify([{...localStorage}, {...sessionStorage}, history.state])`))
	gone("the log", p.log.String())
	if tables := storetest.TablesWith(t, p.database, random); len(tables) > 0 {
		t.Errorf("the secret is in the tables %v", tables)
	}
	if tables := storetest.TablesWith(t, p.database, "Shown once"); len(tables) == 0 {
		t.Error("the search finds nothing that is in the database")
	}
}

func rotateKey(t *testing.T, p product) {
	at, tab := p.settle(t, "Rotation"), p.enter(t, browsertest.Desktop)
	answers := func(secret string, want int) {
		t.Helper()
		caller{t, p.base, secret}.call(http.MethodGet, "/v1/application", "", want)
	}
	first := at.makeSecret(tab, "Server")
	tab.Follow(".secret a")
	old := tab.Address()
	tab.Choose("#field-overlap", "24h")
	tab.Follow("#rotate ~ .card-body button, form[action$='/rotate'] button")
	second := tab.Text("#secret")
	want(t, tab, ".callout", "works until")
	if first == second {
		t.Error("the replacement is the same")
	}
	answers(first, http.StatusOK)
	answers(second, http.StatusOK)

	tab.Visit(old)
	tab.Until(".callout[data-tone=warn]") // the old key was used after its rotation
	want(t, tab, "main", "Retiring")
	tab.Click("#revoke summary")
	tab.Follow("#revoke form button")
	want(t, tab, ".flash", "revoked")
	answers(first, http.StatusUnauthorized)
	answers(second, http.StatusOK)
}

// strangers sends requests from another site, and from a user of another organization.
func strangers(t *testing.T, p product) {
	p.newKey(t, "--org", "Bolt", "--app", "Shop", "--preset", "setup")
	tab := p.enterAs(t, browsertest.Desktop, ownerEmail, ownerPassword)
	tab.Allow(http.StatusForbidden)
	tab.Allow(http.StatusNotFound)

	// On another port of the same machine it is another origin, to which browsers
	// still send the session.
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!DOCTYPE html><html lang="en"><title>Prizes</title><link rel="icon" href="data:,">
			<form method="post" action="` + p.base + `/o/new"><input name="name" value="Stolen"><button>Win</button></form></html>`))
	}))
	t.Cleanup(evil.Close)
	tab.Visit(evil.URL)
	if status := tab.Follow("button"); status != http.StatusForbidden {
		t.Errorf("the form of another site is answered with %d", status)
	}
	tab.Visit(p.base + "/o")
	if strings.Contains(tab.Source(), "Stolen") {
		t.Error("the form of another site had an effect")
	}

	for _, path := range []string{"", "/members", "/a/shop", "/a/shop/wallets", "/a/shop/keys/new"} {
		var read []string
		for _, org := range []string{"bolt", "missing"} {
			if status := tab.Visit(p.base + "/o/" + org + path); status != http.StatusNotFound {
				t.Errorf("%s%s: %d", org, path, status)
			}
			if csp := tab.Header("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") {
				t.Errorf("%s%s: the policy is %q", org, path, csp)
			}
			read = append(read, tab.Text("h1"))
		}
		if read[0] != read[1] {
			t.Errorf("%s: an organization of others reads %q, a missing one %q", path, read[0], read[1])
		}
	}
}
