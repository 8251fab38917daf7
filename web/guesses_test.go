package web

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
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

// guessFrom counts one wrong guess from each of the networks 10.x.y.0, without the cost
// of a hash.
func (r *harness) guessFrom(t *testing.T, email string, networks int) {
	t.Helper()
	account, err := r.db.Auth().Account(t.Context(), email)
	noError(t, err)
	now := r.site.Now()
	address := credential.AddressSubject(email, account.ChangedAt, now)
	for i := range networks {
		from := site.Network(fmt.Sprintf("10.%d.%d.1", i/256, i%256)).String()
		attempt, err := r.db.Auth().Attempt(t.Context(), credential.PasswordSubject(email, account.ChangedAt, from), address, now)
		if err != nil || attempt.Wait != 0 {
			t.Fatalf("the first guess of network %d waits %s, %v", i, attempt.Wait, err)
		}
	}
}

func TestGuessesFromAThousandNetworksKeepNoOwnerOut(t *testing.T) {
	t.Parallel()
	r, clock := newProxyHarness(t)
	owner := r.join(t, tenancy.Owner)
	owner.withPassword(t)
	email := owner.user.Email
	r.guessFrom(t, email, 1000)

	t.Run("a new browser signs in with the right password", func(t *testing.T) {
		if got := r.browser().at("203.0.113.9").login(t, email, password); got.status != http.StatusSeeOther {
			t.Errorf("status %d", got.status)
		}
	})
	t.Run("an owner may mistype the password once", func(t *testing.T) {
		b := r.browser().at("203.0.114.9")
		if got := b.login(t, email, "wrong"); got.status != http.StatusUnprocessableEntity {
			t.Errorf("status %d", got.status)
		}
		if got := b.login(t, email, password); got.status != http.StatusSeeOther {
			t.Errorf("status %d", got.status)
		}
	})
	t.Run("a network waits a quarter of an hour after its second guess, and twice as long after its third", func(t *testing.T) {
		guess := func(want int) {
			t.Helper()
			if got := r.browser().at("10.0.7.1").login(t, email, "wrong"); got.status != want {
				t.Errorf("status %d, want %d", got.status, want)
			}
		}
		guess(http.StatusUnprocessableEntity)
		guess(http.StatusTooManyRequests)
		clock.advance(15 * time.Minute)
		guess(http.StatusUnprocessableEntity)
		clock.advance(15 * time.Minute)
		guess(http.StatusTooManyRequests)
		clock.advance(15 * time.Minute)
		guess(http.StatusUnprocessableEntity)
	})
}

func TestManyFailedAttemptsMakeNetworksWaitLonger(t *testing.T) {
	t.Parallel()
	r, clock := newProxyHarness(t)
	var log bytes.Buffer
	r.site.Log = slog.New(slog.NewJSONHandler(&log, nil))
	owner := r.join(t, tenancy.Owner)
	owner.withPassword(t)
	email := owner.user.Email
	const alarm = "one account's password is guessed from many networks"
	home := r.browser().at("192.0.2.10")
	if got := home.login(t, email, password); got.status != http.StatusSeeOther {
		t.Fatalf("status %d", got.status)
	}
	// One that succeeds is taken back, so two guesses are left under the usual rules.
	r.guessFrom(t, email, credential.AddressLimit-2)
	if got := r.browser().at("203.0.113.9").login(t, email, password); got.status != http.StatusSeeOther {
		t.Fatalf("status %d", got.status)
	}
	if strings.Contains(log.String(), alarm) {
		t.Error("the alarm came early")
	}
	for i, want := range []int{http.StatusUnprocessableEntity, http.StatusUnprocessableEntity, http.StatusTooManyRequests} {
		if got := r.browser().at("198.18.1.1").login(t, email, "wrong"); got.status != want {
			t.Errorf("guess %d: status %d, want %d", i, got.status, want)
		}
	}
	if strings.Count(log.String(), alarm) != 1 || !strings.Contains(log.String(), owner.user.ID.Format(ids.User)) {
		t.Errorf("not logged once with the account:\n%s", log.String())
	}
	home.post(t, "/logout", url.Values{component.FormTokenField: {tokenIn(home.get(t, "/account").body)}})
	for i := range 2 {
		if got := home.login(t, email, "wrong"); got.status != http.StatusUnprocessableEntity {
			t.Errorf("a known browser's guess %d: status %d", i, got.status)
		}
	}
	if got := home.login(t, email, password); got.status != http.StatusSeeOther {
		t.Errorf("a known browser: status %d", got.status)
	}
	clock.advance(credential.AddressWindow)
	for i := range 3 {
		if got := r.browser().at("198.18.1.1").login(t, email, "wrong"); got.status != http.StatusUnprocessableEntity {
			t.Errorf("a day later, guess %d: status %d", i, got.status)
		}
	}
}

