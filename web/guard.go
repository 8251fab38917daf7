package web

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
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

// serve handles one route. The session is saved before anything is sent, so a failing
// session store sends only the error.
func (s *core) serve(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Response().Header().Get(echo.HeaderXRequestID) == "" {
			c.Response().Header().Set(echo.HeaderXRequestID, ids.New().Format(ids.Request))
		}
		// A client that disconnects does not cancel its queries: pgx would close their
		// connections, and anonymous pages alone could exhaust the pool.
		caller := c.Request()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(caller.Context()), s.timeout)
		defer cancel()
		c.SetRequest(caller.WithContext(ctx))
		defer c.SetRequest(caller) // for the error page, and to detect that the client disconnected
		req := &request{site: s, echo: c}
		if err := req.loadSession(c.Request()); err != nil {
			return err
		}
		req.context = component.WithTheme(req.context, themeOf(caller))
		c.SetRequest(c.Request().WithContext(req.context))
		reply, err := req.respond(r)
		if err != nil {
			if reply, err = req.errorResponse(err); err != nil {
				return err
			}
		}
		// Render the whole page before the first byte, and before the session is saved: it consumes the flash.
		if reply, err = reply.render(req.context, req.formToken()); err != nil {
			return err
		}
		if err := req.saveSession(); err != nil {
			return err
		}
		return reply.send(c)
	}
}

// respond checks access and calls the handler. The order matters: a cross-origin request
// is refused before the session is used, and another tenant's organization before the
// permission is checked.
func (req *request) respond(r route) (response, error) {
	if err := req.site.crossOrigin.Check(req.http()); err != nil {
		req.site.log.Warn("request of another site refused", "request", req.requestID(), "address", req.bearer.address, "route", r.method+" "+r.path)
		return response{}, fault.Newf(fault.PermissionDenied, "This request came from another site and was blocked.")
	}
	if req.isSignedIn() || r.method != http.MethodGet {
		if err := req.site.store.Clock().Trust(req.context); err != nil {
			return response{}, err
		}
	}
	if err := req.identify(r); err != nil {
		switch {
		case errors.Is(err, errNotSignedIn):
			return req.toLogin(), nil
		case errors.Is(err, errNeedsFactor):
			return req.redirectVia("/account/factor"), nil
		case fault.Is(err, fault.PermissionDenied):
			req.logAccount("access refused", req.user.ID, "route", r.method+" "+r.path, "needs", r.requires.String(), "organization", req.org.ID.Format(ids.Organization))
		case fault.Is(err, fault.PathNotFound):
			// An organization or application that does not exist or is another tenant's.
			req.logAccount("access refused", req.bearer.userID, "route", r.method+" "+r.path, "needs", anyMember.String())
		}
		return response{}, err
	}
	if req.mustChange && !r.temporary && (r.requires != anyone || r.method != http.MethodGet) {
		return req.redirectVia("/account/password"), nil
	}
	if req.isSignedIn() && r.method != http.MethodGet {
		if err := req.checkFormToken(); err != nil {
			return response{}, err
		}
	}
	if r.reauth && !req.isReauthenticated() {
		return req.toConfirm(), nil
	}
	return r.handle(req)
}

var (
	errNotSignedIn = errors.New("web: not signed in")
	errNeedsFactor = errors.New("web: the organization requires an authenticator")
)

// needsFactor reports whether the user must set up an authenticator before acting in the
// organization.
func (req *request) needsFactor(org tenancy.Organization) bool {
	return !req.hasFactor && (org.RequiresFactor || req.site.requireFactor)
}

// identify loads the user, the organization and the application, and checks the route's
// requirement.
func (req *request) identify(r route) error {
	if req.bearer.userID.IsZero() {
		if r.requires == anyone {
			return nil
		}
		return errNotSignedIn
	}
	inOrg := strings.HasPrefix(r.path, orgPrefix)
	slug := ""
	if inOrg {
		slug = req.echo.Param("org")
	}
	loaded, err := req.site.store.User(req.bearer.userID).PageContext(req.context, slug)
	if err != nil {
		return err
	}
	req.user, req.orgs, req.hasFactor, req.mustChange = loaded.User, loaded.Organizations, loaded.HasFactor, loaded.MustChange
	req.org, req.member, req.apps = loaded.Org, loaded.Member, loaded.Applications
	if !inOrg {
		return nil
	}
	if req.needsFactor(req.org) {
		return errNeedsFactor
	}
	if strings.HasPrefix(r.path, appPrefix) {
		if err := req.findApplication(req.echo.Param("app")); err != nil {
			return err
		}
	}
	if p, byPermission := r.requires.(tenancy.Permission); byPermission {
		return req.member.Permissions().Require(p)
	}
	return nil
}

func (req *request) findApplication(slug string) error {
	for _, app := range req.apps {
		if app.Slug != slug {
			continue
		}
		req.app = app
		if app.Live { // its clock is the server's
			return nil
		}
		offset, err := req.site.store.App(app.Scope()).ClockOffset(req.context)
		req.clockOffset = offset
		return err
	}
	return fault.New(fault.PathNotFound)
}

// checkFormToken refuses a form that was not rendered in this session. The cross-origin
// check covers browsers that send Sec-Fetch-Site or Origin; this covers the others.
func (req *request) checkFormToken() error {
	f, err := req.form()
	if err != nil {
		return err
	}
	want := req.formToken()
	if want == "" || subtle.ConstantTimeCompare([]byte(f.raw(component.FormTokenField)), []byte(want)) != 1 {
		req.logAccount("form without its session's token refused", req.user.ID)
		return fault.Newf(fault.PermissionDenied, "This page was opened before you signed in. Nothing was saved. Go back, reload it and try again.")
	}
	return nil
}

// toLogin redirects to the sign-in and back.
func (req *request) toLogin() response { return req.redirectVia("/login") }

// toConfirm redirects to the password confirmation and back.
func (req *request) toConfirm() response { return req.redirectVia("/confirm") }

// redirectVia redirects to a page that must be completed first. For an htmx request it
// sets HX-Redirect, so that the whole page is loaded.
func (req *request) redirectVia(first string) response {
	target := first + "?" + url.Values{"next": {req.returnPath()}}.Encode()
	if req.isHTMX() {
		return response{status: http.StatusUnauthorized}.with("HX-Redirect", target)
	}
	return redirect(target)
}

// returnPath is where to continue afterwards: this page, or for a form the page that it
// was on.
func (req *request) returnPath() string {
	r := req.http()
	if r.Method == http.MethodGet && !req.isHTMX() {
		return localPath(r.URL.RequestURI())
	}
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host {
		return "/"
	}
	return localPath(from.RequestURI())
}

// localPath returns the path if it stays on this server, else "/". Browsers treat //host
// and /\host as another host.
func localPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}
