package web

import (
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/views/component"
)

// withFactor turns an authenticator on for the browser's user, and gives the recovery
// codes.
func (b *browser) withFactor(t *testing.T) (recovery []string) {
	t.Helper()
	form := b.get(t, "/account/factor")
	seed := seedIn(t, form.body)
	got := b.post(t, "/account/factor", url.Values{
		"seed": {hidden(form.body, "seed")}, "code": {seed.Code(b.harness.site.Now() / 1000 / 30)},
	})
	if got.status != http.StatusOK {
		t.Fatalf("status %d", got.status)
	}
	_, rest, _ := strings.Cut(got.body, "<code>")
	text, _, _ := strings.Cut(rest, "</code>")
	return strings.Fields(text)
}

// A thief has the cookie of an owner, and an account of their own.
func TestStolenSessionStaysStale(t *testing.T) {
	t.Parallel()
	r, clock := newClockHarness(t)
	thief := r.join(t, tenancy.Support)
	thief.withPassword(t)
	thief.signIn(t)
	thief.withFactor(t)
	owner := r.join(t, tenancy.Owner)
	clock.advance(reauthAfter + time.Minute)
	if got := owner.get(t, r.appPath("keys", "new")); !strings.HasPrefix(got.location, "/confirm") {
		t.Fatalf("status %d, %s", got.status, got.location)
	}
	if got := owner.login(t, thief.user.Email, password); !strings.HasPrefix(got.location, "/login/code") {
		t.Fatalf("status %d, %s", got.status, got.location)
	}
	got := owner.get(t, r.appPath("keys", "new"))
	if got.status == http.StatusOK {
		t.Error("the password of another account made the owner's session fresh")
	}
	if !strings.HasPrefix(got.location, "/login") {
		t.Errorf("a user who signs in to another account is still signed in to the first: %s", got.location)
	}
}

// Postgres takes neither a zero byte nor what is not UTF-8, wherever it is typed.
func TestTextThatIsNone(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	owner := d.join(t, tenancy.Owner)
	d.deposit(t, "ann", 10)
	charge := d.track(t, d.use("ann", "messages", 1)).Event.TransactionID.Format(ids.Transaction)
	for _, bad := range []string{"a\x00b", "a\xffb"} {
		for path, fields := range map[string]url.Values{
			"/login": {"email": {bad}, "password": {bad}},
			d.walletPath(t, "ann", "adjust"): {
				"entry": {ids.New().Format(ids.Transaction)}, "credit": {"tokens"}, "amount": {"1"}, "direction": {"in"}, "reason": {bad},
			},
			d.walletPath(t, "ann", "transfer"): {
				"entry": {ids.New().Format(ids.Transaction)}, "to": {"bob"}, "credit": {"tokens"}, "amount": {"1"}, "reason": {bad}, "confirmed": {"yes"},
			},
			d.walletPath(t, "ann", "erase"):              {"identity": {"ann"}, "reason": {bad}, "key": {"k"}},
			d.walletPath(t, "ann", "rename"):             {"from": {"ann"}, "to": {bad}, "key": {"k"}},
			d.appPath("transactions", charge, "reverse"): {"entry": {ids.New().Format(ids.Transaction)}, "reason": {bad}},

			d.orgPath("members", "invite"): {"note": {bad}, "role": {"support"}},
			d.appPath("settings"):          {"name": {"Chat"}, "deployment_url": {"https://" + bad}},
		} {
			b := owner
			if path == "/login" {
				b = d.browser()
			}
			if got := b.post(t, path, fields); got.status != http.StatusUnprocessableEntity {
				t.Errorf("%s takes %q: status %d", path, bad, got.status)
			}
		}
		escaped := url.PathEscape(bad)
		for _, path := range []string{
			d.orgPath("members") + "/" + escaped, d.appPath("wallets") + "/" + escaped, d.appPath("plans") + "/" + escaped + "/edit",
			d.appPath("transactions") + "/" + escaped, "/invite/" + escaped, "/setup/" + escaped, "/docs/" + escaped, "/docs/errors/" + escaped,
			"/o/" + escaped, d.orgPath("a") + "/" + escaped,
		} {
			if got := owner.get(t, path); got.status != http.StatusNotFound {
				t.Errorf("%s: status %d", path, got.status)
			}
		}
		for _, path := range []string{
			d.appPath("wallets") + "?q=", d.appPath("events") + "?event=", d.appPath("events") + "?feature=", d.appPath("deposits") + "?credit=",
			d.appPath("events") + "?identity=", d.appPath("events") + "?identity=ann&seq=", d.appPath("deposits") + "?identity=", d.appPath("subscriptions") + "?identity=", d.appPath("subscriptions") + "?plan=",
			d.appPath("checkouts") + "?identity=", d.appPath("subscriptions") + "?status=", d.orgPath("audit") + "?actor=", d.appPath("check") + "?feature=messages&identity=",
		} {
			if got := owner.get(t, path+url.QueryEscape(bad)); got.status >= http.StatusInternalServerError {
				t.Errorf("%s: status %d", path, got.status)
			}
		}
	}
}

