package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"time"

	"github.com/alexedwards/scs/v2"

	"purser/ids"
	"purser/store"
)

const (
	idleSession     = 8 * time.Hour
	absoluteSession = 7 * 24 * time.Hour
	// How long after the password was typed it need not be typed again.
	freshFor = 10 * time.Minute
	// Longer than any browser's name for itself.
	maxAgentLength = 300
)

// What a session holds, by name.
const (
	sessionUser      = "user"
	sessionProvenAt  = "proven" // when the password was last typed
	sessionFormToken = "form"
	sessionFlash     = "flash"
	sessionAwaiting  = "awaiting" // who has given the password and still owes a code
)

const formTokenField = "form_token"

// The cookie's name. Browsers take the prefix to mean: only over https, only from
// this very host. Over plain http they would refuse it.
const (
	cookieName      = "purser"
	cookieNameHTTPS = "__Host-purser"
)

// plainCookieName has the port of the server in it. Browsers send cookies to every
// port of a host, so two servers on a developer's machine would sign each other's
// people out.
func plainCookieName(address string) string {
	if at, err := url.Parse(address); err == nil && at.Port() != "" {
		return cookieName + "-" + at.Port()
	}
	return cookieName
}

func newSessions(entrance store.Auth, address string, https bool, now func() int64) *scs.SessionManager {
	m := scs.New()
	m.Store = sessionStore{entrance: entrance, now: now}
	m.IdleTimeout, m.Lifetime = idleSession, absoluteSession
	m.Cookie.Name = plainCookieName(address)
	if https {
		m.Cookie.Name, m.Cookie.Secure = cookieNameHTTPS, true
	}
	m.Cookie.HttpOnly, m.Cookie.SameSite, m.Cookie.Path = true, http.SameSiteLaxMode, "/"
	return m
}

// bearer is what the store is told of a session besides its content. It travels in
// the context, past the library in between.
type bearer struct {
	userID  ids.ID
	address string
	agent   string
	token   string // of the cookie, when it led to a session
	changed bool   // the content was, in this request
	kept    bool   // there is something to tell the browser
}

type bearerKey struct{}

// sessionStore keeps sessions in Postgres.
type sessionStore struct {
	entrance store.Auth
	now      func() int64
}

// FindCtx reads a session.
func (s sessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	now := s.now()
	return s.entrance.SessionContent(ctx, token, now-absoluteSession.Milliseconds(), now)
}

// CommitCtx keeps a session. Only one that began in this request is inserted: what
// was ended while the request ran stays ended. A request that changed nothing
// writes no content, so that it does not undo what another one wrote meanwhile.
func (s sessionStore) CommitCtx(ctx context.Context, token string, content []byte, expiry time.Time) error {
	b := ctx.Value(bearerKey{}).(*bearer)
	now := s.now()
	// The library counts by the machine's clock; what is left is kept by the site's.
	expires := now + time.Until(expiry).Milliseconds()
	kept := store.Session{UserID: b.userID, SeenAt: now, ExpiresAt: expires, Address: b.address, Agent: b.agent}
	var err error
	switch {
	case token != b.token:
		kept.ID, kept.CreatedAt, b.kept = ids.New(), now, true
		err = s.entrance.OpenSession(ctx, token, kept, content)
	case b.changed:
		b.kept, err = s.entrance.ContinueSession(ctx, token, kept, content)
	default:
		b.kept, err = s.entrance.TouchSession(ctx, token, kept)
	}
	return err
}

// DeleteCtx ends a session.
func (s sessionStore) DeleteCtx(ctx context.Context, token string) error {
	return s.entrance.CloseSession(ctx, token)
}

// Find, Commit and Delete are for stores that know no context; the library
// calls them only where the three above are missing.
func (s sessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit is as Find.
func (s sessionStore) Commit(token string, content []byte, expiry time.Time) error {
	return s.CommitCtx(context.WithValue(context.Background(), bearerKey{}, &bearer{}), token, content, expiry)
}

// Delete is as Find.
func (s sessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// loadSession finds the session of the request's cookie, or begins an empty one,
// which is kept only once something is put into it.
func (v *visit) loadSession(r *http.Request) error {
	token := ""
	if cookie, err := r.Cookie(v.site.sessions.Cookie.Name); err == nil {
		token = cookie.Value
	}
	v.bearer = &bearer{address: v.site.clientAddress(r), agent: shorten(r.UserAgent(), maxAgentLength)}
	ctx := context.WithValue(r.Context(), bearerKey{}, v.bearer)
	ctx, err := v.site.sessions.Load(ctx, token)
	if err != nil {
		return err
	}
	v.context = ctx
	v.bearer.token = v.site.sessions.Token(ctx)
	if id, err := ids.Parse(ids.User, v.site.sessions.GetString(ctx, sessionUser)); err == nil {
		v.bearer.userID = id
	}
	return nil
}

// keepSession writes the session and its cookie. A session that another request
// has ended or renewed meanwhile leaves the cookie alone: it is the other's now.
func (v *visit) keepSession() error {
	m, w := v.site.sessions, v.echo.Response()
	switch m.Status(v.context) {
	case scs.Modified:
		token, expiry, err := m.Commit(v.context)
		if err != nil {
			return err
		}
		if v.bearer.kept {
			m.WriteSessionCookie(v.context, w, token, expiry)
		}
	case scs.Destroyed:
		m.WriteSessionCookie(v.context, w, "", time.Time{})
	}
	return nil
}

// forgetSession begins anew under another token: whoever planted the old one, or
// was signed in with it, has nothing.
func (v *visit) forgetSession() error {
	v.bearer.userID = ids.ID{}
	if err := v.site.sessions.Clear(v.context); err != nil {
		return err
	}
	return v.site.sessions.RenewToken(v.context)
}

// signIn makes this browser the user's.
func (v *visit) signIn(user ids.ID) error {
	if err := v.forgetSession(); err != nil {
		return err
	}
	v.bearer.userID = user
	v.put(sessionUser, user.Format(ids.User))
	v.put(sessionFormToken, rand.Text())
	v.prove()
	return nil
}

// put writes into the session.
func (v *visit) put(name string, value any) {
	v.bearer.changed = true
	v.site.sessions.Put(v.context, name, value)
}

// prove notes that the password was typed just now.
func (v *visit) prove() { v.put(sessionProvenAt, v.site.now()) }

// isFresh reports whether the password was typed some minutes ago.
func (v *visit) isFresh() bool {
	age := v.site.now() - v.site.sessions.GetInt64(v.context, sessionProvenAt)
	return age >= 0 && age <= freshFor.Milliseconds()
}

// signOut ends the session.
func (v *visit) signOut() error {
	v.bearer.userID = ids.ID{}
	return v.site.sessions.Destroy(v.context)
}

// flash says something on the next page, once.
func (v *visit) flash(message string) { v.put(sessionFlash, message) }

func (v *visit) takeFlash() string {
	message := v.site.sessions.PopString(v.context, sessionFlash)
	v.bearer.changed = v.bearer.changed || message != ""
	return message
}

func (v *visit) formToken() string { return v.site.sessions.GetString(v.context, sessionFormToken) }
