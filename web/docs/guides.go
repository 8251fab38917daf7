package docs

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"purser/docs"
	"purser/fault"
	"purser/views/layout"
	docspage "purser/views/page/docs"
	"purser/web/site"
)

func (s *Pages) docsHome(req *site.Request) (site.Response, error) {
	frame, err := docsFrame(req, "Documentation", "home")
	if err != nil {
		return site.Response{}, err
	}
	guides, err := docs.Guides()
	return site.Show(docspage.HomePage(docspage.Home{Frame: frame, Guides: guides})), err
}

// docsGuide renders a guide; with the suffix .md it returns the source.
func (s *Pages) docsGuide(req *site.Request, name string) (site.Response, error) {
	slug, asText := strings.CutSuffix(name, ".md")
	guides, err := docs.Guides()
	if err != nil {
		return site.Response{}, err
	}
	at := slices.IndexFunc(guides, func(g docs.Guide) bool { return g.Slug == slug })
	if at < 0 {
		return site.Response{}, fault.New(fault.PathNotFound)
	}
	if asText {
		return site.Text("text/markdown; charset=utf-8", guides[at].Markdown), nil
	}
	frame, err := docsFrame(req, guides[at].Title, slug)
	if err != nil {
		return site.Response{}, err
	}
	frame.Contents = contents(guides[at])
	language, remember := req.ExampleLanguage()
	guide := docspage.Guide{Frame: frame, Guide: guides[at], Language: language}
	if at > 0 {
		guide.Previous = &guides[at-1]
	}
	if at+1 < len(guides) {
		guide.Next = &guides[at+1]
	}
	return remember(site.Show(docspage.GuidePage(guide))), nil
}

// docsFrame is the sidebar of the documentation, with a link back to the dashboard for
// signed-in users.
func docsFrame(req *site.Request, title, current string) (layout.DocsFrame, error) {
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
	accountLink := layout.NavItem{Key: "login", Label: "Sign in", Href: "/login"}
	if req.IsSignedIn() {
		accountLink = layout.NavItem{Key: "organizations", Label: "Your organizations", Href: "/o"}
	}
	nav[0].Items = []layout.NavItem{{Key: "home", Label: "Documentation", Href: "/docs"}, accountLink}
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
func (s *Pages) docsClient(req *site.Request, name string) (site.Response, error) {
	for _, language := range docs.Languages {
		file := path.Base(language.ClientFile)
		if language.ClientFile == "" || name != language.Key && name != file {
			continue
		}
		source, err := language.Client()
		if err != nil {
			return site.Response{}, err
		}
		if name == file {
			return site.Text("text/plain; charset=utf-8", source), nil
		}
		frame, err := docsFrame(req, language.Name+" client", "clients")
		if err != nil {
			return site.Response{}, err
		}
		return site.Show(docspage.ClientPage(docspage.Client{Frame: frame, Language: language, Text: strings.TrimSuffix(source, "\n")})), nil
	}
	return site.Response{}, fault.New(fault.PathNotFound)
}

// docsChangelog shows CHANGELOG.md.
func (s *Pages) docsChangelog(req *site.Request) (site.Response, error) {
	changelog, err := docs.Changelog()
	if err != nil {
		return site.Response{}, err
	}
	frame, err := docsFrame(req, changelog.Title, changelog.Slug)
	if err != nil {
		return site.Response{}, err
	}
	frame.Contents = contents(changelog)
	return site.Show(docspage.GuidePage(docspage.Guide{Frame: frame, Guide: changelog})), nil
}

// docsSearch shows what a query finds. The same page serves the plain form and htmx,
// which selects the results.
func (s *Pages) docsSearch(req *site.Request) (site.Response, error) {
	index, err := s.docsIndex()
	if err != nil {
		return site.Response{}, err
	}
	frame, err := docsFrame(req, "Search", "search")
	if err != nil {
		return site.Response{}, err
	}
	query := site.Shorten(req.Query("q"), docs.MaxQuery)
	frame.Query, frame.Search = query, true
	return site.Show(docspage.SearchPage(docspage.Search{Frame: frame, Query: query, Results: index.Search(query)})), nil
}

// llms lists the pages for language models, as llmstxt.org proposes.
func (s *Pages) llms(*site.Request) (site.Response, error) {
	guides, err := docs.Guides()
	if err != nil {
		return site.Response{}, err
	}
	var list strings.Builder
	fmt.Fprintf(&list, "# Purser\n\n> Prepaid usage credits, metered and billed: check whether a customer can pay for usage, charge it once, explain every balance.\n\n")
	fmt.Fprintf(&list, "The API of this server is at %s/v1. Send `Authorization: Bearer <key>` with a secret key.\n\n## Guides\n\n", s.Server.Address)
	for _, guide := range guides {
		fmt.Fprintf(&list, "- [%s](%s/docs/%s.md): %s\n", guide.Title, s.Server.Address, guide.Slug, guide.Summary)
	}
	fmt.Fprintf(&list, "\n## Reference\n\n- [OpenAPI document](%[1]s/v1/openapi.json): every operation, with schemas and examples\n"+
		"- [All guides in one file](%[1]s/llms-full.txt)\n", s.Server.Address)
	return site.Text("text/plain; charset=utf-8", list.String()), nil
}

// llmsFull concatenates all guides and the error codes.
func (s *Pages) llmsFull(*site.Request) (site.Response, error) {
	guides, err := docs.Guides()
	if err != nil {
		return site.Response{}, err
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
	return site.Text("text/plain; charset=utf-8", all.String()), nil
}
