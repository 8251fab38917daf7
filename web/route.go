package web

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"purser/tenancy"
)

// route is one row of a route table: method, path, requirement and handler.
type route struct {
	method   string
	path     string // with {name} for a parameter; {org} and {app} are loaded before the handler runs
	requires requirement
	handle   func(*request) (response, error)
	reauth   bool // requires the password again unless it was entered recently
	// temporary allows a session with a temporary password.
	temporary bool
}

// requirement is what a route requires: a tenancy.Permission in the path's organization,
// or an access level.
type requirement fmt.Stringer

// access is a requirement that is not a permission.
type access string

const (
	anyone    access = "anyone"           // signed in or not
	signedIn  access = "a session"        // any user
	anyMember access = "a membership"     // in the path's organization, with any role
	orgPrefix        = "/o/{org}"         // prefix of paths in an organization
	appPrefix        = "/o/{org}/a/{app}" // prefix of paths in an application
)

func (d access) String() string { return string(d) }

func get(path string, requires requirement, handle func(*request) (response, error)) route {
	return route{method: http.MethodGet, path: path, requires: requires, handle: handle}
}

func post(path string, requires requirement, handle func(*request) (response, error)) route {
	return route{method: http.MethodPost, path: path, requires: requires, handle: handle}
}

// reauth marks a route that a stolen session must not reach: it requires a recent
// password.
func reauth(r route) route {
	r.reauth = true
	return r
}

// whileTemporary marks a route that a session with a temporary password may use.
// Otherwise such a session sees only public pages.
func whileTemporary(r route) route {
	r.temporary = true
	return r
}

// check refuses a row whose requirement does not fit its path.
func (r route) check() error {
	_, byPermission := r.requires.(tenancy.Permission)
	inOrg := r.path == orgPrefix || strings.HasPrefix(r.path, orgPrefix+"/")
	switch {
	case (byPermission || r.requires == anyMember) != inOrg:
		return fmt.Errorf("web: %s %s needs %s, which its path does not fit", r.method, r.path, r.requires)
	case r.reauth && r.requires == anyone:
		return fmt.Errorf("web: %s %s requires a password of anonymous users", r.method, r.path)
	}
	return nil
}

// mount registers a table. GET routes serve HEAD too.
func (s *core) mount(e *echo.Echo, table []route) {
	for _, r := range table {
		if err := r.check(); err != nil {
			panic(err)
		}
		methods := []string{r.method}
		if r.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		e.Match(methods, echoPath(r.path), s.serve(r), s.protect)
	}
}

// echoPath converts {name} to echo's :name.
func echoPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
