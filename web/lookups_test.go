package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/httpd"
	"purser/tenancy"
	"purser/tenancy/credential"
)

// TestLookupsOfMadeUpTokensAreBounded has a network that sends unknown secrets until its queue
// is full, and people behind the same address.
func TestLookupsOfMadeUpTokensAreBounded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	*r.site.Lookups = *httpd.NewLookups(func() time.Duration { return 0 })
	known, later, signingIn := r.join(t, tenancy.Owner), r.join(t, tenancy.Support), r.join(t, tenancy.Support)
	signingIn.withPassword(t)
	signingIn.cookies = map[string]*http.Cookie{}
	if got := known.get(t, "/o"); got.status != http.StatusOK && got.status != http.StatusSeeOther {
		t.Fatalf("status %d", got.status)
	}
	invitation := invitedPath(t, known.post(t, r.orgPath("members", "invite"), map[string][]string{"note": {"Bob"}, "role": {"support"}}))
	random := func() string {
		link, err := credential.NewLink(rand.Reader)
		noError(t, err)
		return string(link)
	}
	visitor := func(path, cookie, from string) int {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		request.RemoteAddr = from
		if cookie != "" {
			request.AddCookie(&http.Cookie{Name: r.site.SessionCookie(), Value: cookie})
		}
		reply := httptest.NewRecorder()
		r.server.Config.Handler.ServeHTTP(reply, request)
		return reply.Code
	}
	const here, elsewhere = "127.0.0.2:1", "198.51.100.1:1"

	const guesses, halfOfTheQueue = 100, 33
	for range guesses {
		if got := visitor("/login", random(), here); got != http.StatusOK {
			t.Fatalf("a visitor with an unknown cookie is answered with %d", got)
		}
	}
	free, entered := make(chan struct{}), make(chan struct{})
	enter := sync.OnceFunc(func() { close(entered) })
	isFree := func() bool {
		select {
		case <-free:
			return true
		default:
			return false
		}
	}
	var waiting sync.WaitGroup
	for range halfOfTheQueue {
		waiting.Go(func() {
			for !isFree() { // a turn that does not come is waited for again
				secret := httpd.Secret{Kind: "test"}
				_, _ = rand.Read(secret.Hash[:])
				_, err := r.site.Lookups.Find(t.Context(), secret, netip.MustParsePrefix("127.0.0.0/24"), func(context.Context) (bool, error) {
					enter()
					<-free
					return false, nil
				})
				if err != nil {
					time.Sleep(time.Millisecond) // the queue is full
				}
			}
		})
	}
	<-entered // the others wait, and so does a visitor until the queue is full
	if got := visitor("/login", random(), here); got != http.StatusTooManyRequests {
		t.Errorf("an unknown cookie is answered with %d", got)
	}

	for _, path := range []string{"/setup/", "/invite/", "/reset/"} {
		want := http.StatusTooManyRequests
		if path == "/setup/" { // none is open once there is an account
			want = http.StatusNotFound
		}
		if got := visitor(path+random(), "", here); got != want {
			t.Errorf("%s of the network is answered with %d", path, got)
		}
		if got := visitor(path+random(), "", elsewhere); got != http.StatusNotFound {
			t.Errorf("%s of another network is answered with %d", path, got)
		}
		for _, malformed := range []string{"x", strings.Repeat("A", 42), strings.Repeat("A", 42) + "B", strings.Repeat("A", 44), strings.Repeat("A", 42) + "=", strings.Repeat("A", 42) + "%0A"} {
			if got := visitor(path+malformed, "", here); got != http.StatusNotFound {
				t.Errorf("%s%s is answered with %d", path, malformed, got)
			}
		}
	}
	if got := visitor("/login", "malformed", here); got != http.StatusOK {
		t.Errorf("a malformed cookie is looked up: %d", got)
	}
	if got := visitor("/login", "", here); got != http.StatusOK {
		t.Errorf("a visitor without a cookie is answered with %d", got)
	}
	if got := known.get(t, r.orgPath()); got.status != http.StatusOK {
		t.Errorf("a user whose session is known is answered with %d", got.status)
	}
	if got := signingIn.login(t, signingIn.user.Email, password); got.status != http.StatusSeeOther {
		t.Fatalf("a sign-in is answered with %d", got.status)
	}
	if got := signingIn.get(t, r.orgPath()); got.status != http.StatusOK {
		t.Errorf("a user who has just signed in is answered with %d", got.status)
	}

	close(free)
	waiting.Wait()
	if got := later.get(t, r.orgPath()); got.status != http.StatusOK {
		t.Errorf("a session that was not known is answered with %d", got.status)
	}
	if got := visitor(invitation, "", here); got != http.StatusOK {
		t.Errorf("an invitation is answered with %d", got)
	}
}

// TestAccountsAreReadAtABoundedCost occupies the places for lookups, so that a sign-in that reads
// its account waits in vain.
func TestAccountsAreReadAtABoundedCost(t *testing.T) {
	t.Parallel()
	r, _ := newClockHarness(t) // no attempt is forgotten while others wait
	free := make(chan struct{})
	var reading sync.WaitGroup
	const atOnce = 4
	entered := make(chan struct{})
	for i := range atOnce {
		reading.Go(func() {
			_ = r.site.Lookups.Read(t.Context(), netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, byte(i), 0}), 24), func(context.Context) error {
				entered <- struct{}{}
				<-free
				return nil
			})
		})
		<-entered
	}
	attempt := func(b *browser) string {
		t.Helper()
		got := b.login(t, "bob@example.com", "wrong")
		if got.status != http.StatusTooManyRequests {
			t.Errorf("status %d", got.status)
		}
		return got.body
	}
	var together sync.WaitGroup // each waits for seconds
	for range attemptsAMinute {
		together.Go(func() {
			if body := attempt(r.browser()); strings.Contains(body, "Too many attempts") {
				t.Error("an attempt within the limit is refused by it")
			}
		})
	}
	together.Wait()
	if body := attempt(r.browser()); !strings.Contains(body, "Too many attempts") {
		t.Error("an attempt past the limit of its network reads the account")
	}
	b, name := r.browser(), r.site.SessionCookie()+"-device"
	b.cookies[name] = &http.Cookie{Name: name, Value: "made-up"}
	if body := attempt(b); strings.Contains(body, "Too many attempts") {
		t.Error("a browser that may be known is refused by its network's limit")
	}
	close(free)
	reading.Wait()
	if body := attempt(b); !strings.Contains(body, "Too many attempts") {
		t.Error("a made-up device does not count for its network")
	}
}
