package web

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"purser/ids"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
	"purser/views/component"
)

const password = "nine green herons wade"

// clock is a server's clock that a test moves.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() int64              { return c.ms.Load() }
func (c *clock) elapsed() time.Duration  { return time.Duration(c.now()) * time.Millisecond }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// newClockHarness is a harness whose clock stands. It has a database of its own: what is
// too old by its clock is still good elsewhere.
func newClockHarness(t *testing.T) (*harness, *clock) {
	t.Helper()
	return newClockHarnessOn(t, Options{NewOrganizations: true})
}

func newClockHarnessOn(t *testing.T, options Options) (*harness, *clock) {
	t.Helper()
	c := &clock{}
	// Noon: what is counted by the day is of the same day for hours.
	c.ms.Store(time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour).UnixMilli())
	url := storetest.FreshURL(t)
	db, err := store.Open(t.Context(), url, store.Options{})
	noError(t, err)
	t.Cleanup(db.Close)
	options.Store, options.Now, options.Elapsed = db, c.now, c.elapsed
	return newHarnessAt(t, url, options), c
}

// withPassword gives the browser's user a password, once hashed for all tests.
func (b *browser) withPassword(t *testing.T) {
	t.Helper()
	encoded, err := hashedOnce()
	noError(t, err)
	noError(t, b.harness.db.User(b.user.ID).ChangePassword(t.Context(), "", encoded, "", b.actor()))
}

func (b *browser) actor() audit.Actor {
	return audit.Actor{UserID: b.user.ID, Name: b.user.Email, At: b.harness.site.Now()}
}

var hashedOnce = sync.OnceValues(func() (string, error) { return credential.HashPassword(password, rand.Reader) })

