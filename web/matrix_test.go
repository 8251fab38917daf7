package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"purser/ids"
	"purser/tenancy"
	"purser/views/component"
	"purser/web/site"
)

// expected is what a row of the table must answer to a visitor, as far as it is
// for the guard to say: a handler may still find that an id leads nowhere.
func expected(r site.Route, role tenancy.Role, own bool) func(seen) bool {
	refused := func(status int) func(seen) bool { return func(s seen) bool { return s.status == status } }
	inside := func(s seen) bool {
		// Not 403 as the guard says it, not the sign-in, and never a failure of ours.
		return s.status < http.StatusInternalServerError && !strings.HasPrefix(s.location, "/login?next=") &&
			!strings.Contains(s.body, "This requires the permission")
	}
	inOrg := strings.HasPrefix(r.Path, site.OrgPrefix)
	switch {
	case role == "": // nobody is signed in
		if r.Requires == site.Anyone {
			return inside
		}
		return func(s seen) bool {
			return s.status == http.StatusSeeOther && strings.HasPrefix(s.location, "/login?next=")
		}
	case inOrg && !own:
		return refused(http.StatusNotFound)
	}
	if p, byPermission := r.Requires.(tenancy.Permission); byPermission && !role.Permissions().Has(p) {
		return func(s seen) bool {
			return s.status == http.StatusForbidden && strings.Contains(s.body, "This requires the permission "+p.String())
		}
	}
	return inside
}

// Every row of every table is tried by every role, in the organization that they
// belong to and in another. A new row is tried from its first day on.
func TestEveryRouteKeepsItsAccessRule(t *testing.T) {
	t.Parallel()
	r, foreign := newHarness(t), newHarness(t)
	roles := []tenancy.Role{"", tenancy.Owner, tenancy.Admin, tenancy.Developer, tenancy.Support}
	visitors := map[tenancy.Role]*browser{"": r.browser()}
	cells := 0
	for _, row := range r.site.routes() {
		for _, role := range roles {
			for _, own := range []bool{true, false} {
				if !own && !strings.HasPrefix(row.Path, site.OrgPrefix) {
					continue
				}
				cells++
				if visitors[role] == nil {
					visitors[role] = r.join(t, role)
				}
				b, path := visitors[role], fill(row.Path, r)
				if !own {
					path = fill(row.Path, foreign)
				}
				if own && role != "" && row.Method == http.MethodPost && row.Requires != site.Anyone {
					if got := b.do(t, row.Method, path, nil); got.status != http.StatusForbidden && got.status != http.StatusNotFound {
						t.Errorf("%s %s takes a form of %s without a token: %d", row.Method, row.Path, role, got.status)
					}
				}
				got := b.do(t, row.Method, path, map[string][]string{component.FormTokenField: {b.formToken}})
				if !expected(row, role, own)(got) {
					t.Errorf("%s %s (needs %s) answers %d %s to %q, own %t", row.Method, row.Path, row.Requires, got.status, got.location, role, own)
				}
				if own && role != "" && row.Method == http.MethodPost {
					visitors[role] = nil // who may have left, or signed out
				}
			}
		}
	}
	if cells < 100 {
		t.Errorf("only %d cells were tried", cells)
	}
	t.Logf("%d cells", cells)
}

// A role of one's own opens what its permissions say: each of them exactly the rows
// that need it.
func TestEveryRouteNeedsExactlyItsPermission(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	only, allBut := map[tenancy.Permission]*browser{}, map[tenancy.Permission]*browser{}
	for _, row := range r.site.routes() {
		p, byPermission := row.Requires.(tenancy.Permission)
		if !byPermission {
			continue
		}
		if only[p] == nil {
			only[p] = r.join(t, tenancy.Custom, p)
			allBut[p] = r.join(t, tenancy.Custom, slices.Collect(tenancy.AllPermissions().Minus(tenancy.PermissionsOf(p)).Each())...)
		}
		if got := only[p].tryRow(t, row, r); got.status == http.StatusForbidden || got.status >= http.StatusInternalServerError {
			t.Errorf("%s %s answers %d to who holds %s alone", row.Method, row.Path, got.status, p)
		}
		if got := allBut[p].tryRow(t, row, r); got.status != http.StatusForbidden || !strings.Contains(got.body, "This requires the permission "+p.String()) {
			t.Errorf("%s %s answers %d to who holds all but %s", row.Method, row.Path, got.status, p)
		}
	}
}

// tryRow asks for a row with a form that says nothing.
func (b *browser) tryRow(t *testing.T, row site.Route, at *harness) seen {
	t.Helper()
	return b.do(t, row.Method, fill(row.Path, at), map[string][]string{component.FormTokenField: {b.formToken}})
}

// fill puts the place's own names, and ids that lead nowhere, into a path.
func fill(path string, place *harness) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		name, isParameter := strings.CutPrefix(part, "{")
		if !isParameter {
			continue
		}
		switch strings.TrimSuffix(name, "}") {
		case "org":
			parts[i] = place.org.Slug
		case "app":
			parts[i] = place.app.Slug
		case "user":
			parts[i] = ids.New().Format(ids.User)
		default:
			parts[i] = fmt.Sprintf("%s-that-is-not-there", strings.Trim(part, "{}"))
		}
	}
	return strings.Join(parts, "/")
}
