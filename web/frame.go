package web

import (
	"purser/tenancy"
	"purser/views/component"
	"purser/views/layout"
)

// frame is what surrounds a page: who is there, where they are, and where they
// may go. It takes the flash, so a page builds it once.
func (v *visit) frame(title, current string) layout.Frame {
	f := layout.Frame{
		Title:   title,
		Person:  layout.Person{Name: v.user.Name, Email: v.user.Email},
		Current: current,
		Flash:   component.Message{Text: v.takeFlash()},
	}
	for _, org := range v.orgs {
		f.Orgs = append(f.Orgs, layout.Place{Name: org.Name, Href: pathOf([]string{"o", org.Slug})})
	}
	if v.org.ID.IsZero() {
		return f
	}
	f.Org = layout.Place{Name: v.org.Name, Href: v.orgPath()}
	for _, app := range v.apps {
		f.Apps = append(f.Apps, v.place(app))
	}
	if v.app.ID.IsZero() {
		f.Nav = layout.OrgNav(f.Org.Href, v.member.Permissions())
		return f
	}
	f.App = v.place(v.app)
	if v.ahead > 0 {
		f.Clock = layout.Clock{At: v.now(), Ahead: v.ahead}
	}
	f.Nav = layout.AppNav(f.App.Href, v.member.Permissions())
	return f
}

func (v *visit) place(app tenancy.Application) layout.Application {
	return layout.Application{Place: layout.Place{Name: app.Name, Href: v.orgPath("a", app.Slug)}, Live: app.Live}
}
