package web

import (
	"net/http"
	"net/url"
	"testing"

	"purser/store"
	"purser/store/faultproxy"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/site"
)

// A server that does not know the time cannot tell whether a session is over.
func TestSessionsNeedATrustedClock(t *testing.T) {
	t.Parallel()
	proxy, err := faultproxy.Start(storetest.URL(t))
	noError(t, err)
	t.Cleanup(proxy.Close)
	db, err := store.Open(t.Context(), proxy.URL(), store.Options{})
	noError(t, err)
	t.Cleanup(db.Close)
	r := newHarnessAt(t, storetest.URL(t), Options{Options: site.Options{Store: db}})
	b := r.join(t, tenancy.Support)
	if got := b.get(t, "/account"); got.status != http.StatusOK {
		t.Fatalf("status %d", got.status)
	}

	// Each measurement stops before its first statement.
	stopped, release := make(chan struct{}, 1), make(chan struct{})
	defer close(release)
	var stop func()
	stop = func() {
		proxy.Before("clock_timestamp()) * 1000000", stop)
		select {
		case stopped <- struct{}{}:
		default:
		}
		<-release
	}
	proxy.Before("clock_timestamp()) * 1000000", stop)
	db.Clock().Doubt()
	<-stopped
	db.Clock().Doubt() // after the measurement that may have been under way

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
