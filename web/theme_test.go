package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/static"
	"purser/tenancy"
	"purser/web/site"
)

func TestThemeIsChosenWithoutAScript(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Support)
	path := r.appPath("wallets")
	if body := b.get(t, path).body; strings.Contains(body, "data-theme") || !strings.Contains(body, `content="light dark"`) {
		t.Error("without a choice the page has a theme of its own")
	}
	for _, theme := range []string{"dark", "light"} {
		if reply := b.post(t, "/theme", url.Values{"theme": {theme}}); reply.status != http.StatusSeeOther {
			t.Fatalf("%s: status %d", theme, reply.status)
		}
		if body := b.get(t, path).body; !strings.Contains(body, `data-theme="`+theme+`"`) || !strings.Contains(body, `name="color-scheme" content="`+theme+`"`) {
			t.Errorf("%s: the page does not have it", theme)
		}
	}
	for _, theme := range []string{"", `"><script>`} {
		b.post(t, "/theme", url.Values{"theme": {"dark"}})
		b.post(t, "/theme", url.Values{"theme": {theme}})
		if body := b.get(t, path).body; strings.Contains(body, "data-theme") {
			t.Errorf("%q: the page keeps a theme", theme)
		}
	}
}

func TestFilesThatBrowsersAskFor(t *testing.T) {
	t.Parallel()
	server := serveSite(t, Options{Options: site.Options{BaseURL: "http://127.0.0.1:8080"}})
	for _, path := range static.FixedPaths() {
		reply, body := ask(t, server, http.MethodGet, path)
		if reply.StatusCode != http.StatusOK || body == "" || reply.Header.Get("Content-Type") == "" || !strings.Contains(reply.Header.Get("Cache-Control"), "max-age=86400") {
			t.Errorf("%s: %d, %d bytes, %v", path, reply.StatusCode, len(body), reply.Header)
		}
	}
}

func TestErrorsKeepTheNavigation(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Support)
	for path, status := range map[string]int{r.appPath("settings"): http.StatusForbidden, r.appPath("wallets", "wal_nonsense"): http.StatusNotFound} {
		reply := b.get(t, path)
		if reply.status != status || !strings.Contains(reply.body, `class="sidebar"`) || !strings.Contains(reply.body, r.appPath("wallets")) {
			t.Errorf("%s: %d without the navigation", path, reply.status)
		}
	}
	if reply := b.get(t, "/o/no-such-organization"); reply.status != http.StatusNotFound || strings.Contains(reply.body, `class="sidebar"`) {
		t.Errorf("an unknown organization: %d", reply.status)
	}
}
