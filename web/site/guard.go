package site

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
	"purser/views/component"
)

// pageTimeout is the default deadline of a request: shorter than the server's write
// timeout.
const pageTimeout = 15 * time.Second

const (
	// unsentBytes bounds the memory of replies whose clients read slowly: anyone may load a
	// page on each connection.
	unsentBytes = 64 << 20
	// formReply is counted before a user's form is handled: afterwards the reply could not be
	// refused, because it may show a secret, once.
	formReply = 64 << 10
)

// serve handles one route. The session is saved before anything is sent, so a failing
// session store sends only the error.
func (s *Site) serve(r Route) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Response().Header().Get(echo.HeaderXRequestID) == "" {
			c.Response().Header().Set(echo.HeaderXRequestID, ids.New().Format(ids.Request))
		}
		// A client that disconnects does not cancel its queries: pgx would close their
		// connections, and anonymous pages alone could exhaust the pool.
		caller := c.Request()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(caller.Context()), s.Timeout)
		defer cancel()
		c.SetRequest(caller.WithContext(ctx))
		defer c.SetRequest(caller) // for the error page, and to detect that the client disconnected
		req := &Request{Site: s, echo: c, route: r}
		defer func() {
			if req.afterSend != nil {
				req.afterSend()
			}
		}()
		if r.Method != http.MethodGet {
			// Before the session and the member are read: access that ends while a slow body
			// arrives must not be used.
			req.badForm = req.readForm()
		}
		if err := req.loadSession(c.Request()); err != nil {
			return err
		}
		req.Context = component.WithTheme(req.Context, themeOf(caller))
		c.SetRequest(c.Request().WithContext(req.Context))
		sent := func() {}
		defer func() { sent() }()
		if r.Method != http.MethodGet && !req.Bearer.userID.IsZero() {
			reserved, err := req.enterUnsent(formReply)
			if err != nil {
				return err
			}
			sent = reserved
		}
		reply, err := req.respond(r)
		reply.cacheable = r.cacheable
		if err != nil {
			if reply, err = req.errorResponse(err); err != nil {
				return err
			}
		}
		// Render the whole page before the first byte, and before the session is saved: it consumes the flash.
		if reply, err = reply.render(req.Context, req.FormToken()); err != nil {
			return err
		}
		if req.afterSend == nil && !reply.once { // exports have a bound of their own
			sent()
			if sent, err = req.enterUnsent(int64(cap(reply.body))); err != nil {
				sent = func() {}
				return err
			}
		}
		if err := req.saveSession(); err != nil {
			return err
		}
		return reply.send(c)
	}
}

// enterUnsent counts a reply until it is sent. Users have a limit of their own, so that those
// without an account keep no member from their pages.
func (req *Request) enterUnsent(size int64) (sent func(), err error) {
	if user := req.Bearer.userID; !user.IsZero() {
		return req.Site.unsentByUser.EnterReply(user, size)
	}
	return req.Site.unsentByNetwork.EnterReply(Network(req.Bearer.Address), size)
}

// respond checks access and calls the handler. The order matters: a cross-origin request
// is refused before the session is used, and another tenant's organization before the
// permission is checked.
func (req *Request) respond(r Route) (Response, error) {
	if err := req.Site.crossOrigin.Check(req.HTTP()); err != nil {
		req.Site.Log.Warn("request of another site refused", "request", req.RequestID(), "address", req.Bearer.Address, "route", r.Method+" "+r.Path)
		return Response{}, fault.Newf(fault.PermissionDenied, "This request came from another site and was blocked.")
	}
	if err := req.identify(r); err != nil {
		switch {
		case errors.Is(err, errNotSignedIn):
			return req.toLogin(), nil
		case errors.Is(err, errNeedsFactor):
			return req.RedirectVia("/account/factor"), nil
		case fault.Is(err, fault.PermissionDenied):
			req.LogRefusal("access refused", req.User.ID, "route", r.Method+" "+r.Path, "needs", r.Requires.String(), "organization", req.Org.ID.Format(ids.Organization))
		case fault.Is(err, fault.PathNotFound):
			// An organization or application that does not exist or is another tenant's.
			req.LogRefusal("access refused", req.Bearer.userID, "route", r.Method+" "+r.Path, "needs", AnyMember.String())
		}
		return Response{}, err
	}
	if req.MustChange && !r.temporary && (r.Requires != Anyone || r.Method != http.MethodGet) {
		return req.RedirectVia("/account/password"), nil
	}
	if r.Method != http.MethodGet {
		if req.badForm != nil {
			return Response{}, req.badForm
		}
		if err := req.checkFormToken(); err != nil {
			return Response{}, err
		}
	}
	if r.reauth && !req.isReauthenticated() {
		return req.toConfirm(), nil
	}
	reply, err := r.handle(req)
	if req.Form != nil && req.Form.failed != nil {
		return Response{}, req.Form.failed
	}
	return reply, err
}

var (
	errNotSignedIn = errors.New("web: not signed in")
	errNeedsFactor = errors.New("web: the organization requires an authenticator")
)

