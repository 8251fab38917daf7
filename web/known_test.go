package web

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"purser/tenancy"
)

// A thief who knew a password has made two browsers known, before the owner did something
// about it.
func TestKnownBrowsersEndWithWhatTheySignedInWith(t *testing.T) {
	t.Parallel()
	r, clock := newProxyHarness(t)
	// known is an account, and browsers in which it has signed in.
	known := func(t *testing.T) (email string, home *browser, others []*browser) {
		t.Helper()
		owner := r.join(t, tenancy.Support)
		owner.withPassword(t)
		for range 3 {
			b := r.browser().at("192.0.2.10")
			if got := b.login(t, owner.user.Email, password); got.location != "/account" {
				t.Fatalf("status %d", got.status)
			}
			b.formToken = tokenIn(b.get(t, "/account").body)
			others = append(others, b)
		}
		clock.advance(time.Minute)
		return owner.user.Email, others[0], others[1:]
	}

	t.Run("their codes are counted with those of strangers after an authenticator was added", func(t *testing.T) {
		email, home, thieves := known(t)
		page := home.get(t, "/account/factor")
		seed := seedIn(t, page.body)
		code := func() string { return seed.Code(clock.now() / 30_000) }
		if got := home.post(t, "/account/factor", url.Values{"seed": {hidden(page.body, "seed")}, "code": {code()}}); got.status != http.StatusOK {
			t.Fatalf("status %d", got.status)
		}
		clock.advance(time.Minute)
		checked := 0
		for range 3 {
			for _, b := range append(thieves, r.browser().at("192.0.2.10")) {
				b.login(t, email, password)
				if b.post(t, "/login/code", url.Values{"code": {"00000"}}).status == http.StatusUnprocessableEntity {
					checked++
				}
			}
		}
		if checked != 5 {
			t.Errorf("%d codes were checked", checked)
		}
		home.post(t, "/logout", nil)
		home.login(t, email, password)
		if got := home.post(t, "/login/code", url.Values{"code": {code()}, "next": {"/account"}}); got.location != "/account" {
			t.Errorf("the browser that added it: status %d", got.status)
		}
	})
	t.Run("their passwords are counted with those of strangers after a change", func(t *testing.T) {
		email, home, thieves := known(t)
		const another = "seven slow rivers bend"
		if got := home.post(t, "/account/password", url.Values{"current": {password}, "password": {another}}); got.location != "/account" {
			t.Fatalf("status %d", got.status)
		}
		checked := 0
		for range 3 {
			for _, b := range append(thieves, r.browser().at("192.0.2.10")) {
				if b.login(t, email, password).status == http.StatusUnprocessableEntity {
					checked++
				}
			}
		}
		if checked != 5 {
			t.Errorf("%d passwords were checked", checked)
		}
		home.formToken = tokenIn(home.get(t, "/account").body)
		home.post(t, "/logout", nil)
		if got := home.login(t, email, another); got.location != "/account" {
			t.Errorf("the browser that changed it: status %d", got.status)
		}
	})
}
