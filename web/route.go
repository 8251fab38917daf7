package web

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"purser/tenancy"
)

// route is one row of a route table: what is asked, who may, and what answers.
type route struct {
	method string
	path   string // {name} for a parameter; {org} and {app} are found before the handler runs
	need   need
	handle func(*visit) (answer, error)
	fresh  bool // asks for the password again, unless it was given some minutes ago
	// temporary is open to a session that was opened with a temporary password.
	temporary bool
}

// need is what a visitor must have: a tenancy.Permission in the path's
// organization, or one of the doors below.
type need fmt.Stringer

// door is a need that is no permission.
type door string

const (
	anyone    door = "anyone"           // signed in or not
	signedIn  door = "a session"        // whoever has an account
	anyMember door = "a membership"     // of the path's organization, whatever the role
	orgNeeded      = "/o/{org}"         // the beginning of paths in an organization
	appNeeded      = "/o/{org}/a/{app}" // the beginning of paths in an application
)

func (d door) String() string { return string(d) }

func get(path string, need need, handle func(*visit) (answer, error)) route {
	return route{method: http.MethodGet, path: path, need: need, handle: handle}
}

func post(path string, need need, handle func(*visit) (answer, error)) route {
	return route{method: http.MethodPost, path: path, need: need, handle: handle}
}

// fresh is a route to something that a stolen session must not reach.
func fresh(r route) route {
	r.fresh = true
	return r
}

// whileTemporary is a route that a temporary password leads to. Beside these it opens
// only pages that anyone may read.
func whileTemporary(r route) route {
	r.temporary = true
	return r
}

// check refuses a row that would open more than it says.
func (r route) check() error {
	_, byPermission := r.need.(tenancy.Permission)
	inOrg := r.path == orgNeeded || strings.HasPrefix(r.path, orgNeeded+"/")
	switch {
	case (byPermission || r.need == anyMember) != inOrg:
		return fmt.Errorf("web: %s %s needs %s, which its path does not fit", r.method, r.path, r.need)
	case r.fresh && r.need == anyone:
		return fmt.Errorf("web: %s %s asks nobody for a password", r.method, r.path)
	}
	return nil
}

// mount adds a table to the app. GET answers HEAD as well.
func (s *Site) mount(e *echo.Echo, table []route) {
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

// echoPath writes {name} as echo does.
func echoPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
