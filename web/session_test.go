package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"purser/ids"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/site"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	r, clock := newClockHarness(t)
	inside := func(t *testing.T, b *browser, want bool) {
		t.Helper()
		got := b.get(t, "/account")
		if (got.status == http.StatusOK) != want {
			t.Errorf("status %d", got.status)
		}
	}

	t.Run("are listed, and ended one by one", func(t *testing.T) {
		here := r.join(t, tenancy.Support)
		there := r.browser()
		there.user = here.user
		there.header.Set("User-Agent", `<script>alert(1)</script>`)
		there.signIn(t)
		clock.advance(time.Minute) // after which a session's place is stored again
		there.get(t, "/account")
		page := here.get(t, "/account")
		if !strings.Contains(page.body, "This browser") || strings.Contains(page.body, "<script>alert") || !strings.Contains(page.body, "&lt;script&gt;alert(1)") {
			t.Errorf("the page is\n%s", page.body)
		}
		_, rest, _ := strings.Cut(page.body, "/account/sessions/ses_")
		id, _, _ := strings.Cut(rest, "/end")
		otherUser := r.join(t, tenancy.Owner)
		if got := otherUser.post(t, "/account/sessions/ses_"+id+"/end", nil); got.status != http.StatusNotFound {
			t.Errorf("another user ends it: %d", got.status)
		}
		inside(t, there, true)
		if got := here.post(t, "/account/sessions/ses_"+id+"/end", nil); got.status != http.StatusSeeOther {
			t.Errorf("status %d", got.status)
		}
		inside(t, there, false)
		inside(t, here, true)
	})

	t.Run("in all other browsers end together, and with a new password", func(t *testing.T) {
		for name, act := range map[string]func(b *browser) seen{
			"together": func(b *browser) seen { return b.post(t, "/account/sessions/end", nil) },
			"with a new password": func(b *browser) seen {
				b.withPassword(t)
				b.signIn(t)
				return b.post(t, "/account/password", url.Values{"current": {password}, "password": {"eleven blue otters swim"}})
			},
		} {
			here := r.join(t, tenancy.Support)
			there := r.browser()
			there.user = here.user
			if name == "together" {
				there.signIn(t)
			}
			got := act(here)
			if got.status != http.StatusSeeOther {
				t.Errorf("%s: status %d\n%s", name, got.status, got.body)
			}
			if name != "together" {
				there.signIn(t) // a session of before would be gone with the first password
				here.formToken = tokenIn(here.get(t, "/account").body)
				got = here.post(t, "/account/password", url.Values{"current": {"eleven blue otters swim"}, "password": {"seven red foxes run"}})
				if got.status != http.StatusSeeOther {
					t.Errorf("%s: status %d\n%s", name, got.status, got.body)
				}
			}
			inside(t, there, false)
			inside(t, here, true)
		}
	})

	t.Run("end after eight hours without a visit", func(t *testing.T) {
		b := r.join(t, tenancy.Support)
		clock.advance(idleFor - time.Minute)
		inside(t, b, true)
		clock.advance(idleFor + time.Minute)
		inside(t, b, false)
	})

	t.Run("end after seven days, however often they are used", func(t *testing.T) {
		b := r.join(t, tenancy.Support)
		for left := sessionLasts; left > 0; left -= 7 * time.Hour {
			inside(t, b, true)
			clock.advance(7 * time.Hour)
		}
		inside(t, b, false)
	})

	t.Run("ask for the password again after ten minutes, where it matters", func(t *testing.T) {
		b := r.join(t, tenancy.Owner)
		b.withPassword(t)
		b.signIn(t)
		if got := b.get(t, r.orgPath("members", "invite")); got.status != http.StatusOK {
			t.Fatalf("status %d", got.status)
		}
		clock.advance(reauthAfter + time.Second)
		got := b.get(t, r.orgPath("members", "invite"))
		if want := "/confirm?next=" + url.QueryEscape(r.orgPath("members", "invite")); got.location != want {
			t.Fatalf("it leads to %s, want %s", got.location, want)
		}
		if got := b.post(t, r.orgPath("members", "invite"), url.Values{"note": {"Bob"}, "role": {"support"}}); !strings.HasPrefix(got.location, "/confirm") {
			t.Errorf("the form is taken: %d", got.status)
		}
		if got := b.post(t, "/confirm", url.Values{"password": {"wrong"}, "next": {r.orgPath("members", "invite")}}); got.status != http.StatusUnprocessableEntity {
			t.Errorf("a wrong password: status %d", got.status)
		}
		if got := b.post(t, "/confirm", url.Values{"password": {password}, "next": {r.orgPath("members", "invite")}}); got.location != r.orgPath("members", "invite") {
			t.Errorf("it leads to %s", got.location)
		}
		if got := b.get(t, r.orgPath("members", "invite")); got.status != http.StatusOK {
			t.Errorf("status %d", got.status)
		}
	})

	t.Run("say that a form was not carried out, at the confirmation and at the sign-in", func(t *testing.T) {
		b := r.join(t, tenancy.Owner)
		b.withPassword(t)
		b.signIn(t)
		b.header.Set("Referer", r.server.URL+"/account")
		clock.advance(reauthAfter + time.Second)
		got := b.post(t, "/account/factor/codes", nil)
		page := b.get(t, got.location)
		if !strings.Contains(page.body, "then repeat the action") {
			t.Errorf("%s does not say it", got.location)
		}
		again := b.post(t, "/confirm", url.Values{"password": {"wrong"}, "next": {"/account"}, "repeat": {hidden(page.body, "repeat")}})
		if got := b.post(t, "/confirm", url.Values{"password": {password}, "next": {"/account"}, "repeat": {hidden(again.body, "repeat")}}); got.location != "/account" {
			t.Fatalf("it leads to %s", got.location)
		}
		if got := b.get(t, "/account"); !strings.Contains(got.body, "Nothing was changed yet") {
			t.Error("the next page does not say it")
		}
		clock.advance(idleFor + time.Minute)
		if got := b.get(t, b.post(t, "/account/name", nil).location); !strings.Contains(got.body, "nothing was changed") {
			t.Error("the sign-in does not say it")
		}
	})

	t.Run("are kept as hashes", func(t *testing.T) {
		b := r.join(t, tenancy.Support)
		b.get(t, "/account")
		if _, found, err := r.db.Auth().SessionContent(t.Context(), b.cookies[sessionCookieName].Value, 0, clock.now()); !found || err != nil {
			t.Errorf("the token does not lead to it: %t, %v", found, err)
		}
	})
}

