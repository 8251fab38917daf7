package main

import (
	"net/http"
	"strings"
	"testing"

	"purser/web/browsertest"
)

// TestJourneys walks through the product. The first run comes first, because only
// an empty database has one; the others go at the same time.
func TestJourneys(t *testing.T) {
	t.Parallel()
	p := startProduct(t, "PURSER_NEW_ORGANIZATIONS=on", "PURSER_WEBHOOK_NETWORKS=127.0.0.0/8")
	if !t.Run("first run to first accepted event, by keyboard", func(t *testing.T) { firstRun(t, p) }) {
		t.FailNow()
	}
	for claim, walk := range map[string]func(*testing.T, product){
		"every page holds up on every screen":                               everyPage,
		"a wrong password and an unknown address look the same":             wrongPassword,
		"a support member sees wallets and not keys":                        inviteSupport,
		"a member can't grant permissions they lack, even by a forged form": forgeGrant,
		"another site sends nothing, another tenant is not there":           strangers,
		"a key is seen once and never again":                                keyOnce,
		"a key is rotated with overlap, and a revoked one gets 401":         rotateKey,
		"a webhook is created, tested and sent again, and an alert":         receiveWebhooks,
		"a plan is synchronized, and a sync error is tried again":           syncPlan,
		"a catalog is copied from test to live after a review":              copyToLive,
		"two tabs edit one feature, without a script":                       editTwice,
		"a hostile identity is found, and its journal adds up":              hostileWallet,
		"a denial is explained as the API answers":                          whyDenied,
		"a denial of yesterday is explained in three steps":                 explainYesterday,
		"a subscription is sold, renewed and refunded by buttons":           driveSandbox,
		"a checkout is declined, authenticated, paid and expired":           checkouts,
		"a plan is upgraded after a proof, downgraded, ended, kept":         changePlan,
		"a top-up is refunded, and what was spent is owed":                  refundTopUp,
		"finance finds the revenue and the liability of this month":         monthEnd,
		"an application is archived, still readable, and restored":          archiveAndRestore,
		"deposits are filtered and exported, without a script":              exportDeposits,
		"the whole application is within reach of a thumb at 390 wide":      phone,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			walk(t, p)
		})
	}
}

// setupLink is in what the server prints until the first account is created.
func (p product) setupLink(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(p.greeting) {
		if link := strings.TrimSpace(line); strings.HasPrefix(link, p.base+"/setup/") {
			return link
		}
	}
	t.Fatalf("there is no link in %q", p.greeting)
	return ""
}

func firstRun(t *testing.T, p product) {
	tab, link := browsertest.Open(t, browsertest.Desktop), p.setupLink(t)
	tab.Visit(link)
	tab.CheckThemes()
	for _, field := range []struct{ name, text string }{
		{"name", "Ann Example"}, {"email", ownerEmail}, {"password", ownerPassword}, {"organization", "Acme"}, {"application", "Chat"},
	} {
		tab.TabTo("#field-" + field.name)
		tab.Press(field.text)
	}
	if status := tab.Enter(); status != http.StatusOK || tab.Address() != p.base+"/o/acme/a/chat/quickstart" {
		t.Fatalf("%d at %s", status, tab.Address())
	}
	want(t, tab, ".flash", "ready")
	want(t, tab, "#progress", "Waiting for your first event")

	watching := tab.Beside(t, browsertest.Desktop)
	watching.Visit(p.base + "/o/acme/a/chat/quickstart")
	watching.Evaluate(`window.sameDocument = true`)

	tab.TabTo(`.nav a[href$="/keys"]`)
	tab.Enter()
	tab.TabTo(`main a[href$="/keys/new"]`)
	tab.Enter()
	tab.TabTo("#field-name")
	tab.Press("Laptop")
	tab.TabTo("[name=preset]")
	tab.Press(browsertest.KeyUp)
	tab.TabTo("main button[type=submit]")
	tab.Enter()
	backend := place{caller: caller{t, p.base, tab.Text("#secret")}, product: p}
	tab.TabTo(".secret a")
	tab.Enter()
	want(t, tab, "#key + .card-body, .columns", "Never")

	backend.call(http.MethodPost, "/v1/events", `{"id": "too-early", "identity": "ann", "feature": "messages"}`, http.StatusNotFound)
	watching.Wait("#failures")
	want(t, watching, "#progress", "feature_not_found")
	backend.stock()
	backend.fund("ann", 10)
	if event := backend.use("first", "ann"); event["status"] != "accepted" {
		t.Errorf("the event is %v", event)
	}
	watching.Wait("#progress .callout[data-tone=ok]")
	want(t, watching, "#progress", "You sent your first event")
	if watching.Evaluate(`window.sameDocument`) != "true" {
		t.Error("the page was loaded again to show it")
	}

	stranger := browsertest.Open(t, browsertest.Desktop)
	stranger.Allow(http.StatusNotFound)
	if status := stranger.Visit(link); status != http.StatusNotFound {
		t.Errorf("the link opens again: %d", status)
	}
}

