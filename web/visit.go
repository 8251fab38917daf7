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
	"purser/tenancy"
	"purser/tenancy/audit"
)

// visit is one request of a person. What its route needs has been found before
// the handler sees it: the user for a session, the organization and the member
// for a path below /o/{org}, the application for one below /o/{org}/a/{app}.
type visit struct {
	site    *Site
	echo    echo.Context
	context context.Context // the request's, with the session in it
	bearer  *bearer

	user       tenancy.User
	hasFactor  bool // the user has an authenticator
	mustChange bool // the user's password is temporary

	orgs   []tenancy.Organization // that the user is a member of
	org    tenancy.Organization
	member tenancy.Member
	apps   []tenancy.Application // of the organization
	app    tenancy.Application
	ahead  int64 // of the application's clock, in milliseconds
}

// isSignedIn reports whether somebody is there.
func (v *visit) isSignedIn() bool { return !v.user.ID.IsZero() }

// may reports whether the member holds a permission.
func (v *visit) may(p tenancy.Permission) bool { return v.member.May(p) }

// scope is the application of the path.
func (v *visit) scope() tenancy.Scope { return v.app.Scope() }

// tenant is the door to the application's rows. What is changed through it is
// written into the audit log, in the same transaction.
func (v *visit) tenant() store.App { return v.site.store.App(v.scope()).By(v.actor()) }

// organization is the door to the organization's rows, with the audit log behind it.
func (v *visit) organization() store.Org { return v.site.store.Org(v.org.ID).By(v.actor()) }

// person is the door to the user's own rows.
func (v *visit) person() store.User { return v.site.store.User(v.user.ID) }

// now is the application's clock, which runs ahead in a test application whose
// sandbox was told to.
func (v *visit) now() int64 { return v.site.now() + v.ahead }

// actor is who acts, for the audit log. Its time is the server's: a log that jumps
// with a test clock explains nothing.
func (v *visit) actor() audit.Actor {
	id, _ := ids.Parse(ids.Request, v.requestID())
	return audit.Actor{UserID: v.user.ID, Name: v.user.Email, Address: v.bearer.address, RequestID: id, At: v.site.now()}
}

// requestID finds the request in the server's log.
func (v *visit) requestID() string { return v.echo.Response().Header().Get(echo.HeaderXRequestID) }

// request is the request itself, with the session in its context.
func (v *visit) request() *http.Request { return v.echo.Request() }

// isHTMX reports whether a part of a page is asked for and not the whole.
func (v *visit) isHTMX() bool { return v.request().Header.Get("HX-Request") == "true" }

// param is a part of the path. One that cannot be read is a page that is not there.
func (v *visit) param(name string) (string, error) {
	text, err := url.PathUnescape(v.echo.Param(name))
	if err != nil || text == "" || isNoText(text) {
		return "", fault.New(fault.PathNotFound)
	}
	return text, nil
}

// id is a part of the path that is an identifier of the kind.
func (v *visit) id(name, prefix string) (ids.ID, error) {
	text, err := v.param(name)
	if err != nil {
		return ids.ID{}, err
	}
	id, err := ids.Parse(prefix, text)
	if err != nil {
		return ids.ID{}, fault.New(fault.PathNotFound)
	}
	return id, nil
}

// query is one value of the query string, without the space around it.
func (v *visit) query(name string) string {
	return strings.TrimSpace(shorten(v.echo.QueryParam(name), maxQueryValue))
}

// maxQueryValue is more than any filter needs.
const maxQueryValue = 4096

// orgPath is an address in the organization, such as orgPath("members").
func (v *visit) orgPath(parts ...string) string {
	return pathOf(append([]string{"o", v.org.Slug}, parts...))
}

// appPath is an address in the application, such as appPath("wallets", id).
func (v *visit) appPath(parts ...string) string {
	return pathOf(append([]string{"o", v.org.Slug, "a", v.app.Slug}, parts...))
}

func pathOf(parts []string) string {
	var path strings.Builder
	for _, part := range parts {
		path.WriteByte('/')
		path.WriteString(url.PathEscape(part))
	}
	return path.String()
}

// done says what was done, on the page to which it leads.
func (v *visit) done(path, message string) (answer, error) {
	v.flash(message)
	return redirect(path), nil
}

// shorten keeps what Postgres takes and a table has room for.
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
