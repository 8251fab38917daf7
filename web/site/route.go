package site

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/httpd"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
)

// Route is one row of a route table: method, path, requirement and handler.
type Route struct {
	Method   string
	Path     string // with {name} for a parameter; {org} and {app} are loaded before the handler runs
	Requires requirement
	handle   func(*Request) (Response, error)
	reauth   bool // requires the password again unless it was entered recently
	// temporary allows a session with a temporary password.
	temporary bool
	// Archived lets the route work in an archived application or organization.
	Archived bool
	// cacheable lets browsers keep the page, and caches that of a visitor without cookies.
	cacheable bool
}

// isFile reports whether the route responds with a file to save.
func (r Route) isFile() bool { return path.Ext(r.Path) != "" }

// requirement is what a route requires: a tenancy.Permission in the path's organization,
// or an access level.
type requirement fmt.Stringer

// access is a requirement that is not a permission.
type access string

const (
	Anyone    access = "anyone"           // signed in or not
	SignedIn  access = "a session"        // any user
	AnyMember access = "a membership"     // in the path's organization, with any role
	OrgPrefix        = "/o/{org}"         // prefix of paths in an organization
	AppPrefix        = "/o/{org}/a/{app}" // prefix of paths in an application
)

func (d access) String() string { return string(d) }

// Get is a route of a page.
func Get(path string, requires requirement, handle func(*Request) (Response, error)) Route {
	return Route{Method: http.MethodGet, Path: path, Requires: requires, handle: handle}
}

// Post is a route of a form.
func Post(path string, requires requirement, handle func(*Request) (Response, error)) Route {
	return Route{Method: http.MethodPost, Path: path, Requires: requires, handle: handle}
}

// With is the handler of a route that first loads what it shows or changes. Access is
// checked before the load.
func With[T any](load func(*Request) (T, error), handle func(*Request, T) (Response, error)) func(*Request) (Response, error) {
	return func(req *Request) (Response, error) {
		loaded, err := load(req)
		if err != nil {
			return Response{}, err
		}
		return handle(req, loaded)
	}
}

// Param, ID and Before load what the methods of a Request with the same name read.
func Param(name string) func(*Request) (string, error) {
	return func(req *Request) (string, error) { return req.Param(name) }
}

func ID(name, prefix string) func(*Request) (ids.ID, error) {
	return func(req *Request) (ids.ID, error) { return req.ID(name, prefix) }
}

func Before(prefix string) func(*Request) (store.Page, error) {
	return func(req *Request) (store.Page, error) { return req.Before(prefix) }
}

// Reauth marks a route that a stolen session must not reach: it requires a recent
// password.
func Reauth(r Route) Route {
	r.reauth = true
	return r
}

// WhileTemporary marks a route that a session with a temporary password may use.
// Otherwise such a session sees only public pages.
func WhileTemporary(r Route) Route {
	r.temporary = true
	return r
}

// WhileArchived marks a route that changes something, or shows the form for it, in an
// archived application or organization as well.
func WhileArchived(r Route) Route {
	r.Archived = true
	return r
}

// Cacheable marks a public page without data of an account.
func Cacheable(r Route) Route {
	r.cacheable = true
	return r
}

// Changes reports whether the route is for changing something.
func (r Route) Changes() bool {
	p, byPermission := r.Requires.(tenancy.Permission)
	return r.Method != http.MethodGet || byPermission && !p.Reads()
}

// check refuses a row whose requirement does not fit its path.
func (r Route) check() error {
	_, byPermission := r.Requires.(tenancy.Permission)
	inOrg := r.Path == OrgPrefix || strings.HasPrefix(r.Path, OrgPrefix+"/")
	switch {
	case (byPermission || r.Requires == AnyMember) != inOrg:
		return fmt.Errorf("web: %s %s needs %s, which its path does not fit", r.Method, r.Path, r.Requires)
	case r.reauth && r.Requires == Anyone:
		return fmt.Errorf("web: %s %s requires a password of anonymous users", r.Method, r.Path)
	case r.cacheable && (r.Requires != Anyone || r.Method != http.MethodGet):
		return fmt.Errorf("web: %s %s is cached and not public", r.Method, r.Path)
	}
	return nil
}

// Mount registers a table. GET routes serve HEAD too.
func (s *Site) Mount(e *echo.Echo, table []Route) {
	for _, r := range table {
		if err := r.check(); err != nil {
			panic(err)
		}
		e.Match(httpd.MethodsOf(r.Method), httpd.EchoPath(r.Path), s.serve(r), s.Protect)
	}
	for _, r := range parentRedirects(table) {
		for _, mounted := range e.Match(httpd.MethodsOf(r.Method), httpd.EchoPath(r.Path), s.serve(r), s.Protect) {
			mounted.Name = ParentRedirect
		}
	}
	// A member who mistypes an address keeps the navigation.
	for _, prefix := range []string{OrgPrefix, AppPrefix} {
		missing := Get(prefix+"/*", AnyMember, func(*Request) (Response, error) { return Response{}, fault.New(fault.PathNotFound) })
		e.RouteNotFound(httpd.EchoPath(missing.Path), s.serve(missing), s.Protect)
	}
}

// ParentRedirect is the name of routes that only lead to the page above them.
const ParentRedirect = "parent"

// parentRedirects leads from the address of a form that has no page to the closest page
// above it: after an error a browser shows that address, and may load it.
func parentRedirects(table []Route) (redirects []Route) {
	hasPage := func(address string) bool {
		return slices.ContainsFunc(table, func(r Route) bool { return r.Method == http.MethodGet && covers(r.Path, address) })
	}
	for _, r := range table {
		if hasPage(r.Path) {
			continue
		}
		up := 1
		parent := path.Dir(r.Path)
		for ; !hasPage(parent) && parent != "/"; up++ {
			parent = path.Dir(parent)
		}
		var requires requirement = Anyone
		if strings.HasPrefix(r.Path, OrgPrefix) {
			requires = AnyMember
		}
		redirects = append(redirects, Get(r.Path, requires, func(req *Request) (Response, error) {
			above := req.HTTP().URL.EscapedPath()
			for range up {
				above = above[:strings.LastIndexByte(above, '/')]
			}
			return Redirect(LocalPath(cmp.Or(above, "/"))), nil
		}))
	}
	return redirects
}

// covers reports whether the pattern matches the path, and whatever its parameters are.
func covers(pattern, address string) bool {
	return slices.EqualFunc(strings.Split(pattern, "/"), strings.Split(address, "/"), func(p, segment string) bool {
		return p == segment || strings.HasPrefix(p, "{")
	})
}
