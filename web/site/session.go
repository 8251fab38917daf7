package site

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"time"

	"github.com/alexedwards/scs/v2"
	lru "github.com/hashicorp/golang-lru/v2"

	"purser/httpd"
	"purser/ids"
	"purser/store/people"
	"purser/tenancy/credential"
)

const (
	idleSession     = 8 * time.Hour
	absoluteSession = 7 * 24 * time.Hour
	// reauthWithin is how long an entered password counts as recent.
	reauthWithin = 10 * time.Minute
	// maxAgentLength is longer than any real User-Agent.
	maxAgentLength = 300
)

// Keys of the session's content.
const (
	sessionUser      = "user"
	sessionReauthAt  = "proven" // when the password was last entered
	sessionFormToken = "form"
	sessionFlash     = "flash"
)

// Cookie names. Browsers accept the __Host- prefix only over https and for this exact
// host, so plain http uses another name.
const (
	cookieName      = "purser"
	cookieNameHTTPS = "__Host-purser"
)

// plainCookieName contains the server's port. Browsers send cookies to every port of a
// host, so two servers on one machine would otherwise overwrite each other's sessions.
func plainCookieName(address string) string {
	if at, err := url.Parse(address); err == nil && at.Port() != "" {
		return cookieName + "-" + at.Port()
	}
	return cookieName
}

func newSessions(stored sessionStore, address string, https bool) *scs.SessionManager {
	m := scs.New()
	m.Store = stored
	m.IdleTimeout, m.Lifetime = idleSession, absoluteSession
	m.Cookie.Name = plainCookieName(address)
	if https {
		m.Cookie.Name, m.Cookie.Secure = cookieNameHTTPS, true
	}
	m.Cookie.HttpOnly, m.Cookie.SameSite, m.Cookie.Path = true, http.SameSiteLaxMode, "/"
	return m
}

// Bearer is what the session store needs beside the content. It is passed in the
// context, because scs calls the store.
type Bearer struct {
	userID  ids.ID
	Address string
	agent   string
	Token   string        // of the cookie, if it has a session
	changed bool          // the content was changed in this request
	renewed bool          // the session of Token gets another token
	Mails   []people.Mail // written with a new session
	saved   bool          // the session was saved, so the cookie is set
	// AfterSave, if set, is called once the session was saved, or was not opened.
	AfterSave func(saved bool)
	// passwordAt and factorAt are when the password and the authenticator of a new session
	// were set, so that one that is replaced meanwhile opens no session.
	passwordAt, factorAt int64
}

type bearerKey struct{}

// sessionStore stores sessions in Postgres. Of scs.Store it has the variants with a context,
// which scs calls in place of the others.
type sessionStore struct {
	scs.Store // nil: the others are never called
	auth      people.Auth
	now       func() int64
	lookups   *httpd.Lookups
	// known are sessions that the node has found: others behind the same address can't keep
	// their users from their pages.
	known *lru.Cache[credential.Hash, struct{}]
}

// knownSessions is how many sessions a node remembers.
const knownSessions = 10_000

func newSessionStore(auth people.Auth, now func() int64, lookups *httpd.Lookups) sessionStore {
	known, err := lru.New[credential.Hash, struct{}](knownSessions)
	if err != nil {
		panic(err) // only for a size below one
	}
	return sessionStore{auth: auth, now: now, lookups: lookups, known: known}
}

func (s sessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	return s.find(ctx, token, ctx.Value(bearerKey{}).(*Bearer).Address)
}

// find reads a session, which may have ended on any node. A token that is not known waits for
// its turn.
func (s sessionStore) find(ctx context.Context, token, address string) (content []byte, open bool, err error) {
	link, valid := credential.ParseLink(token) // scs makes tokens of the same form
	if !valid {
		return nil, false, nil
	}
	read := func(ctx context.Context) (bool, error) {
		now := s.now()
		content, open, err = s.auth.SessionContent(ctx, token, now-absoluteSession.Milliseconds(), now)
		return open, err
	}
	hash := link.Hash()
	if _, known := s.known.Get(hash); known {
		open, err = read(ctx)
	} else {
		open, err = s.lookups.Find(ctx, httpd.Secret{Kind: "session", Hash: hash}, Network(address), read)
	}
	if err == nil {
		s.remember(hash, open)
	}
	return content, open, err
}

func (s sessionStore) remember(hash credential.Hash, open bool) {
	if open {
		s.known.Add(hash, struct{}{})
	} else {
		s.known.Remove(hash)
	}
}

// CommitCtx saves a session. Only a session that began in this request is inserted: one
// that was ended meanwhile stays ended, under a new token too. A request that changed nothing does not write
// the content, so it cannot overwrite a concurrent change.
func (s sessionStore) CommitCtx(ctx context.Context, token string, content []byte, expiry time.Time) error {
	b := ctx.Value(bearerKey{}).(*Bearer)
	now := s.now()
	// scs uses the machine's clock: convert the remaining time to the site's.
	expires := now + time.Until(expiry).Milliseconds()
	kept := people.Session{UserID: b.userID, SeenAt: now, ExpiresAt: expires, Address: b.Address, Agent: b.agent}
	var err error
	switch {
	case b.renewed:
		b.saved, err = s.auth.RenewSession(ctx, b.Token, token, kept, content)
	case token != b.Token:
		kept.ID, kept.CreatedAt, kept.PasswordAt, kept.FactorAt = ids.New(), now, b.passwordAt, b.factorAt
		b.saved, err = s.auth.OpenSession(ctx, token, kept, content, b.Mails...)
	case b.changed:
		b.saved, err = s.auth.ContinueSession(ctx, token, kept, content)
	default:
		b.saved, err = s.auth.TouchSession(ctx, token, kept)
	}
	if err == nil && b.saved {
		s.remember(credential.Token(token).Hash(), true)
	}
	return err
}

