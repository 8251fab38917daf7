package site

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"purser/ids"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
)

// newTestSite is a site with a clock that a test moves.
func newTestSite(t *testing.T) (*Site, *atomic.Int64) {
	t.Helper()
	clock := &atomic.Int64{}
	clock.Store(time.Now().UnixMilli())
	return New(Options{Store: storetest.Open(t), Now: clock.Load}), clock
}

// visit begins a request of a browser with the cookie.
func visit(t *testing.T, s *Site, cookie *http.Cookie) (*Request, *httptest.ResponseRecorder) {
	t.Helper()
	r, recorder := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/account", nil), httptest.NewRecorder()
	if cookie != nil {
		r.AddCookie(cookie)
	}
	req := &Request{Site: s, echo: echo.New().NewContext(r, recorder)}
	if err := req.loadSession(r); err != nil {
		t.Fatal(err)
	}
	return req, recorder
}

// save ends the request and returns the cookie it sets, or nil.
func save(t *testing.T, req *Request, recorder *httptest.ResponseRecorder) *http.Cookie {
	t.Helper()
	if err := req.saveSession(); err != nil {
		t.Fatal(err)
	}
	for _, cookie := range recorder.Result().Cookies() {
		return cookie
	}
	return nil
}

// newVisitor is the session of a new user.
func newVisitor(t *testing.T, s *Site) (ids.ID, *http.Cookie) {
	t.Helper()
	id := ids.New()
	user, err := tenancy.NewUser(id, id.Format(ids.User)+"@example.com", "Ann Example", s.Now())
	if err != nil {
		t.Fatal(err)
	}
	storetest.CreateUser(t, storetest.URL(t), user)
	req, recorder := visit(t, s, nil)
	if err := req.SignIn(user.ID, 0, 0); err != nil {
		t.Fatal(err)
	}
	return user.ID, save(t, req, recorder)
}

func TestASessionThatEndedStaysEndedForRequestsUnderWay(t *testing.T) {
	t.Parallel()
	s, _ := newTestSite(t)
	user, cookie := newVisitor(t, s)
	slow, recorder := visit(t, s, cookie)
	if slow.Bearer.userID != user {
		t.Fatal("the session is not found")
	}
	if err := s.Store.User(user).EndOtherSessions(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	slow.flash("something to write")
	save(t, slow, recorder)
	if after, _ := visit(t, s, cookie); !after.Bearer.userID.IsZero() {
		t.Error("the session is back")
	}
}

func TestASessionThatEndedGetsNoNewToken(t *testing.T) {
	t.Parallel()
	s, _ := newTestSite(t)
	user, cookie := newVisitor(t, s)
	slow, recorder := visit(t, s, cookie)
	if err := s.Store.User(user).EndOtherSessions(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := slow.RenewSession(); err != nil {
		t.Fatal(err)
	}
	if got := save(t, slow, recorder); got != nil {
		t.Errorf("it goes on as %s", got)
	}
	list, _, err := s.Store.User(user).Sessions(t.Context(), "", s.Now())
	if err != nil || len(list) != 0 {
		t.Errorf("the user has the sessions %+v, %v", list, err)
	}
}

func TestASessionThatWasRenewedIsNotSpoiltByARequestUnderWay(t *testing.T) {
	t.Parallel()
	s, clock := newTestSite(t)
	user, cookie := newVisitor(t, s)
	clock.Add(time.Hour.Milliseconds())
	slow, recorder := visit(t, s, cookie)
	other, itsRecorder := visit(t, s, cookie)
	if err := other.RenewSession(); err != nil {
		t.Fatal(err)
	}
	renewed := save(t, other, itsRecorder)
	if renewed == nil || renewed.Value == cookie.Value {
		t.Fatal("the session was not renewed")
	}
	slow.flash("something to write")
	if got := save(t, slow, recorder); got != nil {
		t.Errorf("the browser is told to go back to %s", got)
	}
	if after, _ := visit(t, s, renewed); after.Bearer.userID != user {
		t.Error("the renewed session is lost")
	}
}

func TestASessionKeepsWhatAnotherRequestWroteMeanwhile(t *testing.T) {
	t.Parallel()
	s, clock := newTestSite(t)
	_, cookie := newVisitor(t, s)
	clock.Add(time.Hour.Milliseconds())
	slow, recorder := visit(t, s, cookie)
	other, itsRecorder := visit(t, s, cookie)
	other.flash("Name saved.")
	save(t, other, itsRecorder)
	save(t, slow, recorder)
	after, _ := visit(t, s, cookie)
	if got := after.takeFlash(); got != "Name saved." {
		t.Errorf("the message is %q", got)
	}
}

// A page that asks by itself for a part of it keeps no session open, and shows no message.
func TestPollsLeaveTheSessionAsItIs(t *testing.T) {
	t.Parallel()
	s, clock := newTestSite(t)
	user, cookie := newVisitor(t, s)
	first, recorder := visit(t, s, cookie)
	first.flash("You're confirmed.")
	save(t, first, recorder)
	seen := func() people.Session {
		list, _, err := s.Store.User(user).Sessions(t.Context(), "", s.Now())
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0]
	}
	before := seen()
	clock.Add(time.Hour.Milliseconds())
	poll, recorder := visit(t, s, cookie)
	poll.HTTP().Header.Set("HX-Request", "true")
	poll.HTTP().Header.Set("X-Poll", "1")
	if got := poll.takeFlash(); got != "" {
		t.Errorf("a poll takes %q", got)
	}
	if got := save(t, poll, recorder); got != nil || seen() != before {
		t.Errorf("a poll sets the cookie %v, and the session is %+v", got, seen())
	}
	page, recorder := visit(t, s, cookie)
	if got := page.takeFlash(); got != "You're confirmed." {
		t.Errorf("the message is %q", got)
	}
	save(t, page, recorder)
	if after := seen(); after.SeenAt <= before.SeenAt || after.ExpiresAt <= before.ExpiresAt {
		t.Errorf("a page leaves %+v as %+v", before, after)
	}
}

func TestTheCookieBelongsToTheServer(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://127.0.0.1:8080": "purser-8080", "http://localhost:8081/": "purser-8081", "http://[::1]:9": "purser-9",
		"http://purser.example": "purser", "https://purser.example:8443": "__Host-purser",
	} {
		if got := New(Options{Store: storetest.Open(t), BaseURL: address}).sessions.Cookie.Name; got != want {
			t.Errorf("at %s the cookie is %s, not %s", address, got, want)
		}
	}
	secure := New(Options{Store: storetest.Open(t), BaseURL: "https://purser.example"}).sessions.Cookie
	if secure.Name != "__Host-purser" || !secure.Secure || secure.Domain != "" || secure.Path != "/" {
		t.Errorf("over https the cookie is %+v", secure)
	}
}
