package web

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"purser/tenancy"
	"purser/tenancy/credential"
)

func TestGuessesFromManyNetworksAreLimited(t *testing.T) {
	t.Parallel()
	r, clock := newProxyRig(t)
	owner := r.join(t, tenancy.Owner)
	owner.withPassword(t)
	home := r.browser().at("192.0.2.10")
	if got := home.login(t, owner.user.Email, password); got.status != http.StatusSeeOther {
		t.Fatalf("status %d", got.status)
	}
	account, err := r.db.Entrance().Account(t.Context(), owner.user.Email)
	noError(t, err)
	// All guesses but two are counted without the cost of a hash.
	now := r.site.now()
	address := credential.AddressSubject(owner.user.Email, account.ChangedAt, now)
	for i := range credential.AddressLimit - 2 {
		wait, err := r.db.Entrance().Attempt(t.Context(), credential.Token(rand.Text()).Hash(), address, now)
		if err != nil || wait != 0 {
			t.Fatalf("attempt %d waits %s, %v", i, wait, err)
		}
	}
	// One that succeeds is taken back, so two guesses are left.
	if got := r.browser().at("203.0.113.9").login(t, owner.user.Email, password); got.status != http.StatusSeeOther {
		t.Fatalf("status %d", got.status)
	}
	for i, want := range []int{http.StatusUnprocessableEntity, http.StatusUnprocessableEntity, http.StatusTooManyRequests} {
		if got := r.browser().at(fmt.Sprintf("198.18.%d.1", i)).login(t, owner.user.Email, "wrong"); got.status != want {
			t.Errorf("guess %d: status %d, want %d", i, got.status, want)
		}
	}
	if got := r.browser().at("198.18.9.1").login(t, owner.user.Email, password); got.status != http.StatusTooManyRequests {
		t.Errorf("the right password from another network: status %d", got.status)
	}
	home.post(t, "/logout", url.Values{formTokenField: {tokenIn(home.get(t, "/account").body)}})
	if got := home.login(t, owner.user.Email, password); got.status != http.StatusSeeOther {
		t.Errorf("a known browser: status %d", got.status)
	}
	clock.advance(credential.AddressWindow)
	if got := r.browser().at("198.18.9.1").login(t, owner.user.Email, password); got.status != http.StatusSeeOther {
		t.Errorf("an hour later: status %d", got.status)
	}
}

func TestGuessesFromOneIPv6SiteAreCountedTogether(t *testing.T) {
	t.Parallel()
	r, _ := newProxyRig(t)
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

func TestAFullQueueCountsNoAttempt(t *testing.T) {
	t.Parallel()
	r, _ := newClockRig(t)
	owner := r.join(t, tenancy.Owner)
	owner.withPassword(t)
	queue := r.site.passwords.queue
	for range cap(queue) {
		queue <- struct{}{}
	}
	for range 6 {
		if got := r.browser().login(t, owner.user.Email, password); got.status != http.StatusTooManyRequests && got.status != http.StatusServiceUnavailable {
			t.Fatalf("status %d", got.status)
		}
	}
	for range cap(queue) {
		<-queue
	}
	if got := r.browser().login(t, owner.user.Email, password); got.status != http.StatusSeeOther {
		t.Errorf("after refusals without a check: status %d", got.status)
	}
}
