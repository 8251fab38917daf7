package site

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/notifications"
	"purser/store/payments"
	"purser/store/people"
	"purser/store/queue"
	"purser/store/reports"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// Request is one request to a page. What its route requires is loaded before the handler
// runs: the user for a session, the organization and the member for a path below
// /o/{org}, the application for one below /o/{org}/a/{app}.
type Request struct {
	Site    *Site
	echo    echo.Context
	route   Route
	Context context.Context // the request's, with the session in it
	Bearer  *Bearer
	Form    *Form // what was submitted; nil for a page
	badForm error // why Form could not be read

	User       tenancy.User
	HasFactor  bool  // the user has an authenticator
	MustChange bool  // the user's password is temporary
	PasswordAt int64 // when it was set

	Orgs        []tenancy.Organization // that the user is a member of
	Org         tenancy.Organization
	Member      tenancy.Member
	Apps        []tenancy.Application // of the organization
	App         tenancy.Application
	ClockOffset int64 // of the application's clock, in milliseconds

	afterSend func() // nil for nothing; also called when nothing is sent
}

func (req *Request) IsSignedIn() bool { return !req.User.ID.IsZero() }

// May reports whether the member has a permission that applies here.
func (req *Request) May(p tenancy.Permission) bool { return req.permissions().Has(p) }

// Require refuses a member whose role lacks a permission.
func (req *Request) Require(p tenancy.Permission) error {
	if !req.Member.Permissions().Has(p) {
		return fault.Newf(fault.PermissionDenied, "This requires the permission %s, which your role doesn't include. Ask an owner or admin for access.", p)
	}
	return nil
}

// Scope is the path's application.
func (req *Request) Scope() tenancy.Scope { return req.App.Scope() }

// Tenant gives access to the application's rows. Changes are audited in the same
// transaction.
func (req *Request) Tenant() store.App { return req.Site.Store.App(req.Scope()).By(req.Actor()) }

// Payments gives access to what is sold and paid. Changes are audited in the same
// transaction.
func (req *Request) Payments() payments.App {
	return req.Site.Store.Payments(req.Scope()).By(req.Actor())
}

// Queue gives access to the application's jobs. Changes are audited in the same
// transaction.
func (req *Request) Queue() queue.App { return req.Site.Store.Queue(req.Scope()).By(req.Actor()) }

// Notifications gives access to the application's notifications and webhook endpoints.
// Changes are audited in the same transaction.
func (req *Request) Notifications() notifications.App {
	return req.Site.Store.Notifications(req.Scope()).By(req.Actor())
}

// Reports reads what pages show of the application.
func (req *Request) Reports() reports.App { return req.Site.Store.Reports(req.Scope()) }

// Organization gives access to the organization's rows. Changes are audited in the same
// transaction.
func (req *Request) Organization() people.Org { return req.Site.Store.Org(req.Org.ID).By(req.Actor()) }

// UserStore gives access to the user's own rows.
func (req *Request) UserStore() people.User { return req.Site.Store.User(req.User.ID) }

// Now is the application's clock, which is ahead of the server's after a test
// application's sandbox clock was advanced.
func (req *Request) Now() int64 { return req.Site.Now() + req.ClockOffset }

// Actor is the audit actor. Its time is the server's, so the audit log does not follow a
// test clock.
func (req *Request) Actor() audit.Actor {
	id, _ := ids.Parse(ids.Request, req.RequestID())
	return audit.Actor{UserID: req.User.ID, Name: req.User.Email, Address: req.Bearer.Address, RequestID: id, At: req.Site.Now(), Access: req.Member.Access}
}

// RequestID identifies the request in the server's log.
func (req *Request) RequestID() string {
	return req.echo.Response().Header().Get(echo.HeaderXRequestID)
}

// HTTP is the HTTP request, with the session in its context.
func (req *Request) HTTP() *http.Request { return req.echo.Request() }

// IsHTMX reports a request for a fragment of a page.
func (req *Request) IsHTMX() bool { return req.HTTP().Header.Get("HX-Request") == "true" }

