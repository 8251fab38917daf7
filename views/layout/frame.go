package layout

import "purser/views/component"

// Frame is what surrounds the pages of people who are signed in.
type Frame struct {
	Title   string // of the document, without the product's name
	Person  Person
	Org     Place       // the organization of this page; zero where there is none
	Orgs    []Place     // those that the person can switch to
	App     Application // of this page; zero in pages of an organization
	Apps    []Application
	Nav     []NavGroup // what the person may open: see AppNav and OrgNav
	OrgNav  []NavGroup // the same of the organization, in pages of an application
	Current string     // key of the item that this page belongs to
	Flash   component.Message
	Search  string // path of the search; empty where there is none
	Clock   Clock  // of the application

	Archived Archived
}

// Archived says that the page's application or organization is archived.
type Archived struct {
	At      int64  // 0 for an active one
	Noun    string // application or organization
	Restore string // where a form restores it; empty when the person may not
}

// Clock is a sandbox clock that was advanced; zero otherwise.
type Clock struct {
	At    int64
	Ahead int64 // of the server's, in milliseconds
}

// Person is who is signed in.
type Person struct {
	Name  string
	Email string
}

// Place is something with a name and an address.
type Place struct {
	Name string
	Href string
}

// Application is a place whose money is real or not.
type Application struct {
	Place
	Live bool
}

// inApp reports whether the page is one of an application.
func (f Frame) inApp() bool { return f.App.Href != "" }

func (f Frame) inTest() bool { return f.inApp() && !f.App.Live }

// page names the application and the organization in the title, and says that a
// test application's money is not real: a browser shows tabs of several side by side.
func (f Frame) page() Page {
	title := f.Title
	for _, place := range []string{f.App.Name, f.Org.Name} {
		if place != "" && place != f.Title {
			title += " · " + place
		}
	}
	if f.inTest() {
		title = "[Test] " + title
	}
	return Page{Title: title, Islands: true}
}
