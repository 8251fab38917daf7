package web

import (
	"purser/tenancy"
	"purser/views/component"
	"purser/views/layout"
)

// frame is the page's header and navigation. It consumes the flash message, so a page
// builds it once.
func (req *request) frame(title, current string) layout.Frame {
	f := layout.Frame{
		Title:   title,
		Person:  layout.Person{Name: req.user.Name, Email: req.user.Email},
		Current: current,
		Flash:   component.Message{Text: req.takeFlash()},
	}
	for _, org := range req.orgs {
		f.Orgs = append(f.Orgs, layout.Place{Name: org.Name, Href: pathOf([]string{"o", org.Slug})})
	}
	if req.org.ID.IsZero() {
		return f
	}
	f.Org = layout.Place{Name: req.org.Name, Href: req.orgPath()}
	for _, app := range req.apps {
		f.Apps = append(f.Apps, req.place(app))
	}
	if req.app.ID.IsZero() {
		f.Nav = layout.OrgNav(f.Org.Href, req.member.Permissions())
		return f
	}
	f.App = req.place(req.app)
	f.Search = req.linkIfPermitted(tenancy.WalletsRead, "search")
	if req.clockOffset > 0 {
		f.Clock = layout.Clock{At: req.now(), Ahead: req.clockOffset}
	}
	f.Nav = layout.AppNav(f.App.Href, req.member.Permissions())
	if req.usesSandbox() && !req.site.sandboxOff {
		f.Nav = layout.WithSandbox(f.Nav, f.App.Href)
	}
	return f
}

func (req *request) place(app tenancy.Application) layout.Application {
	return layout.Application{Place: layout.Place{Name: app.Name, Href: req.orgPath("a", app.Slug)}, Live: app.Live}
}

// usesSandbox reports whether the member can operate a sandbox of the application. Its
// controls are those of the control API, which requires the same permission.
func (req *request) usesSandbox() bool {
	return req.site.hasSandbox && !req.app.Live && !req.app.ID.IsZero() && req.may(tenancy.SubscriptionsWrite)
}
