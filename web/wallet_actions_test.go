package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/people"
	"purser/store/reports"
	"purser/store/storetest"
	"purser/tenancy"
)

var formKeyField = regexp.MustCompile(`name="key" value="([^"]+)"`)

func TestWalletActions(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	owner, support := d.join(t, tenancy.Owner), d.join(t, tenancy.Support)

	t.Run("create a wallet, once", func(t *testing.T) {
		for i, words := range []string{"Wallet created.", "This wallet already exists."} {
			got := owner.post(t, d.appPath("wallets", "new"), url.Values{"identity": {hostileIdentity}})
			if got.location != d.walletPath(t, hostileIdentity) {
				t.Fatalf("%d: it leads to %q with %d", i, got.location, got.status)
			}
			says(t, owner.get(t, got.location), http.StatusOK, words)
		}
		says(t, owner.post(t, d.appPath("wallets", "new"), url.Values{"identity": {strings.Repeat("x", 201)}}), http.StatusUnprocessableEntity, "Enter an identity of up to 200 characters.")
		says(t, owner.post(t, d.appPath("wallets", "new"), url.Values{"identity": {metering.Tombstone(ids.New())}}), http.StatusUnprocessableEntity, "This identity belongs to an erased wallet.")
	})

	t.Run("add credits after a look at the resulting balance, once", func(t *testing.T) {
		path := d.walletPath(t, hostileIdentity, "deposit")
		review := owner.get(t, path+"?credit=tokens&amount=12.5")
		says(t, review, http.StatusOK, "Balance now 0 tokens", "Deposit +12.5 tokens", "Balance after 12.5 tokens", "Add 12.5 tokens")
		if form, plan := strings.Index(review.body, `id="add-credits"`), strings.Index(review.body, "Allowances"); form < 0 || form > plan {
			t.Error("the form is not right below the balances")
		}
		key := formKeyField.FindStringSubmatch(review.body)
		if key == nil {
			t.Fatal("the form has no key")
		}
		form := url.Values{"credit": {"tokens"}, "amount": {"12.5"}, "key": {key[1]}}
		for range 2 {
			if got := owner.post(t, path, form); got.location != d.walletPath(t, hostileIdentity) {
				t.Fatalf("it leads to %q with %d", got.location, got.status)
			}
		}
		says(t, owner.get(t, d.walletPath(t, hostileIdentity)), http.StatusOK, "Balance 12 .5 tokens" /* decimals are set apart */, "Added 12.5 tokens.")
		for _, amount := range []string{"0", "-1", "1e3", "x"} {
			says(t, owner.get(t, path+"?credit=tokens&amount="+amount), http.StatusUnprocessableEntity, "Enter an amount above zero")
		}
		if got := owner.post(t, path, url.Values{"credit": {"tokens"}, "amount": {"1"}}); got.status != http.StatusUnprocessableEntity {
			t.Errorf("a form without a key answers %d", got.status)
		}
	})

	t.Run("are in the audit log", func(t *testing.T) {
		says(t, owner.get(t, d.orgPath("audit")), http.StatusOK, "wallet.create", "deposit.create")
	})

	t.Run("are not offered to support", func(t *testing.T) {
		page := support.get(t, d.walletPath(t, hostileIdentity))
		for _, action := range []string{"/deposit\"", "/change\"", "/checkout\"", "/cancel\"", "/adjust\""} {
			if strings.Contains(page.body, action) {
				t.Errorf("%s is offered", action)
			}
		}
		if strings.Contains(support.get(t, d.appPath("wallets")).body, "/wallets/new") {
			t.Error("a new wallet is offered")
		}
	})
}

func TestEntriesOfFormsHaveTheTimeOfAMovedClock(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	const offset = 400 * 24 * time.Hour
	d.moveClock(t, d.app, offset)
	admin := d.join(t, tenancy.Admin)
	for _, identity := range []string{"ann", "bob"} {
		_, _, err := d.tenant.CreateWallet(t.Context(), ids.New(), identity, d.site.Now())
		noError(t, err)
	}
	to, err := d.tenant.Wallet(t.Context(), "bob")
	noError(t, err)
	for _, form := range []struct {
		kind string
		path func() string
		send url.Values
	}{
		{"deposit", func() string { return d.walletPath(t, "ann", "deposit") }, url.Values{"key": {"deposit"}}},
		{"adjustment", func() string { return d.walletPath(t, "ann", "adjust") }, url.Values{"direction": {"in"}}},
		{"transfer", func() string { return d.walletPath(t, "ann", "transfer") },
			url.Values{"to": {"bob"}, "confirmed": {"yes"}, "to_wallet": {to.ID.Format(ids.Wallet)}}},
		{"reversal", func() string {
			charge := d.track(t, d.use("ann", "messages", 2)).Event
			return d.appPath("transactions", charge.TransactionID.Format(ids.Transaction), "reverse")
		}, url.Values{"amount": {"1"}}},
	} {
		t.Run(form.kind, func(t *testing.T) {
			path := form.path()
			for name, value := range map[string]string{"entry": ids.New().Format(ids.Transaction), "credit": "tokens", "amount": "10", "reason": "moved"} {
				if !form.send.Has(name) {
					form.send.Set(name, value)
				}
			}
			before := d.site.Now()
			if sent := admin.post(t, path, form.send); sent.status != http.StatusSeeOther {
				t.Fatalf("status %d", sent.status)
			}
			list, _, err := d.db.Reports(d.app.Scope()).History(t.Context(), reports.HistoryQuery{Identity: "ann", Kind: metering.EntryKind(form.kind), Limit: 1})
			noError(t, err)
			if len(list) != 1 || list[0].CreatedAt < before+offset.Milliseconds() || list[0].CreatedAt > d.site.Now()+offset.Milliseconds() {
				t.Errorf("from %d on: %+v", before+offset.Milliseconds(), list)
			}
		})
	}
}

