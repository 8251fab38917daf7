package web

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/credential"
	"purser/tenancy/vault"
)

// hidden is the value of a hidden field in a page.
func hidden(body, name string) string {
	_, rest, _ := strings.Cut(body, `name="`+name+`" value="`)
	value, _, _ := strings.Cut(rest, `"`)
	return html.UnescapeString(value)
}

// seedIn reads the seed that a page shows.
func seedIn(t *testing.T, body string) credential.Seed {
	t.Helper()
	_, rest, _ := strings.Cut(body, "secret=")
	text, _, _ := strings.Cut(rest, `"`)
	seed, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(text)
	noError(t, err)
	return seed
}

func TestAuthenticator(t *testing.T) {
	t.Parallel()
	r, clock := newClockHarness(t)
	b := r.join(t, tenancy.Support)
	b.withPassword(t)
	b.signIn(t)
	code := func(seed credential.Seed) string { return seed.Code(clock.now() / 30_000) }

	page := b.get(t, "/account/factor")
	seed := seedIn(t, page.body)
	t.Run("is on only once its first code was typed", func(t *testing.T) {
		if got := b.post(t, "/account/factor", url.Values{"seed": {hidden(page.body, "seed")}, "code": {"000000"}}); got.status != http.StatusUnprocessableEntity {
			t.Errorf("status %d", got.status)
		}
		if _, err := r.db.User(b.user.ID).Factor(t.Context()); err == nil {
			t.Error("it is on")
		}
	})
	t.Run("takes no seed that was sealed for another user", func(t *testing.T) {
		other := r.join(t, tenancy.Support)
		if got := other.post(t, "/account/factor", url.Values{"seed": {hidden(page.body, "seed")}, "code": {code(seed)}}); got.status != http.StatusUnprocessableEntity {
			t.Errorf("status %d", got.status)
		}
	})
	// The form may be older than the key in use, and what is stored must not be.
	newer := []byte(strings.Repeat("n", vault.MinSecret))
	both, err := vault.New(rand.Reader, newer, rigSecret)
	noError(t, err)
	r.site.Vault = both
	shown := b.post(t, "/account/factor", url.Values{"seed": {hidden(page.body, "seed")}, "code": {code(seed)}})
	if shown.status != http.StatusOK || shown.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("status %d, %s", shown.status, shown.header.Get("Cache-Control"))
	}
	_, rest, _ := strings.Cut(shown.body, "<code>")
	text, _, _ := strings.Cut(rest, "</code>")
	codes := strings.Fields(text)
	if len(codes) != credential.RecoveryCodes {
		t.Fatalf("%d recovery codes are shown", len(codes))
	}
	if again := b.post(t, "/account/factor", url.Values{"seed": {hidden(page.body, "seed")}, "code": {code(seed)}}); again.location != "/account" {
		t.Errorf("the form sent again leads to %q, status %d", again.location, again.status)
	}
	only, err := vault.New(rand.Reader, newer)
	noError(t, err)
	r.site.Vault = only
	if said := b.get(t, "/account"); !strings.Contains(said.body, "generate new ones") {
		t.Error("the page doesn't say how to get codes that were not seen")
	}

	if again := b.get(t, "/account"); strings.Contains(again.body, codes[0]) || !strings.Contains(again.body, "10 recovery codes left") {
		t.Error("the codes are shown again")
	}

	// halfway is a browser whose user has given the password.
	halfway := func(t *testing.T) *browser {
		t.Helper()
		clock.advance(time.Minute)
		half := r.browser()
		got := half.login(t, b.user.Email, password)
		if !strings.HasPrefix(got.location, "/login/code") {
			t.Fatalf("it leads to %s", got.location)
		}
		return half
	}
	try := func(t *testing.T, b *browser, typed string) seen {
		t.Helper()
		return b.post(t, "/login/code", url.Values{"code": {typed}, "next": {"/account"}})
	}

	t.Run("keeps the password alone from letting anybody in", func(t *testing.T) {
		half := halfway(t)
		if got := half.get(t, "/account"); got.status != http.StatusSeeOther {
			t.Errorf("status %d", got.status)
		}
		if got := half.get(t, "/login/code"); got.status != http.StatusOK {
			t.Errorf("status %d", got.status)
		}
	})
	t.Run("lets in with a code, once", func(t *testing.T) {
		half, late := halfway(t), halfway(t)
		used := code(seed)
		if got := try(t, half, used); got.location != "/account" {
			t.Errorf("status %d, %s", got.status, got.location)
		}
		if got := half.get(t, "/account"); got.status != http.StatusOK {
			t.Errorf("status %d", got.status)
		}
		half.formToken = tokenIn(half.get(t, "/account").body)
		half.post(t, "/logout", nil)
		if got := half.get(t, "/login/code"); got.location != "/login" {
			t.Errorf("after it, the password waits for another code: status %d", got.status)
		}
		if got := try(t, late, used); got.status != http.StatusUnprocessableEntity {
			t.Errorf("the same code again: status %d", got.status)
		}
	})
	t.Run("lets in with a recovery code, once", func(t *testing.T) {
		if got := try(t, halfway(t), strings.ToUpper(codes[3])); got.location != "/account" {
			t.Errorf("status %d, %s", got.status, got.location)
		}
		if got := try(t, halfway(t), codes[3]); got.status != http.StatusUnprocessableEntity {
			t.Errorf("the same again: status %d", got.status)
		}
	})
	t.Run("lets in with a recovery code also when nobody can read the seed", func(t *testing.T) {
		lost, err := vault.New(rand.Reader, []byte(strings.Repeat("l", vault.MinSecret)))
		noError(t, err)
		r.site.Vault = lost
		defer func() { r.site.Vault = only }()
		if got := try(t, halfway(t), codes[4]); got.location != "/account" {
			t.Errorf("status %d, %s", got.status, got.location)
		}
	})
	t.Run("is throttled", func(t *testing.T) {
		clock.advance(48 * time.Hour)
		half := halfway(t)
		for range 5 {
			if got := try(t, half, "000000"); got.status != http.StatusUnprocessableEntity {
				t.Fatalf("status %d", got.status)
			}
		}
		if got := try(t, half, code(seed)); got.status != http.StatusTooManyRequests {
			t.Errorf("status %d", got.status)
		}
	})
	t.Run("is asked for in time", func(t *testing.T) {
		half := halfway(t)
		clock.advance(codeExpires + time.Second)
		if got := try(t, half, code(seed)); got.location != "/login?next=%2Faccount" {
			t.Errorf("status %d, %s", got.status, got.location)
		}
	})
	t.Run("is asked for again where it matters, and turned off", func(t *testing.T) {
		clock.advance(time.Hour)
		b.signIn(t)
		clock.advance(reauthAfter + time.Second)
		if got := b.post(t, "/account/factor/remove", nil); !strings.HasPrefix(got.location, "/confirm") {
			t.Fatalf("it leads to %s", got.location)
		}
		half := halfway(t)
		const another = "eleven blue otters swim"
		for _, change := range [][2]string{{password, another}, {another, password}} {
			if got := b.post(t, "/account/password", url.Values{"current": {change[0]}, "password": {change[1]}}); got.location != "/account" {
				t.Fatalf("status %d, %s", got.status, got.location)
			}
			clock.advance(time.Second)
		}
		if got := b.post(t, "/account/factor/remove", nil); !strings.HasPrefix(got.location, "/confirm") {
			t.Errorf("a new password confirms without a code: it leads to %s", got.location)
		}
		if got := try(t, half, code(seed)); got.location != "/login?next=%2Faccount" {
			t.Errorf("a replaced password still signs in: status %d, %s", got.status, got.location)
		}
		if got := b.post(t, "/confirm", url.Values{"password": {password}, "next": {"/account"}}); got.status != http.StatusUnprocessableEntity {
			t.Errorf("the password alone confirms: %d", got.status)
		}
		clock.advance(time.Minute) // the missing code has counted as an attempt
		if got := b.post(t, "/confirm", url.Values{"password": {password}, "code": {code(seed)}, "next": {"/account"}}); got.location != "/account" {
			t.Errorf("status %d, %s", got.status, got.location)
		}
		if got := b.post(t, "/account/factor/remove", nil); got.location != "/account" {
			t.Errorf("status %d", got.status)
		}
		if got := r.browser().login(t, b.user.Email, password); got.location != "/account" {
			t.Errorf("a code is still asked for: %s", got.location)
		}
	})
}