func (b *browser) login(t *testing.T, email, typed string) seen {
	t.Helper()
	return b.post(t, "/login", url.Values{"email": {email}, "password": {typed}, "next": {"/account"}})
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	r, _ := newClockHarness(t)
	member := r.join(t, tenancy.Support)
	member.withPassword(t)

	t.Run("lets in who knows the password, and goes on", func(t *testing.T) {
		b := r.browser()
		if got := b.login(t, " "+strings.ToUpper(member.user.Email), password); got.status != http.StatusSeeOther || got.location != "/account" {
			t.Fatalf("status %d, %s\n%s", got.status, got.location, got.body)
		}
		if got := b.get(t, "/account"); got.status != http.StatusOK || !strings.Contains(got.body, member.user.Email) {
			t.Errorf("status %d", got.status)
		}
		if got := b.get(t, "/login"); got.status != http.StatusSeeOther || got.location != r.appPath() {
			t.Errorf("who is signed in is asked again: %d", got.status)
		}
		for next, want := range map[string]string{r.appPath("events") + "?event=1": r.appPath("events") + "?event=1", "//evil.example": r.appPath(), "https://evil.example/": r.appPath()} {
			if got := b.get(t, "/login?"+url.Values{"next": {next}}.Encode()); got.status != http.StatusSeeOther || got.location != want {
				t.Errorf("a link to %s leads who is signed in to %s", next, got.location)
			}
			if got := b.get(t, "/login/code?"+url.Values{"next": {next}}.Encode()); strings.Contains(got.location, "evil") || strings.Contains(next, "event") && b.get(t, got.location).location != want {
				t.Errorf("without a password, the code for %s leads to %s", next, got.location)
			}
		}
	})

	t.Run("is all that the start page offers once there is an account", func(t *testing.T) {
		page := r.browser().get(t, "/")
		says(t, page, http.StatusOK, "Sign in", "Documentation")
		if strings.Contains(page.body, "keys create") || strings.Contains(page.body, "Version") {
			t.Error("it shows the first steps or the version")
		}
		b := r.browser()
		b.login(t, member.user.Email, password)
		if got := b.get(t, "/"); got.location != r.appPath() {
			t.Errorf("who is signed in is led to %q", got.location)
		}
	})

	t.Run("leads nowhere but to this server", func(t *testing.T) {
		got := r.browser().post(t, "/login", url.Values{"email": {member.user.Email}, "password": {password}, "next": {"//evil.example"}})
		if got.location != r.appPath() {
			t.Errorf("it leads to %s", got.location)
		}
	})

	t.Run("opens the only application, or the closest list above it", func(t *testing.T) {
		enter := func(b *browser, want string) {
			t.Helper()
			got := r.browser().post(t, "/login", url.Values{"email": {b.user.Email}, "password": {password}, "next": {""}})
			if got.status != http.StatusSeeOther || got.location != want {
				t.Errorf("status %d, %s, want %s", got.status, got.location, want)
			}
		}
		keyless := r.join(t, tenancy.Custom, tenancy.MembersRead)
		keyless.withPassword(t)
		enter(keyless, r.orgPath())
		second, err := tenancy.NewApplication(ids.New(), r.org, "Second", false, r.site.Now())
		noError(t, err)
		second, err = r.db.Org(r.org.ID).By(member.actor()).CreateApplication(t.Context(), second)
		noError(t, err)
		enter(member, r.orgPath())
		noError(t, r.db.App(second.Scope()).By(member.actor()).Archive(t.Context(), second, r.site.Now()))
		enter(member, r.appPath())
		guest := r.browser()
		guest.user = r.newUser(t)
		guest.withPassword(t)
		enter(guest, "/o")
	})

	t.Run("tells nothing about who has an account", func(t *testing.T) {
		wrong := r.browser().login(t, member.user.Email, "a wrong password")
		unknown := r.browser().login(t, "nobody-"+member.user.Email, "a wrong password")
		without := r.newUser(t)
		bare := r.browser().login(t, without.Email, "a wrong password")
		malformed := r.browser().login(t, "not an address", "a wrong password")
		plain := func(s seen, email string) string {
			return strings.NewReplacer(s.header.Get("X-Request-Id"), "", email, "").Replace(s.body)
		}
		want := plain(wrong, member.user.Email)
		for name, c := range map[string]struct {
			seen
			email string
		}{"unknown": {unknown, "nobody-" + member.user.Email}, "no password": {bare, without.Email}, "malformed": {malformed, "not an address"}} {
			if c.status != wrong.status || plain(c.seen, c.email) != want || len(c.header.Values("Set-Cookie")) != len(wrong.header.Values("Set-Cookie")) {
				t.Errorf("%s answers %d, which differs from a wrong password:\n%s", name, c.status, c.body)
			}
		}
		if wrong.status != http.StatusUnprocessableEntity || strings.Contains(wrong.body, "a wrong password") {
			t.Errorf("status %d, or the password comes back", wrong.status)
		}
	})

	t.Run("gives a new token, so a planted one is worth nothing", func(t *testing.T) {
		b := r.browser()
		b.cookies[sessionCookieName] = &http.Cookie{Name: sessionCookieName, Value: "planted"}
		b.login(t, member.user.Email, password)
		if got := b.cookies[sessionCookieName].Value; got == "planted" || len(got) < 43 {
			t.Errorf("the token is %q", got)
		}
		thief := r.browser()
		thief.cookies[sessionCookieName] = &http.Cookie{Name: sessionCookieName, Value: "planted"}
		if got := thief.get(t, "/account"); got.status != http.StatusSeeOther {
			t.Errorf("the planted token opens the account: %d", got.status)
		}
		// The token of a session that was there before is renewed as well.
		before := b.cookies[sessionCookieName].Value
		b.formToken = tokenIn(b.get(t, "/account").body)
		b.post(t, "/confirm", url.Values{"password": {password}})
		if b.cookies[sessionCookieName].Value == before {
			t.Error("proving the password again keeps the token")
		}
		thief.cookies[sessionCookieName].Value = before
		if got := thief.get(t, "/account"); got.status != http.StatusSeeOther {
			t.Errorf("the token of before still works: %d", got.status)
		}
	})

	t.Run("sends a cookie that scripts and other sites do not get", func(t *testing.T) {
		got := r.browser().login(t, member.user.Email, password).header.Get("Set-Cookie")
		for _, want := range []string{"HttpOnly", "SameSite=Lax", "Path=/"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s is missing in %s", want, got)
			}
		}
	})

	t.Run("ends with the sign-out", func(t *testing.T) {
		b := r.join(t, tenancy.Support)
		stolen := *b.cookies[sessionCookieName]
		if got := b.post(t, "/logout", nil); got.status != http.StatusSeeOther || len(b.cookies) != 0 {
			t.Errorf("status %d, cookies %v", got.status, b.cookies)
		}
		b.cookies[sessionCookieName] = &stolen
		if got := b.get(t, "/account"); got.status != http.StatusSeeOther {
			t.Errorf("the token still works: %d", got.status)
		}
	})
}

