package web

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/site"
)

// The harness's server is called from 127.0.0.1.
func TestThrottleByNetwork(t *testing.T) {
	t.Parallel()
	guess := func(t *testing.T, r *harness, forwarded func(i int) string) (refused int) {
		t.Helper()
		for i := range attemptsAMinute + 1 {
			b := r.browser()
			b.header.Set("X-Forwarded-For", forwarded(i))
			// A long password is wrong without being hashed.
			if got := b.login(t, strings.Repeat("x", i+1)+"@example.com", strings.Repeat("p", 200)); got.status == http.StatusTooManyRequests {
				refused++
			}
		}
		return refused
	}
	elsewhere := func(i int) string { return netip.AddrFrom4([4]byte{198, 51, byte(i), 1}).String() }

	t.Run("is not passed by a header that anybody can write", func(t *testing.T) {
		t.Parallel()
		r, _ := newClockHarness(t)
		if refused := guess(t, r, elsewhere); refused != 1 {
			t.Errorf("%d attempts are refused", refused)
		}
	})
	t.Run("tells callers apart that come through our proxy", func(t *testing.T) {
		t.Parallel()
		r := newHarnessOn(t, Options{Options: site.Options{Store: storetest.Open(t), TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, NewOrganizations: true})
		if refused := guess(t, r, elsewhere); refused != 0 {
			t.Errorf("%d attempts are refused", refused)
		}
		b := r.join(t, tenancy.Owner)
		b.header.Set("X-Forwarded-For", "198.51.100.77")
		if got := b.post(t, "/o/new", map[string][]string{"name": {"Behind"}}); got.status != http.StatusSeeOther {
			t.Fatalf("status %d", got.status)
		}
		b.get(t, "/o")
		sessions, _, err := r.db.User(b.user.ID).Sessions(t.Context(), "", r.site.Now())
		noError(t, err)
		if len(sessions) != 1 || sessions[0].Address != "198.51.100.77" {
			t.Errorf("the session is seen at %+v", sessions)
		}
	})
}
