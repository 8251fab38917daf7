package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/notifications"
	"purser/store/payments"
	"purser/store/people"
	"purser/store/queue"
	"purser/store/reports"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// request is one request to a page. What its route requires is loaded before the handler
// runs: the user for a session, the organization and the member for a path below
// /o/{org}, the application for one below /o/{org}/a/{app}.
type request struct {
	site    *core
	echo    echo.Context
	context context.Context // the request's, with the session in it
	bearer  *bearer

	user       tenancy.User
	hasFactor  bool // the user has an authenticator
	mustChange bool // the user's password is temporary

	orgs        []tenancy.Organization // that the user is a member of
	org         tenancy.Organization
	member      tenancy.Member
	apps        []tenancy.Application // of the organization
	app         tenancy.Application
	clockOffset int64 // of the application's clock, in milliseconds
}

func (req *request) isSignedIn() bool { return !req.user.ID.IsZero() }

// may reports whether the member has a permission.
func (req *request) may(p tenancy.Permission) bool { return req.member.May(p) }

// scope is the path's application.
func (req *request) scope() tenancy.Scope { return req.app.Scope() }

// tenant gives access to the application's rows. Changes are audited in the same
// transaction.
func (req *request) tenant() store.App { return req.site.store.App(req.scope()).By(req.actor()) }

// payments gives access to what is sold and paid. Changes are audited in the same
// transaction.
func (req *request) payments() payments.App {
	return req.site.store.Payments(req.scope()).By(req.actor())
}

// queue gives access to the application's jobs. Changes are audited in the same
// transaction.
func (req *request) queue() queue.App { return req.site.store.Queue(req.scope()).By(req.actor()) }

// notifications gives access to the application's notifications and webhook endpoints.
// Changes are audited in the same transaction.
func (req *request) notifications() notifications.App {
	return req.site.store.Notifications(req.scope()).By(req.actor())
}

// reports reads what pages show of the application.
func (req *request) reports() reports.App { return req.site.store.Reports(req.scope()) }

// organization gives access to the organization's rows. Changes are audited in the same
// transaction.
func (req *request) organization() people.Org { return req.site.store.Org(req.org.ID).By(req.actor()) }

// userStore gives access to the user's own rows.
func (req *request) userStore() people.User { return req.site.store.User(req.user.ID) }

// now is the application's clock, which is ahead of the server's after a test
// application's sandbox clock was advanced.
func (req *request) now() int64 { return req.site.now() + req.clockOffset }

// actor is the audit actor. Its time is the server's, so the audit log does not follow a
// test clock.
func (req *request) actor() audit.Actor {
	id, _ := ids.Parse(ids.Request, req.requestID())
	return audit.Actor{UserID: req.user.ID, Name: req.user.Email, Address: req.bearer.address, RequestID: id, At: req.site.now()}
}

// requestID identifies the request in the server's log.
func (req *request) requestID() string {
	return req.echo.Response().Header().Get(echo.HeaderXRequestID)
}

// http is the HTTP request, with the session in its context.
func (req *request) http() *http.Request { return req.echo.Request() }

// isHTMX reports a request for a fragment of a page.
func (req *request) isHTMX() bool { return req.http().Header.Get("HX-Request") == "true" }

// param is a path parameter. An invalid one is a 404.
func (req *request) param(name string) (string, error) {
	text, err := url.PathUnescape(req.echo.Param(name))
	if err != nil || text == "" || isInvalidText(text) {
		return "", fault.New(fault.PathNotFound)
	}
	return text, nil
}

// id is a path parameter that is an id of the given kind.
func (req *request) id(name, prefix string) (ids.ID, error) {
	text, err := req.param(name)
	if err != nil {
		return ids.ID{}, err
	}
	id, err := ids.Parse(prefix, text)
	if err != nil {
		return ids.ID{}, fault.New(fault.PathNotFound)
	}
	return id, nil
}

// query is one trimmed query parameter.
func (req *request) query(name string) string {
	return strings.TrimSpace(shorten(req.echo.QueryParam(name), maxQueryValue))
}

// maxQueryValue is more than any filter needs.
const maxQueryValue = 4096

// orgPath is a URL in the organization, such as orgPath("members").
func (req *request) orgPath(parts ...string) string {
	return pathOf(append([]string{"o", req.org.Slug}, parts...))
}

// appPath is a URL in the application, such as appPath("wallets", id).
func (req *request) appPath(parts ...string) string {
	return pathOf(append([]string{"o", req.org.Slug, "a", req.app.Slug}, parts...))
}

func pathOf(parts []string) string {
	var path strings.Builder
	for _, part := range parts {
		path.WriteByte('/')
		path.WriteString(url.PathEscape(part))
	}
	return path.String()
}

// done redirects and shows a message there.
func (req *request) done(path, message string) (response, error) {
	req.flash(message)
	return redirect(path), nil
}

// shorten removes what Postgres refuses and truncates the text.
func shorten(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit])
	}
	return text
}

// logAccount logs an account event.
func (req *request) logAccount(event string, user ids.ID, more ...any) {
	req.site.log.Info(event, append([]any{"request", req.requestID(), "address", req.bearer.address, "user", user.Format(ids.User)}, more...)...)
}

// linkIfPermitted is the URL of a page of the application, or "" without the permission.
func (req *request) linkIfPermitted(needed tenancy.Permission, part string) string {
	if !req.may(needed) {
		return ""
	}
	return req.appPath(part)
}

// notifyCashier starts the sync of a saved plan now instead of with the next periodic
// run.
func (req *request) notifyCashier() {
	if req.site.cashier != nil {
		req.site.cashier.Wake(req.scope())
	}
}

// setCookie adds a cookie to the response.
func (req *request) setCookie(cookie *http.Cookie) { req.echo.SetCookie(cookie) }
