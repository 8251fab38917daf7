package main

import (
	"encoding/base32"
	"net/http"
	"strings"
	"testing"
	"time"

	"purser/tenancy/credential"
	"purser/web/browsertest"
)

// lookFromOutside checks the pages for visitors who are not signed in, each while it is
// open.
func (p product) lookFromOutside(t *testing.T, owner *browsertest.Tab) {
	link := p.invitation(owner, "Carol", `document.querySelector("[name=role][value=support]").click()`)
	stranger := browsertest.Open(t, browsertest.Desktop)
	for _, address := range []string{p.base + "/", p.base + "/login", p.base + "/forgot", link} {
		lookOver(t, stranger, address)
	}

	const email = "guarded@example.com"
	p.guard(t, p.invite(t, owner, email, `document.querySelector("[name=role][value=support]").click()`))
	stranger.Visit(p.base + "/login")
	stranger.Fill("#field-email", email)
	stranger.Fill("#field-password", invitedPassword)
	if status := stranger.Follow("main button[type=submit]"); status != http.StatusOK || !strings.HasPrefix(stranger.Address(), p.base+"/login/code") {
		t.Fatalf("signing in leads to %s with %d", stranger.Address(), status)
	}
	look(t, stranger)

	// The link of an invitation shows another page to a signed-in user.
	lookOver(t, owner, link)
}

// guard sets up an authenticator for the tab's user, and checks the page of recovery
// codes, which is shown only then.
func (p product) guard(t *testing.T, tab *browsertest.Tab) {
	t.Helper()
	tab.Visit(p.base + "/account/factor")
	seed, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ReplaceAll(tab.Text("#seed"), " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	enter := func() int {
		tab.Fill("#field-code", credential.Seed(seed).Code(time.Now().Unix()/30))
		return tab.Follow("main button[type=submit]")
	}
	tab.Allow(http.StatusUnprocessableEntity)
	status := enter()
	if status == http.StatusUnprocessableEntity { // the code expired on the way
		status = enter()
	}
	if status != http.StatusOK || tab.Count("#codes") != 1 {
		t.Fatalf("setting up an authenticator is answered with %d", status)
	}
	look(t, tab)
}
