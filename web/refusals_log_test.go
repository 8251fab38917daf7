package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"purser/ids"
	"purser/store/storetest"
	"purser/tenancy"
)

// The session does not open: the authenticator is added after the password was checked.
func TestASignInWithoutASessionIsLoggedAsRefused(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Support)
	b.withPassword(t)
	var log bytes.Buffer
	r.site.Log = slog.New(slog.NewJSONHandler(&log, nil))
	change := storetest.Session(t, r.url)
	change("BEGIN")
	change(`SELECT FROM passwords WHERE user_id = '` + b.user.ID.String() + `' FOR UPDATE`)
	late, answered := r.browser(), make(chan seen, 1)
	go func() { answered <- late.login(t, b.user.Email, password) }()
	change(`DO $$ BEGIN
		WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))) LOOP
			PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
		END LOOP;
	END $$`)
	change(`INSERT INTO second_factors (user_id, sealed_seed, created_at, last_step) VALUES ('` + b.user.ID.String() + `', 'seed', 1, 0)`)
	change("COMMIT")

	if got := <-answered; got.status != http.StatusSeeOther || late.get(t, "/account").status == http.StatusOK {
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
