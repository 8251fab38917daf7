package accounts

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"purser/ids"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
	"purser/tenancy/vault"
	"purser/web/site"
)

func TestAFullQueueCountsNoAttempt(t *testing.T) {
	t.Parallel()
	seals, err := vault.New(rand.Reader, []byte(strings.Repeat("k", vault.MinSecret)))
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine takes longer than people wait.
	s := site.New(site.Options{Store: storetest.Open(t), Vault: seals, Timeout: 2 * time.Minute})
	pages := New(s, false)
	e := echo.New()
	s.Mount(e, pages.Routes())

	const password = "nine green herons wade"
	id := ids.New()
	owner, err := tenancy.NewUser(id, id.Format(ids.User)+"@example.com", "Ann Example", s.Now())
	if err != nil {
		t.Fatal(err)
	}
	storetest.CreateUser(t, storetest.URL(t), owner)
	encoded, err := credential.HashPassword(password, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	by := audit.Actor{UserID: owner.ID, Name: owner.Email, At: s.Now()}
	if err := s.Store.User(owner.ID).ChangePassword(t.Context(), "", encoded, "", by); err != nil {
		t.Fatal(err)
	}
	login := func() int {
		fields := url.Values{"email": {owner.Email}, "password": {password}}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/login", strings.NewReader(fields.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		answer := httptest.NewRecorder()
		e.ServeHTTP(answer, r)
		return answer.Code
	}

	queue := pages.passwords.queue
	for range cap(queue) {
		queue <- struct{}{}
	}
	for range 6 {
		if got := login(); got != http.StatusTooManyRequests && got != http.StatusServiceUnavailable {
			t.Fatalf("status %d", got)
		}
	}
	for range cap(queue) {
		<-queue
	}
	if got := login(); got != http.StatusSeeOther {
		t.Errorf("after refusals without a check: status %d", got)
	}
}
