package main

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/cmd/purser/demo"
	"purser/store/storetest"
	"purser/tenancy"
)

// startDemo runs 'purser serve --demo' until stop is called.
func startDemo(t *testing.T, environ []string) (base, greeting string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stdout, printed := io.Pipe()
	var log safeBuffer
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"serve", "--demo", "--addr", "127.0.0.1:0"}, slices.Clone(environ), printed, &log)
		printed.CloseWithError(err)
		ended <- err
	}()
	greeting, err := readGreeting(stdout)
	if err != nil {
		t.Fatalf("it did not start: %v\n%s", err, log.String())
	}
	go io.Copy(io.Discard, stdout)
	return addressIn(greeting), greeting, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it did not stop cleanly: %v", err)
		}
	}
}

var (
	shownPassword = regexp.MustCompile(`(?m)^  ([a-z0-9]{26})$`)
	verified      = regexp.MustCompile(`2 applications, \d+ wallets, \d+ entries: 0 differences`)
)

// booksOf is what 'purser verify' says of all there is.
func booksOf(t *testing.T, environ []string) string {
	t.Helper()
	var out, diagnostics safeBuffer
	if err := run(t.Context(), []string{"verify"}, slices.Clone(environ), &out, &diagnostics); err != nil {
		t.Errorf("verify: %v\n%s%s", err, out.String(), diagnostics.String())
	}
	return verified.FindString(out.String())
}

// TestDemo fills a database once, and looks at it from every side.
func TestDemo(t *testing.T) {
	t.Parallel()
	environ := []string{
		"DATABASE_URL=" + storetest.FreshURL(t),
		"PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey),
		"PURSER_DATA=" + filepath.Join(t.TempDir(), "data"),
		"PURSER_RATE_LIMIT=2", // it is for callers, and not for the demo
	}
	began := time.Now()
	base, greeting, stop := startDemo(t, environ)
	t.Logf("it was made in %s", time.Since(began).Round(time.Millisecond))
	password := shownPassword.FindStringSubmatch(greeting)
	if password == nil || strings.Contains(greeting, "/setup/") {
		t.Fatalf("it says %q", greeting)
	}
	var before string
	t.Run("leaves sound books", func(t *testing.T) {
		if before = booksOf(t, environ); before == "" {
			t.Error("verify says something else")
		}
	})
	t.Run("all members sign in with the password", func(t *testing.T) {
		for _, role := range []string{"owner", "admin", "developer", "finance", "support"} {
			email := role + "@lumen.example"
			if p := signIn(t, base, email, password[1]); !strings.Contains(greeting, email) || !strings.Contains(p.get(t, "/o"), "Lumen") {
				t.Errorf("%s cannot enter", email)
			}
		}
	})
	t.Run("leads no member to a page that refuses them", func(t *testing.T) {
		for _, role := range []string{"owner", "admin", "developer", "finance", "support"} {
			if visited := followLinks(t, signIn(t, base, role+"@lumen.example", password[1]), 2); visited < 50 {
				t.Errorf("%s has links to %d pages", role, visited)
			}
		}
	})
	t.Run("leads no custom role to a page that refuses it", func(t *testing.T) {
		followLinksAsCustomRoles(t, strings.TrimPrefix(environ[0], "DATABASE_URL="), signIn(t, base, "finance@lumen.example", password[1]))
	})
	t.Run("shows every case on its page", func(t *testing.T) { demoPages(t, signIn(t, base, "owner@lumen.example", password[1])) })
	stop()

	// Once more, and as fast as callers like.
	environ = environ[:len(environ)-1]
	base, greeting, stop = startDemo(t, environ)
	defer stop()
	t.Run("is made once", func(t *testing.T) {
		if shownPassword.MatchString(greeting) || !strings.Contains(greeting, "first start") {
			t.Errorf("a second start says %q", greeting)
		}
		if after := booksOf(t, environ); after != before {
			t.Errorf("it went from %q to %q", before, after)
		}
	})
	t.Run("answers every case by the API", func(t *testing.T) {
		demoCases(t, base, product{environ: environ}.newKey(t, "--org", "Lumen", "--app", "Studio", "--preset", "setup"))
	})
}

// pages is the demo in a browser.
type pages struct {
	client *http.Client
	base   string
}

// devices has the cookies of devices by server and account. Sign-ins from a known device
// don't count against the limit of the network, which all tests share. While the device
// of an account is unknown, one sign-in at a time makes it known.
var devices = struct {
	sync.Mutex
	known map[string]*http.Cookie
}{known: map[string]*http.Cookie{}}

