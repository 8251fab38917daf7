package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"purser/ids"
	"purser/store"
	"purser/store/faultproxy"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/site"
)

// The session does not open: the authenticator is added after the password was checked.
func TestASignInWithoutASessionIsLoggedAsRefused(t *testing.T) {
	t.Parallel()
	direct := newHarness(t)
	b := direct.join(t, tenancy.Support)
	b.withPassword(t)
	b.signIn(t)
	proxy, err := faultproxy.Start(storetest.URL(t))
	noError(t, err)
	t.Cleanup(proxy.Close)
	db, err := store.Open(t.Context(), proxy.URL(), store.Options{})
	noError(t, err)
	t.Cleanup(db.Close)
	r := newHarnessAt(t, storetest.URL(t), Options{Options: site.Options{Store: db}})
	var log bytes.Buffer
	r.site.Log = slog.New(slog.NewJSONHandler(&log, nil))
	proxy.Before("SELECT changed_at FROM passwords", func() {
		token := b.cookies[direct.site.SessionCookie()].Value
		if err := direct.db.User(b.user.ID).AddFactor(t.Context(), people.Factor{SealedSeed: []byte("seed")}, nil, token, b.actor()); err != nil {
			t.Error(err)
		}
	})

	late := r.browser()
	if got := late.login(t, b.user.Email, password); got.status != http.StatusSeeOther || late.get(t, "/account").status == http.StatusOK {
		t.Fatalf("status %d", got.status)
	}
	if got := log.String(); strings.Contains(got, "signed in") || !strings.Contains(got, `"sign-in refused"`) || !strings.Contains(got, b.user.ID.Format(ids.User)) {
		t.Errorf("logged:\n%s", got)
	}
}

func TestRefusedSignInsAreLoggedWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	r, _ := newClockHarness(t)
	var log bytes.Buffer
	r.site.Log = slog.New(slog.NewJSONHandler(&log, nil))
	const secret = "canary-password"
	for i := range 100 {
		r.browser().login(t, strings.Repeat("x", i%40+1)+"@canary.example", strings.Repeat(secret, 10))
	}
	if !strings.Contains(log.String(), "many sign-ins refused") {
		t.Error("refused sign-ins are not logged")
	}
	if strings.Contains(log.String(), secret) || strings.Contains(log.String(), "canary.example") {
		t.Error("the log holds what was typed")
	}
}
