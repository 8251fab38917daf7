package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/web/browsertest"
)

// save is the button that sends the form of a page in the catalog.
const save = "main form .form-actions button[type=submit]"

func syncPlan(t *testing.T, p product) {
	at, tab := p.settle(t, "Sync"), p.enter(t, browsertest.Desktop)
	at.stock()
	tab.Visit(at.app + "/plans/new")
	tab.Fill("#field-key", "pro")
	tab.Fill("#field-name", "Pro")
	tab.Fill("#field-amount", "29.00")
	tab.Choose(`[name="limits.0.feature"]`, "messages")
	tab.Fill(`[name="limits.0.limit"]`, "100")
	tab.Follow(save)
	want(t, tab, ".flash", "Plan pro created")
	tab.Follow(`tbody a[href$="/plans/pro/view"]`)
	tab.Follow(`main a[href$="/plans/pro/edit"]`)
	tab.Until("#sync, .sync .badge[data-tone=ok]")
	tab.Until(".sync .badge[data-tone=ok]")
	if got := at.call(http.MethodGet, "/v1/plans/pro", "", http.StatusOK); got["providerPriceId"] == nil || got["amountCents"] != 2900.0 {
		t.Errorf("the plan is %v", got)
	}

	const reason = `No such product: <b>prod_1</b> & "more"`
	at.refuse("pro", reason)
	tab.Reload()
	want(t, tab, ".sync-error", reason)
	tab.Visit(at.app)
	want(t, tab, "#attention ~ .card-body, main", reason)
	tab.Visit(at.app + "/plans/pro/edit")
	tab.Follow(".sync form button")
	want(t, tab, ".flash", "Retrying sync")
	tab.Until(".sync .badge[data-tone=ok]")
}

// refuse has the provider say no to a plan. The sandbox takes every plan, so this
// is written as the cashier writes it.
func (p place) refuse(plan, reason string) {
	p.Helper()
	db, err := store.Open(p.Context(), p.product.database, store.Options{MaxConns: 2})
	if err != nil {
		p.Fatal(err)
	}
	defer db.Close()
	org, err := ids.Parse(ids.Organization, p.made.OrgID)
	if err != nil {
		p.Fatal(err)
	}
	app, err := ids.Parse(ids.Application, p.made.AppID)
	if err != nil {
		p.Fatal(err)
	}
	if err := refusePlan(p.Context(), db, tenancy.Scope{OrgID: org, AppID: app}, plan, reason); err != nil {
		p.Fatal(err)
	}
}

func refusePlan(ctx context.Context, db *store.Store, scope tenancy.Scope, key, reason string) error {
	plan, err := db.App(scope).Plan(ctx, key)
	if err != nil {
		return err
	}
	fence, held, err := db.Queue(scope).Lease(ctx, "plan:"+plan.ID.String(), ids.New(), time.Minute)
	for ; err == nil && !held; <-time.After(20 * time.Millisecond) { // the job that synchronized it still has it
		fence, held, err = db.Queue(scope).Lease(ctx, "plan:"+plan.ID.String(), ids.New(), time.Minute)
	}
	if err != nil {
		return err
	}
	if err := db.Payments(scope).PlanRefused(ctx, fence, plan.ID, plan.Sync, reason); err != nil {
		return err
	}
	return db.Queue(scope).Release(ctx, fence)
}

func editTwice(t *testing.T, p product) {
	at, one := p.settle(t, "Tabs"), p.enter(t, browsertest.Desktop)
	at.stock()
	two := one.Beside(t, browsertest.Desktop)
	for _, tab := range []*browsertest.Tab{one, two} {
		tab.WithoutScripts()
		tab.Visit(at.app + "/features/messages/edit")
	}
	one.Fill("#field-name", "Chats")
	one.Follow(save)
	want(t, one, ".flash", "saved")

	two.Allow(http.StatusConflict)
	two.Fill("#field-cost", "3")
	if status := two.Follow(save); status != http.StatusConflict {
		t.Errorf("the second is answered with %d", status)
	}
	two.WaitFocus("#conflict")
	if two.Count("[data-differs]") != 2 {
		t.Errorf("the comparison has %d differences", two.Count("[data-differs]"))
	}
	want(t, two, ".conflict tbody", "Chats")
	if two.Value("#field-cost") != "3" || two.Value("#field-name") != "Messages" {
		t.Error("what was typed is gone")
	}
	two.Fill("#field-name", "Chats")
	two.Follow(save)
	want(t, two, ".flash", "saved")
	if got := at.call(http.MethodGet, "/v1/features/messages", "", http.StatusOK); got["name"] != "Chats" || got["costNanocredits"] != "3000000000" {
		t.Errorf("the feature is %v", got)
	}
}

func copyToLive(t *testing.T, p product) {
	from, to := p.settle(t, "Draft"), p.settle(t, "Store", "--live")
	from.stock()
	from.sell("pro", 2900, 100)
	to.make("/v1/credits", `{"key": "tokens", "name": "Old name", "unit": "token"}`)
	developer := p.invite(t, p.enter(t, browsertest.Desktop), "carl@example.com", `document.querySelector("[name=role][value=developer]").click()`)
	developer.Visit(from.app + "/plans")
	developer.Follow(`main a[href$="/catalog/copy"]`)
	developer.Choose("#field-to", "store")
	developer.Follow("main form button[type=submit]")
	want(t, developer, "#changes ~ *, main", "Old name")
	if got := developer.Evaluate(`[...document.querySelectorAll("tbody .badge")].map((badge) => badge.textContent).join()`); got != "Update,New,New" {
		t.Errorf("the changes are %s", got)
	}
	developer.CheckScreens([]browsertest.Screen{browsertest.Desktop, browsertest.PhoneDark}, func(browsertest.Screen) {})

	developer.Allow(http.StatusUnprocessableEntity)
	const copies = `main form[method=post] button[type=submit]`
	developer.Fill("#field-confirm", "Draft")
	if status := developer.Follow(copies); status != http.StatusUnprocessableEntity {
		t.Errorf("another name is answered with %d", status)
	}
	to.make("/v1/credits", `{"key": "coins", "name": "Coins", "unit": "coin"}`)
	developer.Fill("#field-confirm", "Store")
	if status := developer.Follow(copies); status != http.StatusUnprocessableEntity {
		t.Errorf("a catalog that changed in between is answered with %d", status)
	}
	want(t, developer, ".problems", "changed")
	developer.Fill("#field-confirm", "Store")
	developer.Follow(copies)
	want(t, developer, ".flash", "2 items created, 1 item updated")
	if got := to.call(http.MethodGet, "/v1/plans/pro", "", http.StatusOK); got["amountCents"] != 2900.0 {
		t.Errorf("the live plan is %v", got)
	}
	if got := to.call(http.MethodGet, "/v1/credits/tokens", "", http.StatusOK); got["name"] != "Tokens" {
		t.Errorf("the live credit is %v", got)
	}
}