func TestSignInIsThrottled(t *testing.T) {
	t.Parallel()
	r, clock := newClockHarness(t)
	member := r.join(t, tenancy.Support)
	member.withPassword(t)

	for name, email := range map[string]string{"an account": member.user.Email, "an address without one": ids.New().String() + "@example.com"} {
		t.Run("by the account: "+name, func(t *testing.T) {
			clock.advance(time.Hour) // so that the network has all its attempts again
			for i := range 5 {
				if got := r.browser().login(t, email, "wrong"); got.status != http.StatusUnprocessableEntity {
					t.Fatalf("attempt %d: status %d", i+1, got.status)
				}
			}
			got := r.browser().login(t, email, password)
			if got.status != http.StatusTooManyRequests || !strings.Contains(got.body, "Try again in 1 second.") || got.header.Get("Retry-After") != "1" {
				t.Errorf("the sixth at once: status %d, Retry-After %q", got.status, got.header.Get("Retry-After"))
			}
			clock.advance(time.Second)
			r.browser().login(t, email, "wrong")
			if got := r.browser().login(t, email, password); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "2" {
				t.Errorf("then: status %d, Retry-After %q", got.status, got.header.Get("Retry-After"))
			}
			clock.advance(2 * time.Second)
			want := http.StatusSeeOther
			if email != member.user.Email {
				want = http.StatusUnprocessableEntity
			}
			if got := r.browser().login(t, email, password); got.status != want {
				t.Errorf("after the wait: status %d", got.status)
			}
		})
	}

	t.Run("by the network", func(t *testing.T) {
		clock.advance(time.Hour)
		for i := range attemptsAMinute {
			if got := r.browser().login(t, ids.New().String()+"@example.com", "wrong"); got.status != http.StatusUnprocessableEntity {
				t.Fatalf("attempt %d: status %d", i+1, got.status)
			}
		}
		if got := r.browser().login(t, member.user.Email, password); got.status != http.StatusTooManyRequests {
			t.Errorf("one more: status %d", got.status)
		}
		clock.advance(3 * time.Second)
		if got := r.browser().login(t, member.user.Email, password); got.status != http.StatusSeeOther {
			t.Errorf("a little later: status %d", got.status)
		}
	})

	t.Run("also when many try at once", func(t *testing.T) {
		clock.advance(time.Hour)
		email := ids.New().String() + "@example.com"
		var checked atomic.Int32
		var wait sync.WaitGroup
		for range 12 {
			wait.Go(func() {
				if r.browser().login(t, email, "wrong").status == http.StatusUnprocessableEntity {
					checked.Add(1)
				}
			})
		}
		wait.Wait()
		if got := checked.Load(); got != 5 {
			t.Errorf("%d attempts were checked", got)
		}
	})
}

// tokenIn is the form token of a page.
func tokenIn(body string) string {
	_, rest, _ := strings.Cut(body, `name="`+component.FormTokenField+`" value="`)
	token, _, _ := strings.Cut(rest, `"`)
	return token
}
