package site

import (
	"purser/tenancy"
	"purser/views/component"
	"purser/views/layout"
)

// Frame is the page's header and navigation. It consumes the flash message, so a page
// builds it once.
func (req *Request) Frame(title, current string) layout.Frame {
	f := layout.Frame{
		Title:   title,
		Person:  layout.Person{Name: req.User.Name, Email: req.User.Email},
		Current: current,
		Flash:   component.Message{Text: req.takeFlash()},
	}
	for _, org := range req.Orgs {
		if org.IsArchived() && org.ID != req.Org.ID {
			continue
		}
		f.Orgs = append(f.Orgs, layout.Place{Name: org.Name, Href: PathOf([]string{"o", org.Slug})})
	}
	if req.Org.ID.IsZero() {
		return f
	}
	f.Org = layout.Place{Name: req.Org.Name, Href: req.OrgPath()}
	f.Archived = req.archived()
	for _, app := range req.Apps {
		if app.IsArchived() && app.ID != req.App.ID {
			continue
		}
		if req.FirstPage(app) != "" {
			f.Apps = append(f.Apps, req.Place(app))
		}
	}
	if req.App.ID.IsZero() {
		f.Nav = layout.OrgNav(f.Org.Href, req.permissions())
		return f
	}
	f.App = req.Place(req.App)
	f.Search = req.LinkIfPermitted(tenancy.WalletsRead, "search")
	if req.ClockOffset > 0 {
		f.Clock = layout.Clock{At: req.Now(), Ahead: req.ClockOffset}
	}
	f.Nav = req.appNav(req.App)
	f.OrgNav = layout.OrgNav(f.Org.Href, req.permissions())
	return f
}

// appNav is the navigation of an application, with the pages that the member may open.
func (req *Request) appNav(app tenancy.Application) []layout.NavGroup {
	home := req.OrgPath("a", app.Slug)
	nav := layout.AppNav(home, req.permissions())
	if req.usesSandboxOf(app) && !req.Site.SandboxOff {
		nav = layout.WithSandbox(nav, home)
	}
	return nav
}

// FirstPage is the URL of the first page of an application that the member may open, or
// "" if there is none.
func (req *Request) FirstPage(app tenancy.Application) string {
	nav := req.appNav(app)
	if len(nav) == 0 {
		return ""
	}
	return nav[0].Items[0].Href
}

// Place is an application in the navigation.
func (req *Request) Place(app tenancy.Application) layout.Application {
	return layout.Application{Place: layout.Place{Name: app.Name, Href: req.OrgPath("a", app.Slug)}, Live: app.Live}
}

// UsesSandbox reports whether the member can operate a sandbox of the application. Its
// controls are those of the control API, which requires the same permission.
func (req *Request) UsesSandbox() bool { return req.usesSandboxOf(req.App) }

func (req *Request) usesSandboxOf(app tenancy.Application) bool {
	return req.Site.HasSandbox && !app.Live && !app.ID.IsZero() && req.May(tenancy.SubscriptionsWrite)
}