func signIn(t *testing.T, base, email, password string) pages {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := pages{&http.Client{Jar: jar}, base}
	at, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	devices.Lock()
	device, known := devices.known[base+email]
	if known {
		devices.Unlock()
		jar.SetCookies(at, []*http.Cookie{device})
	} else {
		defer devices.Unlock()
	}
	answer, err := p.client.PostForm(base+"/login", url.Values{"email": {email}, "password": {password}})
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Request.URL.Path == "/login" {
		t.Fatalf("signing in leads to %s with %s", answer.Request.URL.Path, answer.Status)
	}
	if !known {
		for _, cookie := range jar.Cookies(at) {
			if strings.HasSuffix(cookie.Name, "-device") {
				devices.known[base+email] = cookie
			}
		}
	}
	return p
}

func (p pages) get(t *testing.T, path string) string {
	t.Helper()
	answer, err := p.client.Get(p.base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%s answers %s, %v", path, answer.Status, err)
	}
	return string(text)
}

var (
	dashboardLink = regexp.MustCompile(`href="(/o/[^"#]*)`)
	// partOfAddress is what differs between two pages of a kind: ids, keys, and what is asked for.
	partOfAddress = regexp.MustCompile(`_[0-9a-z]{26}|/(plans|features|credits)/[^/?]+|[?].*`)
)

// followLinks opens every page of the dashboard that links lead to, up to a number of each
// kind.
func followLinks(t *testing.T, p pages, ofKind int) (visited int) {
	t.Helper()
	seen := map[string]int{}
	for todo := []string{"/o/lumen"}; len(todo) > 0; todo = todo[1:] {
		path := html.UnescapeString(todo[0])
		kind := partOfAddress.ReplaceAllString(path, "$1")
		if seen[path]++; seen[path] > 1 {
			continue
		}
		if seen[kind+" "]++; seen[kind+" "] > ofKind {
			continue
		}
		visited++
		for _, link := range dashboardLink.FindAllStringSubmatch(p.get(t, path), -1) {
			todo = append(todo, link[1])
		}
	}
	return visited
}

// followLinksAsCustomRoles follows the links of a member whose role has one permission to
// read, and of one whose role has all permissions but that.
func followLinksAsCustomRoles(t *testing.T, database string, p pages) {
	t.Helper()
	as := func(role string, permissions ...tenancy.Permission) {
		storetest.Exec(t, database, `UPDATE members SET permissions = '{`+strings.Join(tenancy.PermissionsOf(permissions...).Names(), ",")+`}'
			FROM users u WHERE u.id = user_id AND u.email = 'finance@lumen.example'`)
		t.Run(role, func(t *testing.T) { followLinks(t, p, 1) })
	}
	all := slices.Collect(tenancy.AllPermissions().Each())
	for i, permission := range all {
		if permission.Reads() {
			as("only "+permission.String(), permission)
			as("all but "+permission.String(), slices.Concat(all[:i], all[i+1:])...)
		}
	}
}