func wrongPassword(t *testing.T, p product) {
	seen := map[string]string{}
	for _, email := range []string{ownerEmail, "unknown@example.com"} {
		tab := browsertest.Open(t, browsertest.Desktop)
		tab.Allow(http.StatusUnprocessableEntity)
		tab.Visit(p.base + "/login")
		tab.Fill("#field-email", email)
		tab.Fill("#field-password", "not the password")
		if status := tab.Follow("main button[type=submit]"); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", email, status)
		}
		tab.WaitFocus(".problems")
		if tab.Value("#field-email") != email || tab.Value("#field-password") != "" {
			t.Errorf("%s: the form came back with %q and %q", email, tab.Value("#field-email"), tab.Value("#field-password"))
		}
		seen[strings.ReplaceAll(tab.Source(), email, "…")] = email
	}
	if len(seen) != 1 {
		t.Errorf("the pages differ: %v", seen)
	}
}

// invitedPassword is the password of all invited users.
const invitedPassword = ownerPassword + "!"

// invitation returns the link of an invitation by the owner.
func (p product) invitation(owner *browsertest.Tab, note, choose string) string {
	visit(owner, p.base+"/o/acme/members/invite")
	owner.Fill("#field-note", note)
	owner.Evaluate(choose)
	owner.Follow("main button[type=submit]")
	return owner.Text("#link")
}

// invite invites a user as the owner, and accepts in another browser.
func (p product) invite(t *testing.T, owner *browsertest.Tab, email, choose string) *browsertest.Tab {
	t.Helper()
	link := p.invitation(owner, email, choose)
	tab := browsertest.Open(t, browsertest.Desktop)
	tab.Visit(link)
	tab.Fill("#field-name", "Sam")
	tab.Fill("#field-email", email)
	tab.Fill("#field-password", invitedPassword)
	if status := tab.Follow("main button[type=submit]"); status != http.StatusOK || tab.Address() != p.base+"/o/acme" {
		t.Fatalf("accepting leads to %s with %d", tab.Address(), status)
	}
	again := browsertest.Open(t, browsertest.Desktop)
	again.Allow(http.StatusNotFound)
	if status := again.Visit(link); status != http.StatusNotFound {
		t.Errorf("the link opens again: %d", status)
	}
	return tab
}

func inviteSupport(t *testing.T, p product) {
	at := p.settle(t, "Support")
	at.stock()
	at.fund("ann", 10)
	tab := p.invite(t, p.enter(t, browsertest.Desktop), "sam@example.com", `document.querySelector("[name=role][value=support]").click()`)
	tab.Allow(http.StatusForbidden)
	at.walletOf(tab, "ann")
	want(t, tab, "h1", "ann")
	if tab.Count(`.nav a[href$="/wallets"]`) != 1 || tab.Count(`.nav a[href$="/keys"], .nav a[href$="/settings"], a[href$="/adjust"]`) != 0 {
		t.Error("the page offers what is not for support")
	}
	for _, path := range []string{"/keys", "/keys/new", "/settings"} {
		if status := tab.Visit(at.app + path); status != http.StatusForbidden {
			t.Errorf("%s: %d", path, status)
		}
	}
	tab.Visit(at.app + "/features/messages/edit")
	if tab.Count("main button[type=submit]") != 0 || tab.Count("fieldset[disabled]") != 1 {
		t.Error("the catalog can be changed")
	}
}

// forgeGrant is a member who makes keys and lacks the rest of the money.
func forgeGrant(t *testing.T, p product) {
	at := p.settle(t, "Grants")
	owner := p.enter(t, browsertest.Desktop)
	maker := p.invite(t, owner, "mel@example.com", `(() => {
		document.querySelector("[name=role][value=custom]").click();
		for (const box of document.querySelectorAll("[name=permission]")) box.checked = ["keys:read", "keys:write", "credits:read", "events:ingest"].includes(box.value);
	})()`)
	maker.Allow(http.StatusForbidden)
	maker.Visit(at.app + "/keys/new")
	if maker.Count("[name=preset][value=setup]:disabled") != 1 || maker.Count("[name=permissions][value='deposits:write']:disabled") != 1 {
		t.Error("more is offered than the member has")
	}
	maker.Evaluate(`(() => {
		for (const input of document.querySelectorAll(":disabled")) input.disabled = false;
		document.querySelector("[name=preset][value=setup]").click();
	})()`)
	maker.Fill("#field-name", "Forged")
	if status := maker.Follow("main button[type=submit]"); status != http.StatusForbidden {
		t.Errorf("the forged form is answered with %d", status)
	}
	if maker.Count("#secret") != 0 {
		t.Error("there is a secret")
	}

	developer := p.invite(t, owner, "dev@example.com", `document.querySelector("[name=role][value=developer]").click()`)
	developer.Allow(http.StatusForbidden)
	developer.Visit(at.app + "/credits/new")
	developer.Evaluate(`(() => {
		const form = document.querySelector("form.form");
		form.action = form.action.replace("/credits/new", "/keys/new");
		form.noValidate = true;
		for (const [name, value] of [["id", "key_01m7ewzp3pfr4976jxkvfa63gm"], ["preset", "ingestion"], ["lifetime", "none"]]) {
			const field = document.createElement("input");
			[field.type, field.name, field.value] = ["hidden", name, value];
			form.append(field);
		}
	})()`)
	developer.Fill("#field-name", "Forged")
	if status := developer.Follow("main button[type=submit]"); status != http.StatusForbidden {
		t.Errorf("the developer's form is answered with %d", status)
	}
	owner.Visit(at.app + "/keys")
	if got := owner.Count("tbody tr"); got != 1 {
		t.Errorf("there are %d keys", got)
	}
}