// DeleteCtx ends a session. One that gets another token goes on: CommitCtx writes that.
func (s sessionStore) DeleteCtx(ctx context.Context, token string) error {
	if ctx.Value(bearerKey{}).(*Bearer).renewed {
		return nil
	}
	return s.auth.CloseSession(ctx, token)
}

// loadSession loads the session of the cookie, or starts an empty one, which is saved
// only once it has content. It fails while the time is not known: a session that is over
// could open, and a form could be decided at the wrong time.
func (req *Request) loadSession(r *http.Request) error {
	token := ""
	if cookie, err := r.Cookie(req.Site.sessions.Cookie.Name); err == nil {
		token = cookie.Value
	}
	if token != "" || r.Method != http.MethodGet {
		if err := req.Site.Store.Clock().Trust(r.Context()); err != nil {
			return err
		}
	}
	req.Bearer = &Bearer{Address: req.Site.clientAddress(r), agent: Shorten(r.UserAgent(), maxAgentLength)}
	ctx := context.WithValue(r.Context(), bearerKey{}, req.Bearer)
	ctx, err := req.Site.sessions.Load(ctx, token)
	if err != nil {
		return err
	}
	req.Context = ctx
	req.Bearer.Token = req.Site.sessions.Token(ctx)
	if id, err := ids.Parse(ids.User, req.Site.sessions.GetString(ctx, sessionUser)); err == nil {
		req.Bearer.userID = id
	}
	return nil
}

// saveSession writes the session and its cookie. If another request ended or renewed the
// session meanwhile, the cookie is left unchanged.
func (req *Request) saveSession() error {
	m, w := req.Site.sessions, req.echo.Response()
	switch m.Status(req.Context) {
	case scs.Modified:
		if !req.Bearer.changed && req.HTTP().Header.Get("X-Poll") != "" {
			return nil // the page asks by itself: its reader may have left
		}
		token, expiry, err := m.Commit(req.Context)
		if err != nil {
			return err
		}
		if req.Bearer.AfterSave != nil {
			req.Bearer.AfterSave(req.Bearer.saved)
		}
		if req.Bearer.saved {
			m.WriteSessionCookie(req.Context, w, token, expiry)
		}
	case scs.Destroyed:
		m.WriteSessionCookie(req.Context, w, "", time.Time{})
	}
	return nil
}

// SignIn starts a session of the user, whose password was set at that time, and so was the
// authenticator whose code was entered, or zero for none. It clears the session and renews
// its token, against session fixation.
func (req *Request) SignIn(user ids.ID, passwordAt, factorAt int64) error {
	if err := req.Site.sessions.Clear(req.Context); err != nil {
		return err
	}
	if err := req.Site.sessions.RenewToken(req.Context); err != nil {
		return err
	}
	req.Bearer.userID, req.Bearer.passwordAt, req.Bearer.factorAt = user, passwordAt, factorAt
	req.put(sessionUser, user.Format(ids.User))
	req.put(sessionFormToken, rand.Text())
	req.MarkReauthenticated()
	return nil
}

// put writes into the session.
func (req *Request) put(name string, value any) {
	req.Bearer.changed = true
	req.Site.sessions.Put(req.Context, name, value)
}

// MarkReauthenticated records that the password was entered now.
func (req *Request) MarkReauthenticated() { req.put(sessionReauthAt, req.Site.Now()) }

// isReauthenticated reports whether the password was entered recently.
func (req *Request) isReauthenticated() bool {
	age := req.Site.Now() - req.Site.sessions.GetInt64(req.Context, sessionReauthAt)
	return age >= 0 && age <= reauthWithin.Milliseconds()
}

// SignOut ends the session.
func (req *Request) SignOut() error {
	req.Bearer.userID = ids.ID{}
	return req.Site.sessions.Destroy(req.Context)
}

// flash shows a message once, on the next page.
func (req *Request) flash(message string) { req.put(sessionFlash, message) }

// takeFlash leaves the message to the next page: htmx takes only a part of this one, in which
// it may not be.
func (req *Request) takeFlash() string {
	if req.IsHTMX() {
		return ""
	}
	message := req.Site.sessions.PopString(req.Context, sessionFlash)
	req.Bearer.changed = req.Bearer.changed || message != ""
	return message
}

// FormToken is in every form of the session. It stays when the session gets another token.
func (req *Request) FormToken() string {
	return req.Site.sessions.GetString(req.Context, sessionFormToken)
}

func (s *Site) SessionCookie() string { return s.sessions.Cookie.Name }

// RenewSession keeps the session under a new token.
func (req *Request) RenewSession() error {
	req.Bearer.renewed = true
	return req.Site.sessions.RenewToken(req.Context)
}