// TestSignInsThatWaitForACodeStoreNothing counts what an account could leave any number of.
func TestSignInsThatWaitForACodeStoreNothing(t *testing.T) {
	t.Parallel()
	r, clock := newClockHarness(t)
	b := r.join(t, tenancy.Support)
	b.withPassword(t)
	b.signIn(t)
	b.withFactor(t)
	half := r.browser()
	half.header.Set("User-Agent", "waits for a code")
	if got := half.login(t, b.user.Email, password); !strings.HasPrefix(got.location, "/login/code") {
		t.Fatalf("it leads to %s", got.location)
	}
	if tables := storetest.TablesWith(t, r.url, "waits for a code"); len(tables) > 0 {
		t.Errorf("a sign-in that waits for its code is in %q", tables)
	}
	for name, cookie := range half.cookies {
		if !cookie.HttpOnly || cookie.MaxAge > int(codeExpires.Seconds()) {
			t.Errorf("cookie %s for scripts: %t, for %d s", name, !cookie.HttpOnly, cookie.MaxAge)
		}
		if strings.Contains(cookie.Value, b.user.ID.Format(ids.User)) {
			t.Errorf("cookie %s shows the account", name)
		}
		// What was sealed for something else is no password.
		sealed, err := r.site.Vault.Seal(vault.SeedOf(b.user.ID), fmt.Append(nil, b.user.ID.Format(ids.User), " ", clock.now(), " ", clock.now()))
		noError(t, err)
		forger := r.browser()
		forger.cookies[name] = &http.Cookie{Name: name, Value: base64.RawURLEncoding.EncodeToString(sealed)}
		if got := forger.get(t, "/login/code"); got.location != "/login" {
			t.Errorf("a forged cookie %s leads to status %d, %s", name, got.status, got.location)
		}
	}
}

