package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/tenancy"
	"purser/views/component"
)

func TestAForeignPageGainsNothing(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	fields := url.Values{"name": {"Taken over"}}
	unchanged := func(t *testing.T) {
		t.Helper()
		if org, err := r.db.Org(r.org.ID).Organization(t.Context()); err != nil || org.Name != r.org.Name {
			t.Errorf("the organization is called %q, %v", org.Name, err)
		}
	}
	for name, header := range map[string]http.Header{
		"from another site":                    {"Sec-Fetch-Site": {"cross-site"}},
		"from a sibling host":                  {"Sec-Fetch-Site": {"same-site"}},
		"from another origin, in old browsers": {"Sec-Fetch-Site": {""}, "Origin": {"https://evil.example"}},
		"from nowhere, in a sandboxed frame":   {"Sec-Fetch-Site": {"cross-site"}, "Origin": {"null"}},
	} {
		t.Run("with a form "+name, func(t *testing.T) {
			owner := r.join(t, tenancy.Owner)
			owner.header = header
			if got := owner.post(t, r.orgPath("settings"), fields); got.status != http.StatusForbidden {
				t.Errorf("status %d", got.status)
			}
			unchanged(t)
		})
	}
	for name, token := range map[string]string{"without its token": "", "with a token of another session": r.join(t, tenancy.Owner).formToken} {
		t.Run("with a form "+name, func(t *testing.T) {
			owner := r.join(t, tenancy.Owner)
			owner.formToken = token
			if got := owner.post(t, r.orgPath("settings"), fields); got.status != http.StatusForbidden {
				t.Errorf("status %d", got.status)
			}
			unchanged(t)
		})
	}
	t.Run("while the site's own form works", func(t *testing.T) {
		owner := r.join(t, tenancy.Owner)
		shown := owner.get(t, r.orgPath("settings"))
		if !strings.Contains(shown.body, `name="`+component.FormTokenField+`" value="`+owner.formToken+`"`) {
			t.Error("the form has no token")
		}
		if got := owner.post(t, r.orgPath("settings"), url.Values{"name": {"Renamed"}, "version": {hidden(shown.body, "version")}}); got.status != http.StatusSeeOther {
			t.Errorf("status %d\n%s", got.status, got.body)
		}
		if after := owner.get(t, r.orgPath("settings")); !strings.Contains(after.body, "Name saved.") || !strings.Contains(after.body, "Renamed") {
			t.Error("the next page does not say it")
		}
		if again := owner.get(t, r.orgPath("settings")); strings.Contains(again.body, "Name saved.") {
			t.Error("it is said twice")
		}
	})
}

func TestWhatIsNotOnesOwnIsNotThere(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	foreign := r.newOrganization(t, "Foreign")
	theirs := r.newApplication(t, foreign, "Secret plans", false)
	owner := r.join(t, tenancy.Owner)
	plain := func(s seen) string { return strings.ReplaceAll(s.body, s.header.Get("X-Request-Id"), "") }
	// Within one's own organization its navigation is shown, and nothing of the application.
	for absent, paths := range map[string][]string{
		"/o/no-such-organization":                     {"/o/" + foreign.Slug, "/o/" + foreign.Slug + "/members", "/o/" + foreign.Slug + "/a/" + theirs.Slug + "/keys", "/o/" + foreign.Slug + "/a/" + theirs.Slug + "/no/page"},
		r.orgPath("a", "no-such-application", "keys"): {r.orgPath("a", theirs.Slug, "keys"), r.orgPath("a", theirs.Slug, "no-page")},
	} {
		missing := owner.get(t, absent)
		if missing.status != http.StatusNotFound {
			t.Fatalf("%s answers %d", absent, missing.status)
		}
		for _, path := range paths {
			got := owner.get(t, path)
			if got.status != http.StatusNotFound || plain(got) != plain(missing) {
				t.Errorf("%s answers %d and differs from %s:\n%s", path, got.status, absent, got.body)
			}
		}
	}
	t.Run("and an address without a page has the navigation of its place", func(t *testing.T) {
		for path, href := range map[string]string{r.appPath("no", "page"): r.appPath("wallets"), r.orgPath("no-page"): r.orgPath("members"), r.appPath("plans", "pro", "archive"): r.appPath("plans")} {
			for _, method := range []string{http.MethodGet, http.MethodPut} {
				if got := owner.do(t, method, path, nil); got.status != http.StatusNotFound || !strings.Contains(got.body, `href="`+href+`"`) {
					t.Errorf("%s %s answers %d:\n%s", method, path, got.status, got.body)
				}
			}
		}
	})
	t.Run("and the address of a form leads to the page above it", func(t *testing.T) {
		for path, want := range map[string]string{
			r.appPath("settings", "provider"):       r.appPath("settings"),
			r.appPath("plans", "a%2Fb", "sync"):     r.appPath("plans"),
			r.appPath("keys", "key_1", "revoke"):    r.appPath("keys", "key_1"),
			r.appPath("webhooks", "we_1", "replay"): r.appPath("webhooks", "we_1"),
			r.orgPath("leave"):                      r.orgPath(),
			"/account/name":                         "/account",
			"/logout":                               "/",
		} {
			if got := owner.get(t, path); got.status != http.StatusSeeOther || got.location != want {
				t.Errorf("%s answers %d, %s", path, got.status, got.location)
			}
		}
		if got := owner.get(t, "/o/"+foreign.Slug+"/leave"); got.status != http.StatusNotFound {
			t.Errorf("in another's organization it answers %d", got.status)
		}
	})
	t.Run("and who is not signed in is led to the sign-in everywhere", func(t *testing.T) {
		anonymous := r.browser()
		for _, path := range []string{"/o/" + foreign.Slug, "/o/no-such-organization", r.orgPath("members"), r.appPath("no-page"), "/account"} {
			got := anonymous.get(t, path)
			if want := "/login?next=" + url.QueryEscape(path); got.status != http.StatusSeeOther || got.location != want {
				t.Errorf("%s answers %d, %s", path, got.status, got.location)
			}
		}
	})
	t.Run("and from a file to the page that it was on", func(t *testing.T) {
		anonymous := r.browser()
		for _, c := range []struct{ referer, file, want string }{
			{r.server.URL + r.appPath("usage") + "?range=7", r.appPath("usage.csv") + "?range=7", r.appPath("usage") + "?range=7"},
			{r.server.URL + r.appPath("wallets", "wal_1"), r.appPath("wallets", "wal_1", "export.json"), r.appPath("wallets", "wal_1")},
			{"", r.appPath("wallets", "wal_1", "journal.csv"), r.appPath("wallets", "wal_1")},
			{"https://evil.example/o", r.orgPath("audit.csv"), r.orgPath()},
			{r.server.URL + "/o", r.orgPath("audit"), r.orgPath("audit")},
		} {
			anonymous.header.Set("Referer", c.referer)
			if got := anonymous.get(t, c.file); got.location != "/login?next="+url.QueryEscape(c.want) {
				t.Errorf("%s leads to %s, expected back to %s", c.file, got.location, c.want)
			}
		}
	})
	t.Run("and a part of a page is told to load the sign-in whole", func(t *testing.T) {
		anonymous := r.browser()
		anonymous.header.Set("HX-Request", "true")
		got := anonymous.get(t, r.orgPath("audit"))
		if got.status != http.StatusUnauthorized || !strings.HasPrefix(got.header.Get("HX-Redirect"), "/login?") {
			t.Errorf("status %d, %q", got.status, got.header.Get("HX-Redirect"))
		}
	})
}
