package web

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"purser/ids"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/site"
)

// newFirstRun is a site on a database without any account.
func newFirstRun(t *testing.T) *harness {
	t.Helper()
	url := storetest.FreshURL(t)
	db, err := store.Open(t.Context(), url, store.Options{})
	noError(t, err)
	t.Cleanup(db.Close)
	return newHarnessAt(t, url, Options{Options: site.Options{Store: db, BaseURL: "http://purser.example"}})
}

func (r *harness) offer(t *testing.T) string {
	t.Helper()
	link, err := r.site.OfferSetup(t.Context())
	noError(t, err)
	return strings.TrimPrefix(link, "http://purser.example")
}

var founder = url.Values{
	"name": {"Ann"}, "email": {"Ann@Example.com"}, "password": {password}, "organization": {"Bolt"}, "application": {"Chat"},
}

func TestSetup(t *testing.T) {
	t.Parallel()
	r := newFirstRun(t)
	first, second := r.offer(t), r.offer(t)

	t.Run("is closed to who has no link", func(t *testing.T) {
		for _, path := range []string{"/setup", "/setup/", "/setup/guessed"} {
			if got := r.browser().get(t, path); got.status != http.StatusNotFound {
				t.Errorf("%s answers %d", path, got.status)
			}
		}
		if got := r.browser().post(t, "/setup/guessed", founder); got.status != http.StatusNotFound {
			t.Errorf("a guessed link answers %d", got.status)
		}
	})

	t.Run("keeps what was typed when something is wrong, but no password", func(t *testing.T) {
		fields := url.Values{"name": {"Ann <b>"}, "email": {"ann"}, "password": {"short"}, "organization": {""}, "application": {"Chat"}}
		got := r.browser().post(t, first, fields)
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "Ann &lt;b&gt;") || strings.Contains(got.body, `value="short"`) {
			t.Errorf("status %d\n%s", got.status, got.body)
		}
		for _, field := range []string{"email", "password", "organization"} {
			if !strings.Contains(got.body, `id="field-`+field+`-error"`) {
				t.Errorf("nothing is said about %s", field)
			}
		}
	})

	t.Run("is what the start page and the sign-in point to, without the link", func(t *testing.T) {
		for _, path := range []string{"/", "/login"} {
			got := r.browser().get(t, path)
			if got.status != http.StatusOK || !strings.Contains(got.body, "Set up Purser") || strings.Contains(got.body, "/setup/") {
				t.Errorf("%s answers %d\n%s", path, got.status, got.body)
			}
		}
		if got := r.browser().get(t, "/setup/guessed"); strings.Contains(got.body, "already") || !strings.Contains(got.body, "Invalid setup link") {
			t.Error("a guessed link is told something else")
		}
		if got := r.browser().get(t, "/"); !strings.Contains(got.body, `href="/docs"`) {
			t.Error("the start page does not lead to the documentation")
		}
	})

	b := r.browser()
	t.Run("works after a restart with the link of before, and leads to the first steps", func(t *testing.T) {
		if got := b.get(t, first); got.status != http.StatusOK {
			t.Fatalf("status %d", got.status)
		}
		got := b.post(t, first, founder)
		if got.status != http.StatusSeeOther || got.location != "/o/bolt/a/chat/quickstart" {
			t.Fatalf("status %d, %s\n%s", got.status, got.location, got.body)
		}
		page := b.get(t, "/o")
		if page.status != http.StatusOK || !strings.Contains(page.body, "Bolt") {
			t.Errorf("the founder does not see the organization: %d", page.status)
		}
		// The harness's organization was made past any account, as the command line does.
		if !strings.Contains(page.body, r.org.Name) {
			t.Error("an organization without members became nobody's")
		}
	})

	t.Run("is never open twice", func(t *testing.T) {
		for _, link := range []string{first, second} {
			if got := r.browser().get(t, link); got.status != http.StatusNotFound {
				t.Errorf("%s answers %d", link, got.status)
			}
			if got := r.browser().post(t, link, founder); got.status != http.StatusNotFound {
				t.Errorf("%s takes a second founder: %d", link, got.status)
			}
		}
		for _, link := range []string{first, "/setup/guessed"} {
			got := r.browser().get(t, link)
			if !strings.Contains(got.body, "Purser is already set up") || !strings.Contains(got.body, `href="/login"`) {
				t.Errorf("%s does not lead to the sign-in", link)
			}
		}
		for _, path := range []string{"/", "/login"} {
			if got := r.browser().get(t, path); strings.Contains(got.body, "Set up Purser") {
				t.Errorf("%s still speaks of the setup", path)
			}
		}
		if again := r.offer(t); again != "" {
			t.Errorf("another link is offered: %s", again)
		}
	})

	t.Run("leaves an owner, a test application and a log of it", func(t *testing.T) {
		b.formToken = tokenIn(b.get(t, "/o").body)
		log := b.get(t, "/o/bolt/audit")
		if log.status != http.StatusOK || !strings.Contains(log.body, "organization.create") || !strings.Contains(log.body, "application.create") || !strings.Contains(textOf(log.body), "mode test") {
			t.Errorf("status %d\n%s", log.status, log.body)
		}
		if got := b.get(t, "/o/bolt"); !strings.Contains(got.body, "TEST") && !strings.Contains(got.body, "Test") {
			t.Error("the application is not shown as one for tests")
		}
	})
}

func TestSetupMakesOneFounderOfMany(t *testing.T) {
	t.Parallel()
	r := newFirstRun(t)
	var links []string
	for range 6 {
		links = append(links, r.offer(t))
	}
	var setUp atomic.Int32
	var wait sync.WaitGroup
	for _, link := range links {
		wait.Go(func() {
			fields := url.Values{"name": {"Ann"}, "email": {ids.New().String() + "@example.com"}, "password": {password}, "organization": {"Bolt"}, "application": {"Chat"}}
			switch got := r.browser().post(t, link, fields); got.status {
			case http.StatusSeeOther:
				setUp.Add(1)
			case http.StatusNotFound:
			default:
				t.Errorf("status %d", got.status)
			}
		})
	}
	wait.Wait()
	if setUp.Load() != 1 {
		t.Errorf("there are %d founders", setUp.Load())
	}
}

func TestSetupTakesOverWhatTheCommandLineMade(t *testing.T) {
	t.Parallel()
	r := newFirstRun(t)
	fields := url.Values{"name": {"Ann"}, "email": {"ann@example.com"}, "password": {password}, "organization": {r.org.Name}, "application": {r.app.Name}}
	if got := r.browser().post(t, r.offer(t), fields); got.location != r.appPath("quickstart") {
		t.Fatalf("it leads to %s", got.location)
	}
	members, err := r.db.Org(r.org.ID).Members(t.Context())
	if err != nil || len(members) != 1 || members[0].Role != tenancy.Owner {
		t.Errorf("members are %v, %v", members, err)
	}
	if apps, err := r.db.Org(r.org.ID).Applications(t.Context()); err != nil || len(apps) != 1 {
		t.Errorf("applications are %v, %v", apps, err)
	}
}