// Param is a path parameter. An invalid one is a 404.
func (req *Request) Param(name string) (string, error) {
	text, err := url.PathUnescape(req.echo.Param(name))
	if err != nil || text == "" || isInvalidText(text) {
		return "", fault.New(fault.PathNotFound)
	}
	return text, nil
}

// ID is a path parameter that is an id of the given kind.
func (req *Request) ID(name, prefix string) (ids.ID, error) {
	text, err := req.Param(name)
	if err != nil {
		return ids.ID{}, err
	}
	id, err := ids.Parse(prefix, text)
	if err != nil {
		return ids.ID{}, fault.New(fault.PathNotFound)
	}
	return id, nil
}

// Query is one trimmed query parameter. An identity stays as it is if a wallet has it, or
// if the link says so.
func (req *Request) Query(name string) string {
	whole := req.echo.QueryParam(name)
	trimmed := strings.TrimSpace(Shorten(whole, maxQueryValue))
	if _, err := metering.ParseIdentity(whole); name != "identity" || whole == trimmed || err != nil {
		return trimmed
	}
	if _, err := req.Tenant().Wallet(req.Context, whole); err == nil || req.echo.QueryParam(Exact) != "" {
		return whole
	}
	return trimmed
}

// Exact is the query parameter of links whose identity may have no wallet.
const Exact = "exact"

// maxQueryValue is more than any filter needs.
const maxQueryValue = 4096

// OrgPath is a URL in the organization, such as OrgPath("members").
func (req *Request) OrgPath(parts ...string) string {
	return PathOf(append([]string{"o", req.Org.Slug}, parts...))
}

// AppPath is a URL in the application, such as AppPath("wallets", id).
func (req *Request) AppPath(parts ...string) string {
	return PathOf(append([]string{"o", req.Org.Slug, "a", req.App.Slug}, parts...))
}

// PathOf joins the escaped parts of a path.
func PathOf(parts []string) string {
	var path strings.Builder
	for _, part := range parts {
		path.WriteByte('/')
		path.WriteString(url.PathEscape(part))
	}
	return path.String()
}

// Done redirects and shows a message there.
func (req *Request) Done(path, message string) (Response, error) {
	req.flash(message)
	return Redirect(path), nil
}

// Shorten removes what Postgres refuses and truncates the text.
func Shorten(text string, limit int) string {
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

func (req *Request) LogAccount(event string, user ids.ID, more ...any) {
	req.logAccount(slog.LevelInfo, event, user, more...)
}

// LogRefusal is LogAccount for what a user may repeat any number of times: the server's log
// collapses warnings.
func (req *Request) LogRefusal(event string, user ids.ID, more ...any) {
	req.logAccount(slog.LevelWarn, event, user, more...)
}

func (req *Request) logAccount(level slog.Level, event string, user ids.ID, more ...any) {
	more = append([]any{"request", req.RequestID(), "address", req.Bearer.Address, "user", user.Format(ids.User)}, more...)
	req.Site.Log.Log(req.Context, level, event, more...)
}

// LinkIfPermitted is the URL of a page of the application, or "" without the permission.
func (req *Request) LinkIfPermitted(needed tenancy.Permission, parts ...string) string {
	if !req.May(needed) {
		return ""
	}
	return req.AppPath(parts...)
}

// LinkIfEditable is the URL of a list of the application that the member may read and
// change, or "".
func (req *Request) LinkIfEditable(read, write tenancy.Permission, parts ...string) string {
	if !req.May(write) {
		return ""
	}
	return req.LinkIfPermitted(read, parts...)
}

// NotifyCashier starts the payment jobs of a change now instead of with the next periodic
// run.
func (req *Request) NotifyCashier() { req.Site.Cashier.Wake(req.Scope()) }

// SetCookie adds a cookie to the response.
func (req *Request) SetCookie(cookie *http.Cookie) { req.echo.SetCookie(cookie) }
