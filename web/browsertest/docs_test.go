package browsertest

import (
	"net/http"
	"os"
	"slices"
	"testing"

	"purser/api/openapi"
	"purser/docs"
	"purser/fault"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/layout"
	docspage "purser/views/page/docs"
	supportpage "purser/views/page/support"
)

// docsPages are all guides and one of each other page of the documentation.
func docsPages(t *testing.T) map[string]view {
	t.Helper()
	guides, err := docs.Guides()
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	root, err := openapi.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := docs.ReadReference(root)
	if err != nil {
		t.Fatal(err)
	}
	frame := layout.DocsFrame{Title: "Documentation", Current: "home", Nav: []layout.NavGroup{{Title: "Guides", Items: []layout.NavItem{{Key: "home", Label: "Documentation", Href: "/docs"}}}}}
	conflict := docspage.Status{Status: http.StatusConflict, Text: "Conflict", Codes: []*fault.Fault{fault.New(fault.InsufficientBalance)}}
	views := map[string]view{
		"docs":           docspage.HomePage(docspage.Home{Frame: frame, Guides: guides}),
		"docs-reference": docspage.ReferencePage(docspage.Reference{Frame: frame, Reference: reference}),
		"docs-errors":    docspage.ErrorsPage(docspage.Errors{Frame: frame, Statuses: []docspage.Status{conflict}}),
		"docs-error":     docspage.ErrorPage(docspage.Error{Frame: frame, Fault: conflict.Codes[0], Status: conflict}),
		"quickstart":     supportpage.QuickstartPage(quickstart(t)),
	}
	index, err := docs.NewIndex(reference)
	if err != nil {
		t.Fatal(err)
	}
	changelog, err := docs.Changelog()
	if err != nil {
		t.Fatal(err)
	}
	searching := frame
	searching.Query, searching.Search = "refund", true
	views["docs-search"] = docspage.SearchPage(docspage.Search{Frame: searching, Query: "refund", Results: index.Search("refund")})
	views["docs-search-nothing"] = docspage.SearchPage(docspage.Search{Frame: searching, Query: "zzyzx"})
	views["docs-changelog"] = docspage.GuidePage(docspage.Guide{Frame: frame, Guide: changelog})
	examples, err := reference.Examples("https://purser.example")
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range docs.Languages[1:] {
		client, err := language.Client()
		if err != nil {
			t.Fatal(err)
		}
		views["docs-client-"+language.Key] = docspage.ClientPage(docspage.Client{Frame: frame, Language: language, Text: client})
	}
	for _, group := range reference.Groups {
		views["docs-reference-"+group.Slug] = docspage.GroupPage(docspage.Group{Frame: frame, Group: group, Language: docs.FindLanguage("go"), Variants: examples})
	}
	for _, guide := range guides {
		frame := frame
		for _, section := range guide.Sections {
			frame.Contents = append(frame.Contents, layout.NavItem{Label: section.Title, Href: "#" + section.ID})
		}
		views["docs-"+guide.Slug] = docspage.GuidePage(docspage.Guide{Frame: frame, Guide: guide, Language: docs.FindLanguage("python"), Next: &guides[0]})
	}
	return views
}

// quickstart is the page while it waits, with something that went wrong.
func quickstart(t *testing.T) supportpage.Quickstart {
	t.Helper()
	call := docs.Call{Address: "https://purser.example", Identity: "user-42", Credit: "tokens", Feature: "chat"}
	snippet, err := docs.FindLanguage("go").Snippet(call)
	if err != nil {
		t.Fatal(err)
	}
	return supportpage.Quickstart{
		Frame: layout.Frame{
			Title: "Quickstart", Current: "quickstart", Person: layout.Person{Name: "Ann Example", Email: "ann@example.com"},
			Org: layout.Place{Name: "Acme", Href: "/o/acme"}, App: layout.Application{Place: layout.Place{Name: "Chat", Href: "/o/acme/a/chat"}},
			Nav: layout.AppNav("/o/acme/a/chat", tenancy.AllPermissions()),
		},
		Path:     "/quickstart",
		Steps:    []component.Step{{Text: "Create an API key", Done: true}, {Text: "Send an event", Hint: "Returns the charge."}},
		Missing:  []component.CommandLine{{ID: "fund-wallet", Label: "Fund a wallet", Text: call.FundWallet()}},
		Language: docs.FindLanguage("go"),
		Snippet:  snippet,
		Call:     call,
		Failures: []supportpage.FailedCall{{At: moment, Method: "POST", Route: "/v1/events", Status: http.StatusNotFound, Code: fault.FeatureNotFound}},
	}
}

func TestDocsAreAccessible(t *testing.T) {
	t.Parallel()
	lookOver(t, docsPages(t), func(name string) []Screen {
		if slices.Contains([]string{"docs", "docs-usage", "docs-search", "docs-reference-plans", "quickstart"}, name) {
			return sampleScreens
		}
		return []Screen{Phone} // they are made of the same parts, so some on the other are enough
	})
}