func TestOverviewNamesOnlyWhatOneMaySee(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	admin, support := r.join(t, tenancy.Admin), r.join(t, tenancy.Support)
	key, _, err := keys.New(keys.Spec{
		ID: ids.New(), App: r.app, Name: "Checkout server", Preset: keys.Ingestion, ExpiresAt: r.site.Now() + (7 * 24 * time.Hour).Milliseconds(),
	}, tenancy.AllPermissions(), r.site.Now(), rand.Reader)
	noError(t, err)
	noError(t, r.db.App(r.app.Scope()).CreateKey(t.Context(), key))
	if got := admin.get(t, r.appPath()); !strings.Contains(got.body, "Checkout server") {
		t.Errorf("the key that expires is not named to who may see keys: %d", got.status)
	}
	if got := support.get(t, r.appPath()); strings.Contains(got.body, "Checkout server") {
		t.Error("support reads the name of an API key")
	}
}

// Each tab of a wallet has its own permission, and all of them show balances.
func TestBalancesNeedTheirPermission(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.deposit(t, "ann", 10)
	for part, p := range map[string]tenancy.Permission{
		"usage": tenancy.JournalRead, "deposits": tenancy.DepositsRead, "subscription": tenancy.SubscriptionsRead, "adjust": tenancy.BalancesAdjust,
		"transfer": tenancy.WalletsTransfer, "rename": tenancy.WalletsWrite, "erase": tenancy.WalletsErase,
	} {
		path := d.walletPath(t, "ann", part)
		if got := d.join(t, tenancy.Custom, p).get(t, path); got.status != http.StatusForbidden {
			t.Errorf("%s shows balances to who may not read them: status %d", part, got.status)
		}
		if got := d.join(t, tenancy.Custom, p, tenancy.WalletsRead).get(t, path); got.status != http.StatusOK {
			t.Errorf("%s: status %d", part, got.status)
		}
	}
}

// The list and the page of wallets tell of a subscription whether it is paid.
func TestPaymentsOfWalletsNeedTheirPermission(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.deposit(t, "ann", 10)
	d.deposit(t, "bob", 10)
	storetest.PutSubscription(t, d.url, d.app.Scope(), "ann", metering.Subscription{ID: ids.New(), Status: metering.StatusPastDue, Period: metering.MonthOf(d.site.Now())})
	support, reader := d.join(t, tenancy.Support), d.join(t, tenancy.Custom, tenancy.WalletsRead, tenancy.PlansRead)
	list := d.appPath("wallets")
	for path, text := range map[string]string{list: "Past due", list + "?q=ann": "Past due", d.walletPath(t, "ann"): "Payment hold"} {
		says(t, support.get(t, path), http.StatusOK, "ann", text)
		if page := reader.get(t, path); page.status != http.StatusOK || strings.Contains(textOf(page.body), text) {
			t.Errorf("%s shows who may not read subscriptions %q: status %d", path, text, page.status)
		}
	}
	if page := reader.get(t, list+"?show=hold"); !strings.Contains(page.body, d.walletPath(t, "bob")) || strings.Contains(page.body, "On payment hold") {
		t.Errorf("who may not read subscriptions can filter by them: status %d", page.status)
	}
}

