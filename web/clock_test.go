package web

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/site"
)

// A server that does not know the time cannot tell whether a session is over.
func TestSessionsNeedATrustedClock(t *testing.T) {
	t.Parallel()
	start := time.Now()
	var jumps atomic.Int64 // of the wall clock, in seconds
	var jumping atomic.Bool
	db, err := store.Open(t.Context(), storetest.URL(t), store.Options{Machine: func() (int64, time.Duration) {
		if jumping.Load() {
			jumps.Add(1)
		}
		now := time.Now()
		return now.Add(time.Duration(jumps.Load()) * time.Second).UnixNano(), now.Sub(start)
	}})
	noError(t, err)
	t.Cleanup(db.Close)
	r := newHarnessAt(t, storetest.URL(t), Options{Options: site.Options{Store: db}})
	b := r.join(t, tenancy.Support)
	if got := b.get(t, "/account"); got.status != http.StatusOK {
		t.Fatalf("status %d", got.status)
	}

	// No measurement is trusted: the machine's clock was set since.
	jumping.Store(true)

	for name, got := range map[string]seen{
		"a page of a session": b.get(t, "/account"),
		"a form of a session": b.post(t, "/account/name", url.Values{"name": {"Ann"}}),
		"a sign-in":           r.browser().login(t, b.user.Email, password),
	} {
		if got.status != http.StatusInternalServerError {
			t.Errorf("%s: status %d", name, got.status)
		}
	}
	if got := r.browser().get(t, "/login"); got.status != http.StatusOK {
		t.Errorf("a page without a session: status %d", got.status)
	}
}

// The database's clock may go back, as after a failover: who tried to sign in before can do
// so again.
func TestAttemptsAreCountedWhenTheClockGoesBack(t *testing.T) {
	t.Parallel()
	start := time.Now()
	var back atomic.Int64 // all clocks, in nanoseconds
	db, err := store.Open(t.Context(), storetest.URL(t), store.Options{Machine: func() (int64, time.Duration) {
		now := time.Now().Add(-time.Duration(back.Load()))
		return now.UnixNano(), now.Sub(start)
	}})
	noError(t, err)
	t.Cleanup(db.Close)
	r := newHarnessAt(t, storetest.URL(t), Options{Options: site.Options{Store: db}})
	b := r.join(t, tenancy.Support)
	b.withPassword(t)
	if got := r.browser().login(t, b.user.Email, "a wrong one"); got.status == http.StatusTooManyRequests {
		t.Fatalf("the first attempt: status %d", got.status)
	}
	back.Store(int64(time.Hour))
	if got := r.browser().login(t, b.user.Email, password); got.status != http.StatusSeeOther {
		t.Errorf("an attempt an hour before: status %d\n%s", got.status, got.body)
	}
}
