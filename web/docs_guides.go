package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

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
	frame.Nav = append(frame.Nav, onThisPage(guides[at]))
	guide := docspage.Guide{Frame: frame, Guide: guides[at]}
	if at > 0 {
		guide.Previous = &guides[at-1]
	}
	if at+1 < len(guides) {
		guide.Next = &guides[at+1]
	}
	return show(docspage.GuidePage(guide)), nil
}

// docsFrame is the sidebar of the documentation, with a link back to the dashboard for
// signed-in users.
func docsFrame(req *request, title, current string) (layout.DocsFrame, error) {
	guides, err := docs.Guides()
	if err != nil {
		return layout.DocsFrame{}, err
	}
	reading := layout.NavGroup{Title: "Guides"}
	for _, guide := range guides {
		reading.Items = append(reading.Items, layout.NavItem{Key: guide.Slug, Label: guide.Title, Href: "/docs/" + guide.Slug})
	}
	lookup := layout.NavGroup{Title: "Reference", Items: []layout.NavItem{
		{Key: "reference", Label: "API reference", Href: "/docs/reference"},
		{Key: "error-codes", Label: "Error codes", Href: "/docs/errors"},
	}}
	door := layout.NavItem{Key: "login", Label: "Sign in", Href: "/login"}
	if req.isSignedIn() {
		door = layout.NavItem{Key: "organizations", Label: "Your organizations", Href: "/o"}
	}
	start := layout.NavGroup{Items: []layout.NavItem{{Key: "home", Label: "Documentation", Href: "/docs"}, door}}
	return layout.DocsFrame{Title: title, Current: current, Nav: []layout.NavGroup{start, reading, lookup}}, nil
}

func onThisPage(guide docs.Guide) layout.NavGroup {
	group := layout.NavGroup{Title: "On this page"}
	for _, section := range guide.Sections {
		group.Items = append(group.Items, layout.NavItem{Key: "#" + section.ID, Label: section.Title, Href: "#" + section.ID})
	}
	return group
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

// text responds with plain text.
func text(contentType, body string) response {
	return response{status: http.StatusOK, body: []byte(body)}.with(echo.HeaderContentType, contentType)
}