func TestAChangedPasswordKeepsTheCountOfWrongCodes(t *testing.T) {
	t.Parallel()
	r, clock := newClockHarness(t)
	b := r.join(t, tenancy.Support)
	b.withPassword(t)
	b.signIn(t)
	page := b.get(t, "/account/factor")
	seed := seedIn(t, page.body)
	if got := b.post(t, "/account/factor", url.Values{"seed": {hidden(page.body, "seed")}, "code": {seed.Code(clock.now() / 30_000)}}); got.status != http.StatusOK {
		t.Fatalf("status %d", got.status)
	}
	confirm := func(password string, want int) {
		t.Helper()
		if got := b.post(t, "/confirm", url.Values{"password": {password}, "code": {"000000"}, "next": {"/account"}}); got.status != want {
			t.Errorf("status %d, want %d", got.status, want)
		}
	}
	for range 5 {
		confirm(password, http.StatusUnprocessableEntity)
	}
	confirm(password, http.StatusTooManyRequests)
	const another = "eleven blue otters swim"
	if got := b.post(t, "/account/password", url.Values{"current": {password}, "password": {another}}); got.location != "/account" {
		t.Fatalf("status %d, %s", got.status, got.location)
	}
	confirm(another, http.StatusTooManyRequests)
	b.signIn(t) // by a code
	confirm(another, http.StatusUnprocessableEntity)
}