func demoPages(t *testing.T, p pages) {
	const app = "/o/lumen/a/studio"
	search := func(identity string) string { return app + "/wallets?q=" + url.QueryEscape(identity) }
	ask := func(identity, feature, quantity string) string {
		return app + "/check?" + url.Values{"identity": {identity}, "feature": {feature}, "quantity": {quantity}}.Encode()
	}
	for _, c := range []struct{ path, shows string }{
		{app, "insufficient_balance"},
		{app, "feature_limit_exceeded"},
		{app, "subscription_inactive"},
		{app, "payment hold"},
		{app, "in debt"},
		{app, "Invalid currency: btn"},
		{ask(demo.OutOfCredits, "image", "1"), "insufficient_balance"},
		{ask(demo.OverLimit, "chat", "1001"), "feature_limit_exceeded"},
		{ask(demo.OnHold, "chat", "500"), "subscription_inactive"},
		{app + "/wallets?show=debt", demo.InDebt},
		{app + "/wallets?show=hold", demo.OnHold},
		{app + "/events?event=dora-3", "deduplicated</a>"},
		{app + "/subscriptions", "Downgrades "},
		{app + "/subscriptions", "Upgrade: payment pending"},
		{app + "/subscriptions", "Cancels "},
		{app + "/subscriptions?status=past_due", demo.OnHold},
		{app + "/checkouts?identity=" + url.QueryEscape(demo.Browsing), "Abandoned"},
		{app + "/plans", "Sync error"},
		{app + "/keys", "Expired"},
		{app + "/keys", "Revoked"},
		{app + "/keys", "Retiring"},
		{app + "/requests?show=failed", "permission_denied"},
		{app + "/denials?reason=insufficient_balance", demo.OutOfCredits},
		{app + "/denials?reason=feature_limit_exceeded", demo.OverLimit},
		{app + "/denials?reason=subscription_inactive", demo.OnHold},
		{app + "/search?q=" + strings.ToUpper(demo.OverLimit), demo.OverLimit},
		{app + "/webhooks", "Order system"},
		{app + "/webhooks", "Healthy"},
		{app + "/webhooks", "Failing"},
		{app + "/webhooks", "Paused"},
		{app + "/notifications?type=balance.low", "/notifications/ntf_"},
		{app + "/notifications?type=balance.exhausted", demo.OutOfCredits},
		{app + "/settings/alerts", "falls below 20 or 5 credits"},
		{app + "/sandbox", "+1 month"},
		{search(demo.Markup), demo.Markup},
		{search(demo.Formula), demo.Formula},
		{search(demo.Longest), demo.Longest},
		{"/o/lumen/members", "finance@lumen.example"},
		{"/o/lumen/audit?action=balance", "balance.adjust"},
		{"/o/lumen/audit?action=event", "event.reverse"},
		{"/o/lumen/audit?action=wallet", "wallet.transfer"},
		{"/o/lumen/audit?action=feature", "feature.update"},
	} {
		shown := p.get(t, c.path)
		if !strings.Contains(html.UnescapeString(shown), c.shows) {
			t.Errorf("%s does not show %s", c.path, c.shows)
		}
		if strings.Contains(shown, "<script>alert") {
			t.Errorf("%s has markup of an identity's", c.path)
		}
	}
	if home := p.get(t, "/o/lumen"); strings.Contains(home, "LIVE") {
		t.Error("the demo has a live application")
	}
}

func demoCases(t *testing.T, base string, key madeKey) {
	c := caller{t, base, key.Secret}
	get := func(path string) map[string]any { return c.call(http.MethodGet, path, "", http.StatusOK) }
	subscription := func(identity string) map[string]any { return get("/v1/subscriptions/" + url.PathEscape(identity)) }
	balance := func(identity string) map[string]any {
		return get("/v1/wallets/" + url.PathEscape(identity))["balances"].([]any)[0].(map[string]any)
	}

	for body, reason := range map[string]string{
		`{"identity": "` + demo.OutOfCredits + `", "feature": "image"}`:               "insufficient_balance",
		`{"identity": "` + demo.OverLimit + `", "feature": "chat", "quantity": 1001}`: "feature_limit_exceeded",
		`{"identity": "` + demo.OnHold + `", "feature": "chat"}`:                      "subscription_inactive",
	} {
		if got := c.post("/v1/check", body)["reason"]; got != reason {
			t.Errorf("%s is denied for %v", body, got)
		}
	}
	for event, status := range map[string]string{"dora-1": "duplicate", "dora-3": "duplicate", "felix-1": "duplicate"} {
		if got := c.post("/v1/events", `{"id": "`+event+`", "identity": "anybody", "feature": "chat"}`)["status"]; got != status {
			t.Errorf("%s is %v", event, got)
		}
	}
	if got := balance(demo.InDebt); got["debtNanocredits"] != "80000000000" {
		t.Errorf("the debtor has %v", got)
	}
	if got := balance(demo.Refunded); got["amountNanocredits"] != "67500000000" {
		t.Errorf("who was refunded in part has %v", got)
	}
	if got := balance(demo.Disputed); got["amountNanocredits"] != "0" {
		t.Errorf("who disputed has %v", got)
	}
	if got := subscription(demo.OnHold); got["paymentHold"] != true || got["status"] != "past_due" {
		t.Errorf("on hold: %v", got)
	}
	if got, queued := subscription(demo.Downgrading)["scheduledChange"].(map[string]any); !queued || got["planKey"] != "starter" {
		t.Errorf("queued: %v", got)
	}
	if got, pending := subscription(demo.Upgrading)["pendingChange"].(map[string]any); !pending || got["planKey"] != "team" {
		t.Errorf("pending: %v", got)
	}
	if got := subscription(demo.Leaving); got["cancelAtPeriodEnd"] != true {
		t.Errorf("leaving: %v", got)
	}
	if got := get("/v1/plans/campus"); got["syncStatus"] != "error" {
		t.Errorf("the refused plan is %v", got)
	}
	for _, identity := range []string{demo.Markup, demo.Formula, demo.Strange, demo.Longest} {
		if got := get("/v1/wallets/" + url.PathEscape(identity)); got["identity"] != identity {
			t.Errorf("%q is %v", identity, got)
		}
	}
}
