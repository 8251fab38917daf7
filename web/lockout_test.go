package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/tenancy"
	"purser/tenancy/credential"
	"purser/views/component"
	"purser/web/site"
)

// newProxyHarness is a clock harness whose callers say in a header where they come from.
func newProxyHarness(t *testing.T) (*harness, *clock) {
	t.Helper()
	return newClockHarnessOn(t, Options{Options: site.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, NewOrganizations: true})
}

// at puts a browser behind the given address.
func (b *browser) at(address string) *browser {
	b.header.Set("X-Forwarded-For", address)
	return b
}

func TestForeignGuessesNeverLockTheOwnerOut(t *testing.T) {
	t.Parallel()
	r, clock := newProxyHarness(t)
	owner := r.join(t, tenancy.Owner)
	owner.withPassword(t)
	home := r.browser().at("192.0.2.10")
	if got := home.login(t, owner.user.Email, password); got.status != http.StatusSeeOther {
		t.Fatalf("status %d", got.status)
	}
	// guess makes a stranger use up what an address and a network have.
	guess := func(t *testing.T, address string) {
		t.Helper()
		for range attemptsAMinute + 5 {
			r.browser().at(address).login(t, owner.user.Email, "wrong")
		}
		if got := r.browser().at(address).login(t, owner.user.Email, password); got.status != http.StatusTooManyRequests {
			t.Fatalf("a stranger guesses on: %d", got.status)
		}
	}

	t.Run("a new browser in another network signs in", func(t *testing.T) {
		clock.advance(time.Hour)
		guess(t, "198.51.100.1")
		if got := r.browser().at("203.0.113.9").login(t, owner.user.Email, password); got.status != http.StatusSeeOther {
			t.Errorf("status %d", got.status)
		}
	})
	t.Run("a known browser signs in from the stranger's network", func(t *testing.T) {
		clock.advance(time.Hour)
		guess(t, "192.0.2.99")
		home.post(t, "/logout", url.Values{component.FormTokenField: {tokenIn(home.get(t, "/account").body)}})
		if got := home.login(t, owner.user.Email, password); got.status != http.StatusSeeOther {
			t.Errorf("status %d", got.status)
		}
	})
	t.Run("a session confirms the password meanwhile", func(t *testing.T) {
		clock.advance(time.Hour)
		guess(t, "192.0.2.98")
		home.formToken = tokenIn(home.get(t, "/account").body)
		if got := home.post(t, "/confirm", url.Values{"password": {password}, "next": {"/account"}}); got.location != "/account" {
			t.Errorf("status %d, %s", got.status, got.location)
		}
		home.formToken = tokenIn(home.get(t, "/account").body)
		if got := home.post(t, "/account/password", url.Values{"current": {password}, "password": {"seven slow rivers bend"}}); got.location != "/account" {
			t.Errorf("status %d, %s\n%s", got.status, got.location, got.body)
		}
	})
}

func TestKnownBrowsersAreCountedToo(t *testing.T) {
	t.Parallel()
	r, clock := newProxyHarness(t)
	ann, bob := r.join(t, tenancy.Support), r.join(t, tenancy.Support)
	ann.withPassword(t)
	bob.withPassword(t)
	device := func(t *testing.T, b *browser) *http.Cookie {
		t.Helper()
		cookie := b.cookies[deviceCookie]
		if cookie == nil {
			t.Fatal("the browser is not known")
		}
		return cookie
	}
	refusedAfter := func(t *testing.T, b *browser, email string) (tries int) {
		t.Helper()
		for range 2 * attemptsAMinute {
			if b.login(t, email, "wrong").status == http.StatusTooManyRequests {
				return tries
			}
			tries++
		}
		return tries
	}
	annAtHome, bobAtHome := r.browser().at("192.0.2.1"), r.browser().at("192.0.2.2")
	annAtHome.login(t, ann.user.Email, password)
	bobAtHome.login(t, bob.user.Email, password)

	t.Run("a stolen device cookie guesses five times", func(t *testing.T) {
		thief := r.browser().at("198.51.100.1")
		thief.cookies[deviceCookie] = device(t, annAtHome)
		if tries := refusedAfter(t, thief, ann.user.Email); tries != 5 {
			t.Errorf("%d guesses", tries)
		}
	})
	t.Run("another account's cookie counts as none", func(t *testing.T) {
		clock.advance(time.Hour)
		for range 5 {
			r.browser().at("203.0.113.1").login(t, ann.user.Email, "wrong")
		}
		thief := r.browser().at("203.0.113.1")
		thief.cookies[deviceCookie] = device(t, bobAtHome)
		if tries := refusedAfter(t, thief, ann.user.Email); tries != 0 {
			t.Errorf("%d further guesses", tries)
		}
	})
	t.Run("a stolen session guesses five times", func(t *testing.T) {
		clock.advance(time.Hour)
		bobAtHome.formToken = tokenIn(bobAtHome.get(t, "/account").body)
		var last seen
		for range 6 {
			last = bobAtHome.post(t, "/confirm", url.Values{"password": {"wrong"}})
		}
		if last.status != http.StatusTooManyRequests {
			t.Errorf("the sixth: status %d", last.status)
		}
	})
	t.Run("codes are counted for the account wherever they come from", func(t *testing.T) {
		user := ids.New().Format(ids.User)
		if credential.CodeSubject(user, "") == credential.CodeSubject(user, "device") {
			t.Error("a known browser is counted with all others")
		}
		victim := r.join(t, tenancy.Support)
		victim.withPassword(t)
		victim.signIn(t)
		recovery := victim.withFactor(t)
		clock.advance(time.Hour)
		checked := 0
		for i := range 7 {
			thief := r.browser().at(netip.AddrFrom4([4]byte{198, 18, byte(i), 1}).String())
			thief.login(t, victim.user.Email, password)
			if thief.post(t, "/login/code", url.Values{"code": {"000000"}}).status == http.StatusUnprocessableEntity {
				checked++
			}
		}
		if checked != 5 {
			t.Errorf("%d codes were checked", checked)
		}
		// Codes of 128 bits cannot be guessed, so their owner need not wait.
		fresh := r.browser().at("203.0.113.77")
		fresh.login(t, victim.user.Email, password)
		if got := fresh.post(t, "/login/code", url.Values{"code": {recovery[0]}}); got.status != http.StatusSeeOther {
			t.Errorf("a recovery code meanwhile: status %d", got.status)
		}
	})
}

func TestRefusedSignInsSayWhoseAccount(t *testing.T) {
	t.Parallel()
	r, _ := newClockHarness(t)
	var log bytes.Buffer
	r.site.Log = slog.New(slog.NewJSONHandler(&log, nil))
	b := r.join(t, tenancy.Support)
	b.withPassword(t)
	r.browser().login(t, b.user.Email, "wrong")
	r.browser().login(t, "stranger@example.com", "wrong")
	got := log.String()
	for _, want := range []string{`"user":"` + b.user.ID.Format(ids.User) + `"`, `"user":"unknown"`, `"reason":"wrong password"`, `"step":"password"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "stranger@example.com") {
		t.Error("the log holds what was typed")
	}
}