func TestFormsWithoutACreditSaySo(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.site.Cashier = newTestCashier(t)
	w, _, err := r.site.Store.App(r.app.Scope()).CreateWallet(t.Context(), ids.New(), "ann", r.site.Now())
	noError(t, err)
	path := func(action string) string { return r.appPath("wallets", w.ID.Format(ids.Wallet), action) }
	owner := r.join(t, tenancy.Owner)
	for _, action := range []string{"deposit", "adjust", "transfer", "topup"} {
		page := owner.get(t, path(action))
		says(t, page, http.StatusOK, "Create a credit first")
		if !strings.Contains(page.body, `href="`+r.appPath("credits", "new")+`"`) {
			t.Errorf("%s doesn't lead to a new credit", action)
		}
	}
	page := r.join(t, tenancy.Custom, tenancy.WalletsRead, tenancy.BalancesAdjust).get(t, path("adjust"))
	says(t, page, http.StatusOK, "Create a credit first")
	if strings.Contains(page.body, "/credits/new") {
		t.Error("a role that can't create a credit is led there")
	}
}

// The wallet of the page gets another identity while the form waits for it: a new wallet of
// the old identity must not get the credits.
func TestCreditsAreAddedToTheWalletOfThePage(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.deposit(t, "ann", 10)
	owner, path := d.join(t, tenancy.Owner), d.walletPath(t, "ann", "deposit")
	rename := storetest.Session(t, d.url)
	rename("BEGIN")
	rename(`UPDATE wallets SET identity = 'eve', version = version + 1 WHERE app_id = '` + d.app.ID.String() + `' AND identity = 'ann'`)
	answered := make(chan seen, 1)
	go func() {
		answered <- owner.post(t, path, url.Values{"credit": {"tokens"}, "amount": {"5"}, "key": {"x"}})
	}()
	rename(`DO $$ BEGIN
		WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))) LOOP
			PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
		END LOOP;
	END $$`)
	rename("COMMIT")
	if got := <-answered; got.status != http.StatusNotFound {
		t.Errorf("the form answers %d", got.status)
	}
	wallets, _, err := d.tenant.Wallets(t.Context(), store.Page{Limit: 10})
	noError(t, err)
	if len(wallets) != 1 || wallets[0].Identity != "eve" || wallets[0].Balances[0].Amount != 10*metering.PerCredit {
		t.Errorf("the wallets are %+v", wallets)
	}
}

// An erasure can't change the audit log, so its entries must not hold identities.
func TestPlanActionsAreAuditedByTheWalletsID(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.site.Cashier = newTestCashier(t)
	owner := d.join(t, tenancy.Owner)
	wallet, _, err := d.tenant.CreateWallet(t.Context(), ids.New(), hostileIdentity, d.site.Now())
	noError(t, err)
	want := map[string]bool{"checkout.create": true, "topup.create": true, "subscription.change": true, "subscription.cancel": true, "subscription.undo-cancel": true}
	for path, form := range map[string]url.Values{ // recorded, although the cashier refuses them
		"checkout":         {"plan": {"none"}},
		"topup":            {"credit": {"tokens"}, "amount": {"5"}, "price": {"0.01"}, "currency": {"usd"}},
		"change":           {"plan": {"none"}},
		"cancel":           {"cancel": {"cancel"}},
		"cancel?undo=true": {"cancel": {"undo"}},
	} {
		form.Set("key", ids.New().String())
		owner.post(t, d.walletPath(t, hostileIdentity)+"/"+path, form)
	}
	log, _, err := d.db.Org(d.org.ID).AuditLog(t.Context(), people.AuditPage{Limit: 50})
	noError(t, err)
	for _, entry := range log {
		if entry.Target == hostileIdentity {
			t.Errorf("%s names the customer", entry.Action)
		}
		if want[entry.Action] && entry.Target == wallet.ID.Format(ids.Wallet) {
			delete(want, entry.Action)
		}
	}
	if len(want) > 0 {
		t.Errorf("not recorded with the wallet's id: %v", want)
	}
}