func TestGuessesFromOneIPv6SiteAreCountedTogether(t *testing.T) {
	t.Parallel()
	r, _ := newProxyHarness(t)
	owner := r.join(t, tenancy.Owner)
	owner.withPassword(t)
	for i := range 6 {
		want := http.StatusUnprocessableEntity
		if i == 5 {
			want = http.StatusTooManyRequests
		}
		if got := r.browser().at(fmt.Sprintf("2001:db8:1:%x::1", i)).login(t, owner.user.Email, "wrong"); got.status != want {
			t.Errorf("guess %d: status %d, want %d", i, got.status, want)
		}
	}
	if got := r.browser().at("2001:db8:2::1").login(t, owner.user.Email, password); got.status != http.StatusSeeOther {
		t.Errorf("from another site: status %d", got.status)
	}
}

func TestLinksHashNoPasswordPastTheLimitOfTheNetwork(t *testing.T) {
	t.Parallel()
	r, _ := newProxyHarness(t)
	owner := r.join(t, tenancy.Owner)
	owner.withPassword(t)
	owner.signIn(t)
	link := invitedPath(t, owner.post(t, r.orgPath("members", "invite"), url.Values{"note": {"Bob"}, "role": {"support"}}))
	// The address has an account, so the refusal leaves the link open.
	taken := url.Values{"name": {"Bob"}, "email": {owner.user.Email}, "password": {password}}
	for i := range attemptsAMinute - 1 {
		// A long password is wrong without being hashed.
		r.browser().at("198.51.100.1").login(t, strings.Repeat("x", i+1)+"@example.com", strings.Repeat("p", 200))
	}
	if got := r.browser().at("198.51.100.1").post(t, link, taken); got.status != http.StatusUnprocessableEntity {
		t.Errorf("the last attempt: status %d", got.status)
	}
	if got := r.browser().at("198.51.100.2").post(t, link, taken); got.status != http.StatusTooManyRequests {
		t.Errorf("an invitation, one more: status %d", got.status)
	}
	token, err := credential.NewLink(rand.Reader)
	noError(t, err)
	_, offered, err := r.db.Auth().OfferReset(t.Context(), ids.New(), owner.user.Email, token.Hash(), r.site.Now())
	if err != nil || !offered {
		t.Fatalf("the link was offered: %t, %v", offered, err)
	}
	reset, another := site.PathOf([]string{"reset", string(token)}), url.Values{"password": {"seven slow rivers bend"}}
	if got := r.browser().at("198.51.100.3").post(t, reset, another); got.status != http.StatusTooManyRequests {
		t.Errorf("a reset, one more: status %d", got.status)
	}
	known := r.browser()
	if got := known.at("203.0.113.9").login(t, owner.user.Email, password); got.status != http.StatusSeeOther {
		t.Errorf("another network signs in: status %d", got.status)
	}
	delete(known.cookies, r.site.SessionCookie())
	if got := known.at("198.51.100.4").post(t, reset, another); got.location != "/login?reset=1" {
		t.Errorf("a known browser resets the password: status %d, %s", got.status, got.location)
	}
}