// When the sessions cannot be read, nobody is let in and nothing is shown.
func TestSessionsFailClosed(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), storetest.URL(t), store.Options{})
	noError(t, err)
	r := newHarnessOn(t, Options{Options: site.Options{Store: db}})
	b := r.join(t, tenancy.Owner)
	db.Close()
	for _, path := range []string{"/o", "/login", "/", r.orgPath("members")} {
		if got := b.get(t, path); got.status != http.StatusInternalServerError || strings.Contains(got.body, r.org.Name) {
			t.Errorf("%s answers %d", path, got.status)
		}
	}
	if got := b.get(t, "/o"); got.header.Get(echo.HeaderSetCookie) != "" {
		t.Error("the cookie is taken away, though the session may be there")
	}
}

func TestEndedSessionsAreLogged(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	var log bytes.Buffer
	r.site.Log = slog.New(slog.NewJSONHandler(&log, nil))
	here := r.join(t, tenancy.Support)
	other := r.browser()
	other.user = here.user
	other.signIn(t)
	list, current, err := r.db.User(here.user.ID).Sessions(t.Context(), here.cookies[r.site.SessionCookie()].Value, r.site.Now())
	noError(t, err)
	ended := list[0].ID
	if ended == current {
		ended = list[1].ID
	}
	path := "/account/sessions/" + ended.Format(ids.Session) + "/end"
	logged := func(t *testing.T, got seen, status int, want string) {
		t.Helper()
		if got.status != status {
			t.Errorf("status %d", got.status)
		}
		line := log.String()
		log.Reset()
		if want == "" && line == "" {
			return
		}
		for _, part := range []string{want, here.user.ID.Format(ids.User), got.header.Get(echo.HeaderXRequestID), `"address":"127.0.0.1"`} {
			if part == "" || !strings.Contains(line, part) {
				t.Errorf("%q is not in the log:\n%s", part, line)
			}
		}
	}
	logged(t, here.post(t, path, nil), http.StatusSeeOther, `"msg":"session ended"`)
	logged(t, here.post(t, path, nil), http.StatusNotFound, "")
	logged(t, here.post(t, "/account/sessions/end", nil), http.StatusSeeOther, `"msg":"all other sessions ended"`)
}
