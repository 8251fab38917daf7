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
)

// pageTimeout is how long a request may take unless the options say otherwise: less
// than the server waits for its response to be read.
const pageTimeout = 15 * time.Second

// serve answers one route. The session is kept before anything is sent, so when
// its store fails nothing gets out but the failure.
func (s *Site) serve(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Response().Header().Get(echo.HeaderXRequestID) == "" {
			c.Response().Header().Set(echo.HeaderXRequestID, ids.New().Format(ids.Request))
		}
		// A caller that hangs up does not cancel its queries: pgx would close their
		// connections, and anonymous pages are enough to use up the pool.
		caller := c.Request()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(caller.Context()), s.timeout)
		defer cancel()
		c.SetRequest(caller.WithContext(ctx))
		defer c.SetRequest(caller) // for the error page, and to see that the caller hung up
		v := &visit{site: s, echo: c}
		if err := v.loadSession(c.Request()); err != nil {
			return err
		}
		c.SetRequest(c.Request().WithContext(v.context))
		reply, err := v.answer(r)
		if err != nil {
			if reply, err = v.explain(err); err != nil {
				return err
			}
		}
		// The whole page before the first byte, and before the session, whose flash it takes.
		if reply, err = reply.render(v.context, v.formToken()); err != nil {
			return err
		}
		if err := v.keepSession(); err != nil {
			return err
		}
		return reply.send(c)
	}
}

// answer lets the visitor through to the handler, or says why not. The order
// matters: a foreign page is refused before anybody's session is looked at, and an
// organization that is not one's own before what one may do in it.
func (v *visit) answer(r route) (answer, error) {
	if err := v.site.crossOrigin.Check(v.request()); err != nil {
		v.site.log.Warn("request of another site refused", "request", v.requestID(), "address", v.bearer.address, "route", r.method+" "+r.path)
		return answer{}, fault.Newf(fault.PermissionDenied, "This request came from another site and was blocked.")
	}
	if v.isSignedIn() || r.method != http.MethodGet {
		if err := v.site.store.Clock().Trust(v.context); err != nil {
			return answer{}, err
		}
	}
	if err := v.identify(r); err != nil {
		switch {
		case errors.Is(err, errNotSignedIn):
			return v.toLogin(), nil
		case errors.Is(err, errNeedsFactor):
			return v.lead("/account/factor"), nil
		case fault.Is(err, fault.PermissionDenied):
			v.logAccount("access refused", v.user.ID, "route", r.method+" "+r.path, "needs", r.need.String(), "organization", v.org.ID.Format(ids.Organization))
		case fault.Is(err, fault.PathNotFound):
			// An organization or application that is not there, or not this user's.
			v.logAccount("access refused", v.bearer.userID, "route", r.method+" "+r.path, "needs", anyMember.String())
		}
		return answer{}, err
	}
	if v.mustChange && !r.temporary && (r.need != anyone || r.method != http.MethodGet) {
		return v.lead("/account/password"), nil
	}
	if v.isSignedIn() && r.method != http.MethodGet {
		if err := v.checkFormToken(); err != nil {
			return answer{}, err
		}
	}
	if r.fresh && !v.isFresh() {
		return v.toConfirm(), nil
	}
	return r.handle(v)
}

var (
	errNotSignedIn = errors.New("web: not signed in")
	errNeedsFactor = errors.New("web: the organization requires an authenticator")
)

// needsFactor reports whether the user has to set up an authenticator before they may act
// in the organization.
func (v *visit) needsFactor(org tenancy.Organization) bool {
	return !v.hasFactor && (org.RequiresFactor || v.site.requireFactor)
}

// identify finds who is there and where they are, and refuses who may not be.
func (v *visit) identify(r route) error {
	if v.bearer.userID.IsZero() {
		if r.need == anyone {
			return nil
		}
		return errNotSignedIn
	}
	inOrg := strings.HasPrefix(r.path, orgNeeded)
	slug := ""
	if inOrg {
		slug = v.echo.Param("org")
	}
	around, err := v.site.store.User(v.bearer.userID).PageContext(v.context, slug)
	if err != nil {
		return err
	}
	v.user, v.orgs, v.hasFactor, v.mustChange = around.User, around.Organizations, around.HasFactor, around.MustChange
	v.org, v.member, v.apps = around.Org, around.Member, around.Applications
	if !inOrg {
		return nil
	}
	if v.needsFactor(v.org) {
		return errNeedsFactor
	}
	if strings.HasPrefix(r.path, appNeeded) {
		if err := v.findApplication(v.echo.Param("app")); err != nil {
			return err
		}
	}
	if p, byPermission := r.need.(tenancy.Permission); byPermission {
		return v.member.Permissions().Require(p)
	}
	return nil
}

func (v *visit) findApplication(slug string) error {
	for _, app := range v.apps {
		if app.Slug != slug {
			continue
		}
		v.app = app
		if app.Live { // its clock is the server's
			return nil
		}
		ahead, err := v.site.store.App(app.Scope()).ClockOffset(v.context)
		v.ahead = ahead
		return err
	}
	return fault.New(fault.PathNotFound)
}

// checkFormToken refuses a form that was not on a page of this session. Browsers
// say where a request comes from, and the guard above asks them; this is for those
// that do not.
func (v *visit) checkFormToken() error {
	f, err := v.form()
	if err != nil {
		return err
	}
	want := v.formToken()
	if want == "" || subtle.ConstantTimeCompare([]byte(f.raw(formTokenField)), []byte(want)) != 1 {
		v.logAccount("form without its session's token refused", v.user.ID)
		return fault.Newf(fault.PermissionDenied, "This page was opened before you signed in. Nothing was saved. Go back, reload it and try again.")
	}
	return nil
}

// toLogin leads to the sign-in and back to the page that was asked for.
func (v *visit) toLogin() answer { return v.lead("/login") }

// toConfirm leads to the page that asks for the password again.
func (v *visit) toConfirm() answer { return v.lead("/confirm") }

// lead sends the visitor to a page that comes first. A part of a page cannot show
// it, so htmx is told to load it whole.
func (v *visit) lead(first string) answer {
	target := first + "?" + url.Values{"next": {v.returnPath()}}.Encode()
	if v.isHTMX() {
		return answer{status: http.StatusUnauthorized}.with("HX-Redirect", target)
	}
	return redirect(target)
}

// returnPath is where to go on afterwards: the page itself, or for a form the page
// that it was on.
func (v *visit) returnPath() string {
	r := v.request()
	if r.Method == http.MethodGet && !v.isHTMX() {
		return localPath(r.URL.RequestURI())
	}
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host {
		return "/"
	}
	return localPath(from.RequestURI())
}

// localPath is the path when it leads nowhere but to this server. Browsers read
// //host and /\host as another server's address.
func localPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}
