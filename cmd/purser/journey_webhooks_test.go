package main

import (
	"net/http"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"purser/web/browsertest"
)

// receiveWebhooks creates an endpoint, sees its secret once, and follows a test and its
// repetition to a receiver.
func receiveWebhooks(t *testing.T, p product) {
	at, tab, receiver := p.settle(t, "Hooks"), p.enter(t, browsertest.Desktop), newHookReceiver(t, nil)
	tab.Allow(http.StatusConflict)
	tab.Visit(at.app + "/webhooks")
	want(t, tab, "main", "Receive your first notification locally")
	tab.Follow(`.page-title a[href$="/webhooks/new"]`)
	tab.Fill("#field-url", receiver.URL+"/hooks")
	tab.Follow("main button[type=submit]")
	secret := tab.Text("#secret")
	tab.Follow(".secret a")
	page := tab.Address()
	for _, where := range []func(){func() {}, tab.Back, func() { tab.Visit(page) }} {
		where()
		if len(secret) < 40 || strings.Contains(tab.Source(), secret[6:]) {
			t.Errorf("%s shows the secret again", tab.Address())
		}
	}

	tab.Choose("#field-type", "deposit.created")
	tab.Follow("form[action$='/test'] button")
	tab.Wait("#deliveries .attempt")
	want(t, tab, "#deliveries", "Delivered")
	tab.Follow("#deliveries form[action$='/redeliver'] button")
	tab.Wait("#deliveries .attempt + .attempt")
	got := receiver.received()
	if len(got) != 2 || got[0].ID != got[1].ID || !got[0].Test {
		t.Fatalf("received %+v", got)
	}
	hooks, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	for i, body := range receiver.bodies {
		if err := hooks.Verify(body, receiver.raw[i]); err != nil {
			t.Errorf("the official library refuses it: %v", err)
		}
	}
	tab.Visit(page)
	want(t, tab, ".page-title", "Healthy")

	at.stock()
	tab.Visit(at.app + "/settings/alerts")
	tab.Follow(`main a[href$="/settings/alerts/new"]`)
	tab.Fill("#field-key", "low")
	tab.Fill("#field-threshold-1", "9")
	tab.Follow("main button[type=submit]")
	want(t, tab, "tbody", "falls below 9 tokens")
	at.fund("ann", 10)
	at.use("first", "ann")
	eventually(t, "the alert arrives", func() bool {
		for _, n := range receiver.received() {
			if n.Type == "balance.low" && n.Identity == "ann" {
				return true
			}
		}
		return false
	})
}
