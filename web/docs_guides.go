package web

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"purser/docs"
	"purser/fault"
	"purser/views/layout"
	docspage "purser/views/page/docs"
)

func (s *Site) docsHome(req *request) (response, error) {
	frame, err := docsFrame(req, "Documentation", "home")
	if err != nil {
		return response{}, err
	}
	guides, err := docs.Guides()
	return show(docspage.HomePage(docspage.Home{Frame: frame, Guides: guides})), err
}

// docsGuide renders a guide; with the suffix .md it returns the source.
func (s *Site) docsGuide(req *request) (response, error) {
	name, err := req.param("guide")
	if err != nil {
		return response{}, err
	}
	slug, asText := strings.CutSuffix(name, ".md")
	guides, err := docs.Guides()
	if err != nil {
		return response{}, err
	}
	at := slices.IndexFunc(guides, func(g docs.Guide) bool { return g.Slug == slug })
	if at < 0 {
		return response{}, fault.New(fault.PathNotFound)
	}
	if asText {
		return text("text/markdown; charset=utf-8", guides[at].Markdown), nil
	}
	frame, err := docsFrame(req, guides[at].Title, slug)
	if err != nil {
		return response{}, err
	}
	frame.Contents = contents(guides[at])
	language, remember := req.exampleLanguage()
	guide := docspage.Guide{Frame: frame, Guide: guides[at], Language: language}
	if at > 0 {
		guide.Previous = &guides[at-1]
	}
	if at+1 < len(guides) {
		guide.Next = &guides[at+1]
	}
	return remember(show(docspage.GuidePage(guide))), nil
}

// docsFrame is the sidebar of the documentation, with a link back to the dashboard for
// signed-in users.
func docsFrame(req *request, title, current string) (layout.DocsFrame, error) {
	guides, err := docs.Guides()
	if err != nil {
		return layout.DocsFrame{}, err
	}
	nav := []layout.NavGroup{{}}
	for _, chapter := range docs.Chapters {
		nav = append(nav, layout.NavGroup{Title: chapter.Title})
	}
	for _, guide := range guides {
		group := &nav[1+guide.Chapter()]
		group.Items = append(group.Items, layout.NavItem{Key: guide.Slug, Label: guide.Title, Href: "/docs/" + guide.Slug})
	}
	lookup := layout.NavGroup{Title: "Reference", Items: []layout.NavItem{
		{Key: "reference", Label: "API reference", Href: "/docs/reference"},
		{Key: "notifications", Label: "Notification types", Href: "/docs/notifications"},
		{Key: "error-codes", Label: "Error codes", Href: "/docs/errors"},
		{Key: "changelog", Label: "Changelog", Href: "/docs/changelog"},
	}}
	door := layout.NavItem{Key: "login", Label: "Sign in", Href: "/login"}
	if req.isSignedIn() {
		door = layout.NavItem{Key: "organizations", Label: "Your organizations", Href: "/o"}
	}
	nav[0].Items = []layout.NavItem{{Key: "home", Label: "Documentation", Href: "/docs"}, door}
	return layout.DocsFrame{Title: title, Current: current, Nav: append(nav, lookup)}, nil
}

// contents are the sections of a guide.
func contents(guide docs.Guide) []layout.NavItem {
	var items []layout.NavItem
	for _, section := range guide.Sections {
		items = append(items, layout.NavItem{Label: section.Title, Href: "#" + section.ID})
	}
	return items
}

// docsClient shows the client of a language, or by its file name returns it as text.
func (s *Site) docsClient(req *request) (response, error) {
	name, err := req.param("client")
	if err != nil {
		return response{}, err
	}
	for _, language := range docs.Languages {
		file := path.Base(language.ClientFile)
		if language.ClientFile == "" || name != language.Key && name != file {
			continue
		}
		source, err := language.Client()
		if err != nil {
			return response{}, err
		}
		if name == file {
			return text("text/plain; charset=utf-8", source), nil
		}
		frame, err := docsFrame(req, language.Name+" client", "clients")
		if err != nil {
			return response{}, err
		}
		return show(docspage.ClientPage(docspage.Client{Frame: frame, Language: language, Text: strings.TrimSuffix(source, "\n")})), nil
	}
	return response{}, fault.New(fault.PathNotFound)
}

// docsChangelog shows CHANGELOG.md.
func (s *Site) docsChangelog(req *request) (response, error) {
	changelog, err := docs.Changelog()
	if err != nil {
		return response{}, err
	}
	frame, err := docsFrame(req, changelog.Title, changelog.Slug)
	if err != nil {
		return response{}, err
	}
	frame.Contents = contents(changelog)
	return show(docspage.GuidePage(docspage.Guide{Frame: frame, Guide: changelog})), nil
}

// docsSearch shows what a query finds. The same page serves the plain form and htmx,
// which selects the results.
func (s *Site) docsSearch(req *request) (response, error) {
	index, err := s.docsIndex()
	if err != nil {
		return response{}, err
	}
	frame, err := docsFrame(req, "Search", "search")
	if err != nil {
		return response{}, err
	}
	query := shorten(req.query("q"), docs.MaxQuery)
	frame.Query, frame.Search = query, true
	return show(docspage.SearchPage(docspage.Search{Frame: frame, Query: query, Results: index.Search(query)})), nil
}

// llms lists the pages for language models, as llmstxt.org proposes.
func (s *Site) llms(*request) (response, error) {
	guides, err := docs.Guides()
	if err != nil {
		return response{}, err
	}
	var list strings.Builder
	fmt.Fprintf(&list, "# Purser\n\n> Prepaid usage credits, metered and billed: check whether a customer can pay for usage, charge it once, explain every balance.\n\n")
	fmt.Fprintf(&list, "The API of this server is at %s/v1. Send `Authorization: Bearer <key>` with a secret key.\n\n## Guides\n\n", s.server.Address)
	for _, guide := range guides {
		fmt.Fprintf(&list, "- [%s](%s/docs/%s.md): %s\n", guide.Title, s.server.Address, guide.Slug, guide.Summary)
	}
	fmt.Fprintf(&list, "\n## Reference\n\n- [OpenAPI document](%[1]s/v1/openapi.json): every operation, with schemas and examples\n"+
		"- [All guides in one file](%[1]s/llms-full.txt)\n", s.server.Address)
	return text("text/plain; charset=utf-8", list.String()), nil
}

// llmsFull concatenates all guides and the error codes.
func (s *Site) llmsFull(*request) (response, error) {
	guides, err := docs.Guides()
	if err != nil {
		return response{}, err
	}
	var all strings.Builder
	for _, guide := range guides {
		all.WriteString(strings.TrimSpace(guide.Markdown) + "\n\n")
	}
	all.WriteString("# Error codes\n\n")
	for _, code := range fault.Codes() {
		meaning := code.Meaning()
		fmt.Fprintf(&all, "- `%s` (%d): %s %s\n", code, fault.New(code).Kind().Status(), meaning.When, meaning.Do)
	}
	return text("text/plain; charset=utf-8", all.String()), nil
}