// NeedsFactor reports whether the user must set up an authenticator before acting in the
// organization.
func (req *Request) NeedsFactor(org tenancy.Organization) bool {
	return !req.HasFactor && req.RequiresFactor(org)
}

// RequiresFactor reports whether the organization cannot be opened without an
// authenticator.
func (req *Request) RequiresFactor(org tenancy.Organization) bool {
	return org.RequiresFactor || req.Site.RequireFactor
}

// identify loads the user, the organization and the application, and checks the route's
// requirement.
func (req *Request) identify(r Route) error {
	if req.Bearer.userID.IsZero() {
		if r.Requires == Anyone {
			return nil
		}
		return errNotSignedIn
	}
	inOrg := strings.HasPrefix(r.Path, OrgPrefix)
	slug := ""
	if inOrg {
		slug = req.echo.Param("org")
	}
	loaded, err := req.Site.Store.User(req.Bearer.userID).PageContext(req.Context, slug)
	if err != nil {
		return err
	}
	req.User, req.Orgs, req.HasFactor = loaded.User, loaded.Organizations, loaded.FactorAt != 0
	req.MustChange, req.PasswordAt = loaded.MustChange, loaded.PasswordAt
	req.Org, req.Member, req.Apps = loaded.Org, loaded.Member, loaded.Applications
	if !inOrg {
		return nil
	}
	if req.NeedsFactor(req.Org) {
		return errNeedsFactor
	}
	if strings.HasPrefix(r.Path, AppPrefix) {
		if err := req.findApplication(req.echo.Param("app")); err != nil {
			return err
		}
	}
	if p, byPermission := r.Requires.(tenancy.Permission); byPermission {
		if err := req.Require(p); err != nil {
			return err
		}
	}
	if req.archivedAt() != 0 && r.Changes() && !r.Archived {
		return fault.New(fault.Archived)
	}
	return nil
}

// CheckAccess checks again what the guard required, for a response that is sent in parts:
// the session must not have ended, and the member still needs access to the route and the
// permissions. A session that got another token counts as ended.
func (req *Request) CheckAccess(ctx context.Context, permissions ...tenancy.Permission) error {
	_, open, err := req.Site.stored.find(ctx, req.Bearer.Token, req.Bearer.Address)
	if err != nil {
		return err
	}
	if !open {
		return errNotSignedIn
	}
	again := *req
	again.Context = ctx
	if err := again.identify(req.route); err != nil {
		return err
	}
	for _, p := range permissions {
		if err := again.Require(p); err != nil {
			return err
		}
	}
	return nil
}

func (req *Request) findApplication(slug string) error {
	for _, app := range req.Apps {
		if app.Slug != slug {
			continue
		}
		req.App = app
		if app.Live { // its clock is the server's
			return nil
		}
		offset, err := req.Site.Store.App(app.Scope()).ClockOffset(req.Context)
		req.ClockOffset = offset
		return err
	}
	return fault.New(fault.PathNotFound)
}

// checkFormToken refuses a form that was not rendered in this session. The cross-origin
// check covers browsers that send Sec-Fetch-Site or Origin; this covers the others.
func (req *Request) checkFormToken() error {
	if !req.IsSignedIn() {
		return nil
	}
	want := req.FormToken()
	if want == "" || subtle.ConstantTimeCompare([]byte(req.Form.Raw(component.FormTokenField)), []byte(want)) != 1 {
		req.LogRefusal("form without its session's token refused", req.User.ID)
		return fault.Newf(fault.PermissionDenied, "This page was opened before you signed in. Nothing was saved. Go back, reload it and try again.")
	}
	return nil
}

// toLogin redirects to the sign-in and back.
func (req *Request) toLogin() Response { return req.RedirectVia("/login") }

// toConfirm redirects to the password confirmation and back.
func (req *Request) toConfirm() Response { return req.RedirectVia("/confirm") }

// Repeat is the query parameter that says that a form was sent and has to be sent again.
const Repeat = "repeat"

// RedirectVia redirects to a page that must be completed first. For an htmx request it
// sets HX-Redirect, so that the whole page is loaded.
func (req *Request) RedirectVia(first string) Response {
	query := url.Values{"next": {req.ReturnPath()}}
	if req.HTTP().Method != http.MethodGet {
		query.Set(Repeat, "1")
	}
	target := first + "?" + query.Encode()
	if req.IsHTMX() {
		return Response{status: http.StatusUnauthorized}.with("HX-Redirect", target)
	}
	return Redirect(target)
}

// ReturnPath is where to continue afterwards: this page, or for a form or a file the page
// that it was on. A browser that is led to a file stays where it is.
func (req *Request) ReturnPath() string {
	r, unknown := req.HTTP(), "/"
	if r.Method == http.MethodGet && !req.IsHTMX() {
		if !req.route.isFile() {
			return LocalPath(r.URL.RequestURI())
		}
		unknown = LocalPath(path.Dir(r.URL.EscapedPath())) // the page above
	}
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host {
		return unknown
	}
	return LocalPath(from.RequestURI())
}

// LocalPath returns the path if it stays on this server, else "/". Browsers treat //host
// and /\host as another host.
func LocalPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}
