package web

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/credential"
	"purser/tenancy/vault"
	"purser/views/component"
	"purser/web/site"
)

// harness is a site over a real Postgres, with an organization and a development
// application of its own.
type harness struct {
	site   *Site
	server *httptest.Server
	db     *store.Store
	url    string // of the database
	org    tenancy.Organization
	app    tenancy.Application
}

// What the site promises about time and names: a change of these is a change for users.
const (
	reauthAfter       = 10 * time.Minute
	codeExpires       = 10 * time.Minute
	idleFor           = 8 * time.Hour
	sessionLasts      = 7 * 24 * time.Hour
	invitationLasts   = 7 * 24 * time.Hour
	attemptsAMinute   = 20
	noticesAtOnce     = 100
	unsentPages       = 64 << 20
	auditPage         = 50
	sessionCookieName = "purser"
	deviceCookie      = sessionCookieName + "-device"
)

// rigSecret is what the site seals with.
var rigSecret = []byte(strings.Repeat("k", vault.MinSecret))

// newHarness serves the site as the composition root does.
func newHarness(t *testing.T) *harness {
	t.Helper()
	return newHarnessOn(t, Options{Options: site.Options{Store: storetest.Open(t)}, NewOrganizations: true})
}

// newHarnessOn is a harness on a store of the process's database.
func newHarnessOn(t *testing.T, options Options) *harness {
	t.Helper()
	return newHarnessAt(t, storetest.URL(t), options)
}

func newHarnessAt(t *testing.T, url string, options Options) *harness {
	t.Helper()
	seals, err := vault.New(rand.Reader, rigSecret)
	noError(t, err)
	options.Vault, options.Timeout = seals, patience // a busy machine takes longer than people wait
	if options.Cashier == nil {
		options.Cashier = newTestCashier(t)
	}
	r := &harness{db: options.Store, url: url, site: New(options)}
	e := echo.New()
	r.site.Register(e)
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		status := http.StatusInternalServerError
		var known *echo.HTTPError
		var refusal *fault.Fault
		if errors.As(err, &known) {
			status = known.Code
		} else if errors.As(err, &refusal) {
			status = refusal.Kind().Status()
		} else {
			t.Logf("%s %s: %v", c.Request().Method, c.Request().URL, err)
		}
		if err := r.site.RenderError(c, status, requestID); err != nil {
			t.Errorf("rendering the error page: %v", err)
		}
	}
	r.server = httptest.NewServer(e)
	t.Cleanup(r.server.Close)
	r.org = r.newOrganization(t, "Acme")
	r.app = r.newApplication(t, r.org, "Chat", false)
	return r
}

func (r *harness) newOrganization(t *testing.T, name string) tenancy.Organization {
	t.Helper()
	org, err := tenancy.NewOrganization(ids.New(), name, r.site.Now())
	noError(t, err)
	return storetest.CreateOrganization(t, r.url, org)
}

func (r *harness) newApplication(t *testing.T, org tenancy.Organization, name string, live bool) tenancy.Application {
	t.Helper()
	app, err := tenancy.NewApplication(ids.New(), org, name, live, r.site.Now())
	noError(t, err)
	app, err = r.db.Org(org.ID).CreateApplication(t.Context(), app)
	noError(t, err)
	return app
}

// orgPath and appPath are addresses in the harness's own organization and application.
func (r *harness) orgPath(parts ...string) string {
	return site.PathOf(append([]string{"o", r.org.Slug}, parts...))
}

func (r *harness) appPath(parts ...string) string {
	return site.PathOf(append([]string{"o", r.org.Slug, "a", r.app.Slug}, parts...))
}

// newUser makes an account without a password and without memberships.
func (r *harness) newUser(t *testing.T) tenancy.User {
	t.Helper()
	id := ids.New()
	user, err := tenancy.NewUser(id, id.Format(ids.User)+"@example.com", "Ann Example", r.site.Now())
	noError(t, err)
	storetest.CreateUser(t, r.url, user)
	return user
}

// join is a browser in which a new member of the harness's organization is signed in,
// just now.
func (r *harness) join(t *testing.T, role tenancy.Role, custom ...tenancy.Permission) *browser {
	t.Helper()
	user := r.newUser(t)
	storetest.AddMember(t, r.url, tenancy.Member{
		OrgID: r.org.ID, UserID: user.ID, CreatedAt: r.site.Now(),
		Access: tenancy.Access{Role: role, Custom: tenancy.PermissionsOf(custom...)},
	})
	b := r.browser()
	b.user = user
	b.signIn(t)
	return b
}

// browser is one person's, with its cookies. It follows no redirects.
type browser struct {
	harness   *harness
	user      tenancy.User
	cookies   map[string]*http.Cookie
	formToken string
	header    http.Header
}

func (r *harness) browser() *browser {
	return &browser{harness: r, cookies: map[string]*http.Cookie{}, header: http.Header{}}
}

// signIn opens a session past the sign-in page, as the site keeps one.
func (b *browser) signIn(t *testing.T) {
	t.Helper()
	link, err := credential.NewLink(rand.Reader) // scs makes tokens of the same form
	noError(t, err)
	token, now := string(link), b.harness.site.Now()
	b.formToken = rand.Text()
	expires := time.Now().Add(sessionLasts)
	content, err := scs.GobCodec{}.Encode(expires, map[string]any{"user": b.user.ID.Format(ids.User), "form": b.formToken, "proven": now})
	noError(t, err)
	account, err := b.harness.db.User(b.user.ID).PageContext(t.Context(), "")
	noError(t, err)
	opened, err := b.harness.db.Auth().OpenSession(t.Context(), token, people.Session{
		ID: ids.New(), UserID: b.user.ID, CreatedAt: now, SeenAt: now, ExpiresAt: now + idleFor.Milliseconds(), Address: "127.0.0.1", Agent: "test",
		PasswordAt: account.PasswordAt, FactorAt: account.FactorAt,
	}, content)
	if err != nil || !opened {
		t.Fatalf("the session was opened: %t, %v", opened, err)
	}
	name := b.harness.site.SessionCookie()
	b.cookies[name] = &http.Cookie{Name: name, Value: token}
}

// seen is a reply, read whole.
type seen struct {
	status   int
	location string
	body     string
	header   http.Header
}

func (b *browser) get(t *testing.T, path string) seen {
	t.Helper()
	return b.do(t, http.MethodGet, path, nil)
}

// post sends a form as the browser would: with the token of its page, from this
// very site.
func (b *browser) post(t *testing.T, path string, fields url.Values) seen {
	t.Helper()
	sent := url.Values{component.FormTokenField: {b.formToken}}
	for name, values := range fields {
		sent[name] = values
	}
	return b.do(t, http.MethodPost, path, sent)
}

func (b *browser) do(t *testing.T, method, path string, fields url.Values) seen {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, b.harness.server.URL+path, strings.NewReader(fields.Encode()))
	noError(t, err)
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for name, values := range b.header {
		request.Header[name] = values
	}
	for _, cookie := range b.cookies {
		request.AddCookie(cookie)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	noError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	noError(t, err)
	for _, cookie := range response.Cookies() {
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		} else {
			b.cookies[cookie.Name] = cookie
		}
	}
	return seen{status: response.StatusCode, location: response.Header.Get("Location"), body: string(body), header: response.Header}
}

func noError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func wantFault(tb testing.TB, err error, code fault.Code) {
	tb.Helper()
	if !fault.Is(err, code) {
		tb.Errorf("got %v, want %q", err, code)
	}
}

// patience bounds what must not go on for ever. Only what never comes reaches it,
// however busy the machine is.
const patience = 2 * time.Minute