// The forms that return a charge or a payment show the customer, and the refund a balance.
func TestReturningCreditsNeedsToReadThem(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.site.Cashier = newTestCashier(t)
	d.payTopUp(t, "ann", 3000)
	d.deposit(t, "eve", 10)
	charge := d.track(t, d.use("eve", "messages", 2)).Event.TransactionID
	owner := d.join(t, tenancy.Owner)
	topUp := regexp.MustCompile(`/transactions/(txn_\w+)`).FindStringSubmatch(owner.get(t, d.walletPath(t, "ann")).body)
	if topUp == nil {
		t.Fatal("the journal has no top-up")
	}
	reverse, refund := d.appPath("transactions", charge.Format(ids.Transaction), "reverse"), d.appPath("transactions", topUp[1], "refund")
	says(t, owner.get(t, refund), http.StatusOK, "ann")
	for _, c := range []struct {
		held            []tenancy.Permission
		reverse, refund int
	}{
		{[]tenancy.Permission{}, http.StatusForbidden, http.StatusForbidden},
		{[]tenancy.Permission{tenancy.WalletsRead}, http.StatusForbidden, http.StatusForbidden},
		{[]tenancy.Permission{tenancy.JournalRead}, http.StatusOK, http.StatusForbidden},
		{[]tenancy.Permission{tenancy.JournalRead, tenancy.WalletsRead}, http.StatusOK, http.StatusOK},
	} {
		b := d.join(t, tenancy.Custom, append(c.held, tenancy.BalancesAdjust)...)
		for path, want := range map[string]int{reverse: c.reverse, refund: c.refund} {
			if got := b.get(t, path); got.status != want {
				t.Errorf("%s with %v: status %d", path, c.held, got.status)
			}
			if got := b.post(t, path, nil); want == http.StatusForbidden && got.status != want {
				t.Errorf("%s with %v: the form gets status %d", path, c.held, got.status)
			}
		}
		if got := b.get(t, d.appPath("transactions", topUp[1])); strings.Contains(got.body, `href="`+refund) != (c.refund == http.StatusOK) {
			t.Errorf("with %v, the refund is offered or isn't", c.held)
		}
	}
}

// The comparison of two catalogs shows costs and prices of both.
func TestComparingCatalogsNeedsToReadThem(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	live := r.newApplication(t, r.org, "Shop", true)
	path := r.appPath("catalog", "copy") + "?to=" + live.Slug
	reads := []tenancy.Permission{tenancy.CreditsRead, tenancy.FeaturesRead, tenancy.PlansRead}
	if got := r.join(t, tenancy.Custom, append(reads, tenancy.PlansWrite)...).get(t, path); got.status != http.StatusOK {
		t.Errorf("status %d", got.status)
	}
	held := map[string][]tenancy.Permission{"plans:write only": {tenancy.PlansWrite}}
	for i, p := range reads {
		held["all but "+p.String()] = append(slices.Delete(slices.Clone(reads), i, i+1), tenancy.CreditsWrite, tenancy.FeaturesWrite, tenancy.PlansWrite)
	}
	for name, permissions := range held {
		b := r.join(t, tenancy.Custom, permissions...)
		if get, post := b.get(t, path), b.post(t, path, url.Values{"to": {live.Slug}}); get.status != http.StatusForbidden || post.status != http.StatusForbidden {
			t.Errorf("%s: %d and %d", name, get.status, post.status)
		}
		says(t, b.get(t, r.appPath("catalog", "copy")), http.StatusOK, "to read and write credits, features and plans")
	}
}

// slowBody is a body that arrives after something else has happened.
type slowBody struct {
	before func()
	io.Reader
}

func (s *slowBody) Read(p []byte) (int, error) {
	if s.before != nil {
		s.before()
		s.before = nil
	}
	return s.Reader.Read(p)
}

// TestABodyThatArrivesLate holds a form back until the access that it needs has ended.
func TestABodyThatArrivesLate(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	for name, before := range map[string]func(t *testing.T, user ids.ID){
		"of a member with another role": func(t *testing.T, user ids.ID) {
			noError(t, r.db.Org(r.org.ID).By(r.join(t, tenancy.Owner).actor()).ChangeMember(t.Context(), user, tenancy.Access{Role: tenancy.Support}))
		},
		"of a session that ended": func(t *testing.T, user ids.ID) {
			noError(t, r.db.User(user).EndOtherSessions(t.Context(), ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := r.join(t, tenancy.Admin)
			fields := url.Values{component.FormTokenField: {b.formToken}, "key": {"late-" + ids.New().String()}, "name": {"Late"}, "unit": {"token"}}
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, r.appPath("credits", "new"),
				&slowBody{before: func() { before(t, b.user.ID) }, Reader: strings.NewReader(fields.Encode())})
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			request.Header.Set("Sec-Fetch-Site", "same-origin")
			for _, cookie := range b.cookies {
				request.AddCookie(cookie)
			}
			recorder := httptest.NewRecorder()
			r.server.Config.Handler.ServeHTTP(recorder, request)
			if location := recorder.Header().Get("Location"); recorder.Code != http.StatusSeeOther || !strings.HasPrefix(location, "/login") {
				t.Errorf("status %d, %s", recorder.Code, location)
			}
			if _, err := r.db.App(r.app.Scope()).Credit(t.Context(), fields.Get("key")); !fault.Is(err, fault.CreditNotFound) {
				t.Errorf("the form was taken: %v", err)
			}
		})
	}
}