func TestAPlanIsChangedOnlyAsPreviewed(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.site.Cashier = newTestCashier(t)
	owner := d.join(t, tenancy.Owner)
	_, _, err := d.tenant.CreateWallet(t.Context(), ids.New(), "ada", d.site.Now())
	noError(t, err)
	draft := billing.PlanDraft{
		Key: "free", Name: "Free", Active: true, Price: billing.Price{Currency: "usd", Interval: billing.Month},
		Grants: []billing.Grant{{CreditKey: "tokens", Amount: 100 * metering.PerCredit}},
	}
	_, err = d.tenant.CreatePlan(t.Context(), draft, func(catalog billing.Catalog) (billing.Plan, error) {
		return billing.NewPlan(ids.New(), draft, catalog, d.site.Now())
	})
	noError(t, err)
	path := d.walletPath(t, "ada", "change")
	form := func(page seen) url.Values {
		t.Helper()
		key, preview := formKeyField.FindStringSubmatch(page.body), regexp.MustCompile(`name="preview" value="([^"]+)"`).FindStringSubmatch(page.body)
		if key == nil || preview == nil {
			t.Fatalf("the form lacks its key or its preview: %s", textOf(page.body))
		}
		return url.Values{"plan": {"free"}, "key": {key[1]}, "preview": {preview[1]}}
	}
	page := owner.get(t, path+"?plan=free")
	says(t, page, http.StatusOK, "+100 tokens")
	stale := form(page)
	grants := []billing.Grant{{CreditKey: "tokens", Amount: 5 * metering.PerCredit}}
	_, err = d.tenant.UpdatePlan(t.Context(), "free", billing.PlanPatch{Grants: &grants})
	noError(t, err)

	page = owner.post(t, path, stale)
	says(t, page, http.StatusConflict, "changed since the preview", "+5 tokens")
	says(t, owner.post(t, path, url.Values{"plan": {"free"}, "key": {"without a preview"}}), http.StatusConflict, "+5 tokens")
	if _, err := d.Payments().Subscription(t.Context(), "ada"); !fault.Is(err, fault.SubscriptionNotFound) {
		t.Errorf("the stale form subscribed: %v", err)
	}
	fresh := form(page)
	for range 2 { // the second changes nothing
		if got := owner.post(t, path, fresh); got.location != d.walletPath(t, "ada") {
			t.Fatalf("status %d, to %q", got.status, got.location)
		}
	}
	page = owner.get(t, d.walletPath(t, "ada"))
	says(t, page, http.StatusOK, "5 tokens")
	if strings.Contains(page.body, "/topup\"") {
		t.Error("a top-up is offered on a plan that forbids it")
	}
	says(t, owner.get(t, path+"?plan=free"), http.StatusOK, "The customer is already on this plan. already_on_plan")
}

// Keys are kept, shown and exported, ten thousand in a file: a form's are no longer than
// those of the API. A plan that is not a key is not recorded either.
func TestFormsTakeNoLongKeys(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.site.Cashier = newTestCashier(t)
	d.deposit(t, "ann", 1)
	owner, path := d.join(t, tenancy.Owner), d.walletPath(t, "ann")
	longest := strings.Repeat("ä", metering.MaxIdempotencyKeyLength)
	forms := map[string]url.Values{
		"deposit":  {"credit": {"tokens"}, "amount": {"5"}},
		"rename":   {"from": {"ann"}, "to": {"eve"}},
		"erase":    {"identity": {"ann"}, "reason": {"asked"}},
		"checkout": {"plan": {"pro"}},
		"topup":    {"credit": {"tokens"}, "amount": {"5"}, "price": {"5"}, "currency": {"usd"}},
		"change":   {"plan": {"pro"}, "preview": {"x"}},
		"cancel":   {"cancel": {"cancel"}},
	}
	refused := func(action string, form url.Values) {
		t.Helper()
		if sent := owner.post(t, path+"/"+action, form); sent.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d", action, sent.status)
		}
	}
	for action, form := range forms {
		form.Set("key", longest+"b")
		refused(action, form)
	}
	for _, action := range []string{"checkout", "change"} {
		form := forms[action]
		form.Set("key", longest)
		form.Set("plan", strings.Repeat("p", metering.MaxKeyLength+1))
		refused(action, form)
	}
	log, _, err := d.db.Org(d.org.ID).AuditLog(t.Context(), people.AuditPage{Limit: 10})
	if err != nil || len(log) != 0 {
		t.Errorf("the audit log has %d entries, %v", len(log), err)
	}
	forms["deposit"].Set("key", longest)
	if sent := owner.post(t, path+"/deposit", forms["deposit"]); sent.status != http.StatusSeeOther {
		t.Errorf("a key that is as long as allowed: status %d", sent.status)
	}
}
