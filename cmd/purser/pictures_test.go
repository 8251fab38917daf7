//go:build screenshots

package main

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"purser/cmd/purser/demo"
	"purser/store/storetest"
	"purser/web/browsertest"
)

// TestPictures takes what the documentation shows, of the demo. Only make
// screenshots builds it: it shows pages, and nothing about them.
func TestPictures(t *testing.T) {
	base, greeting, stop := startDemo(t, []string{
		"DATABASE_URL=" + storetest.FreshURL(t),
		"PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey),
		"PURSER_DATA=" + filepath.Join(t.TempDir(), "data"),
	})
	t.Cleanup(stop)
	p := product{base: base}
	owner := p.enterAs(t, browsertest.Desktop, "owner@lumen.example", shownPassword.FindStringSubmatch(greeting)[1])
	addresses := picturedAddresses(p, owner)
	for _, screen := range browsertest.Screens {
		tab := owner.Beside(t, screen)
		for name, address := range addresses {
			tab.Visit(address)
			tab.Picture(name + "-" + screen.Name)
		}
	}
}

func picturedAddresses(p product, owner *browsertest.Tab) map[string]string {
	app := p.base + "/o/lumen/a/studio"
	link := func(page, selector string) string {
		owner.Visit(page)
		return owner.Evaluate(`document.querySelector("` + selector + `").href`)
	}
	wallet := link(app+"/wallets?q=fabrikam", "#results tbody th a")
	return map[string]string{
		"organization": p.base + "/o/lumen",
		"overview":     app,
		"wallets":      app + "/wallets",
		"wallet":       wallet,
		"transaction":  link(wallet+"/usage", "tbody th a"),
		"check":        app + "/check?" + url.Values{"identity": {demo.OverLimit}, "feature": {"chat"}, "quantity": {"1001"}}.Encode(),
		"events":       app + "/events",
		"plans":        app + "/plans",
		"plan":         link(app+"/plans", "tbody th a"),
		"keys":         app + "/keys",
		"quickstart":   app + "/quickstart",
		"audit":        p.base + "/o/lumen/audit",
		"docs":         p.base + "/docs/usage",
	}
}
