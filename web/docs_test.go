package web

import (
	"html"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"purser/api/openapi"
	"purser/docs"
	"purser/fault"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/site"
)

// newDocsHarness is a site that knows the document of the API.
func newDocsHarness(t *testing.T) *harness {
	t.Helper()
	return newHarnessOn(t, Options{Options: site.Options{Store: storetest.Open(t), BaseURL: "https://purser.example"}, Document: apiDocument(t)})
}

func apiDocument(t *testing.T) *openapi.Object {
	t.Helper()
	text, err := os.ReadFile("../api/openapi.yaml")
	noError(t, err)
	document, err := openapi.Parse(text)
	noError(t, err)
	return document
}

func TestDocs(t *testing.T) {
	t.Parallel()
	r := newDocsHarness(t)
	guest := r.browser()

	t.Run("shows every guide to everybody", func(t *testing.T) {
		guides, err := docs.Guides()
		noError(t, err)
		for _, guide := range guides {
			page := guest.get(t, "/docs/"+guide.Slug)
			if page.status != http.StatusOK || !strings.Contains(page.body, html.EscapeString(guide.Title)+"</bdi></h1>") {
				t.Errorf("%s: %d", guide.Slug, page.status)
			}
		}
	})

	t.Run("gives a guide as it is written", func(t *testing.T) {
		page := guest.get(t, "/docs/start.md")
		want, err := os.ReadFile("../docs/start.md")
		noError(t, err)
		if page.body != string(want) || page.header.Get("Content-Type") != "text/markdown; charset=utf-8" {
			t.Errorf("%s:\n%.200s", page.header.Get("Content-Type"), page.body)
		}
	})

	t.Run("has no page for what is not there", func(t *testing.T) {
		for _, path := range []string{"/docs/missing", "/docs/missing.md", "/docs/errors/no_such_code", "/docs/reference/missing", "/docs/..%2Fguides.go", "/docs/doc.go"} {
			if page := guest.get(t, path); page.status != http.StatusNotFound {
				t.Errorf("%s answers %d", path, page.status)
			}
		}
	})

	t.Run("searches as a plain form, and shows the query as text", func(t *testing.T) {
		page := guest.get(t, "/docs/search?q=retry+same+id")
		if page.status != http.StatusOK || !strings.Contains(page.body, `href="/docs/usage#retry-with-the-same-id"`) || !strings.Contains(page.body, "<mark>") {
			t.Errorf("%d: %s", page.status, page.body)
		}
		page = guest.get(t, "/docs/search?q="+url.QueryEscape(`"><script>`+strings.Repeat("x", 10_000)))
		if page.status != http.StatusOK || strings.Contains(page.body, "><script>x") || len(page.body) > 40_000 {
			t.Errorf("%d, %d bytes", page.status, len(page.body))
		}
		if page := guest.get(t, "/docs/search"); page.status != http.StatusOK || !strings.Contains(page.body, `name="q"`) {
			t.Errorf("without a query: %d", page.status)
		}
	})

	t.Run("shows the changelog with a link to each version", func(t *testing.T) {
		page := guest.get(t, "/docs/changelog")
		if page.status != http.StatusOK || !strings.Contains(page.body, `href="#unreleased"`) || !strings.Contains(page.body, "0.1.0") {
			t.Errorf("%d: %.500s", page.status, page.body)
		}
	})

	t.Run("shows examples in the language that was chosen, and keeps it", func(t *testing.T) {
		reader := r.browser()
		if page := reader.get(t, "/docs/usage"); !strings.Contains(shownText(page.body), `curl "$PURSER_URL/v1/check"`) {
			t.Error("the first language is not curl")
		}
		for _, path := range []string{"/docs/usage?language=python", "/docs/usage", "/docs/usage?language=cobol'", "/docs/reference/usage"} {
			page := reader.get(t, path)
			if page.status != http.StatusOK {
				t.Errorf("%s answers %d", path, page.status)
			}
			isPython := strings.Contains(shownText(page.body), `check = purser.post("/v1/check"`)
			if want := !strings.Contains(path, "cobol"); isPython != want {
				t.Errorf("%s is in Python: %t", path, isPython)
			}
		}
	})

	t.Run("gives each client as a page and as a file", func(t *testing.T) {
		for _, language := range docs.Languages[1:] {
			client, err := language.Client()
			noError(t, err)
			file := path.Base(language.ClientFile)
			if got := guest.get(t, "/docs/clients/"+file); got.body != client || got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("%s: %d", file, got.status)
			}
			if page := guest.get(t, "/docs/clients/"+language.Key); page.status != http.StatusOK || !strings.Contains(shownText(page.body), strings.TrimSpace(client)) {
				t.Errorf("%s: %d", language.Key, page.status)
			}
		}
		for _, name := range []string{"curl", ".", "purser.rb", "..%2Fstart.md"} {
			if page := guest.get(t, "/docs/clients/"+name); page.status != http.StatusNotFound {
				t.Errorf("%s answers %d", name, page.status)
			}
		}
	})

	t.Run("leads back who is signed in, and to the sign-in who is not", func(t *testing.T) {
		member := r.join(t, tenancy.Developer)
		if page := member.get(t, "/docs"); !strings.Contains(page.body, `href="/o"`) || strings.Contains(page.body, `href="/login"`) {
			t.Error("a signed-in visitor finds no way back")
		}
		if page := guest.get(t, "/docs"); !strings.Contains(page.body, `href="/login"`) {
			t.Error("a guest finds no way in")
		}
	})

	t.Run("is cached for everyone without cookies, and only by the browser with them", func(t *testing.T) {
		for _, path := range []string{"/docs", "/docs/start", "/docs/start.md", "/docs/reference/plans", "/llms.txt"} {
			page := guest.get(t, path)
			if got := page.header.Get("Cache-Control"); got != "public, max-age=300" || page.header.Get("Vary") != "Cookie" || page.header.Get("Set-Cookie") != "" {
				t.Errorf("%s: %v", path, page.header)
			}
			again := r.browser()
			again.header = http.Header{"If-None-Match": {page.header.Get("ETag")}}
			if got := again.get(t, path); got.status != http.StatusNotModified || got.body != "" {
				t.Errorf("%s has not changed and answers %d", path, got.status)
			}
		}
		member := r.join(t, tenancy.Developer)
		page := member.get(t, "/docs")
		if got := page.header.Get("Cache-Control"); got != "private, no-cache" || page.header.Get("ETag") == guest.get(t, "/docs").header.Get("ETag") {
			t.Errorf("a signed-in reader's page: %v", page.header)
		}
		if page := r.browser().get(t, "/docs/start?language=go"); page.header.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("a page that sets a cookie: %v", page.header)
		}
		if page := guest.get(t, "/docs/nothing"); page.status != http.StatusNotFound || page.header.Get("Cache-Control") != "no-store" {
			t.Errorf("a page that is not there: %d %v", page.status, page.header)
		}
	})

	t.Run("explains every code", func(t *testing.T) {
		for _, code := range fault.Codes() {
			page := guest.get(t, "/docs/errors/"+string(code))
			body := html.UnescapeString(page.body)
			for _, want := range []string{string(code), fault.New(code).Message[:20], code.Meaning().When, code.Meaning().Do} {
				if page.status != http.StatusOK || !strings.Contains(body, want) {
					t.Errorf("%s answers %d without %q", code, page.status, want)
				}
			}
		}
	})
}

var span = regexp.MustCompile(`</?span[^>]*>`)

// shownText is a page's source without the colours of code.
func shownText(body string) string {
	return html.UnescapeString(span.ReplaceAllString(body, ""))
}

func TestDocsReference(t *testing.T) {
	t.Parallel()
	r := newDocsHarness(t)
	guest := r.browser()
	reference, err := docs.ReadReference(apiDocument(t))
	noError(t, err)

	t.Run("lists each operation, and shows it with a command for this server", func(t *testing.T) {
		list := guest.get(t, "/docs/reference")
		for _, group := range reference.Groups {
			page := guest.get(t, "/docs/reference/"+group.Slug)
			body := shownText(page.body)
			for _, op := range group.Operations {
				if !strings.Contains(list.body, `href="/docs/reference/`+group.Slug+"#"+op.ID+`"`) {
					t.Errorf("%s is not listed", op.ID)
				}
				for _, want := range []string{`id="` + op.ID + `"`, "<strong>" + op.Method + "</strong> " + op.Path, op.Curl("https://purser.example")} {
					if !strings.Contains(body, want) {
						t.Errorf("%s: there is no %s", op.ID, want)
					}
				}
			}
		}
	})

	t.Run("shows bounds, defaults, nested fields and the permission", func(t *testing.T) {
		for path, wants := range map[string][]string{
			"usage":    {"1 to 200 characters", "default 1", "events:ingest"},
			"features": {"one of fixed, callback"},
			"plans":    {"featureLimits[].overage"},
		} {
			body := html.UnescapeString(guest.get(t, "/docs/reference/"+path).body)
			for _, want := range wants {
				if !strings.Contains(body, want) {
					t.Errorf("%s: there is no %q", path, want)
				}
			}
		}
	})
}

func TestLLMs(t *testing.T) {
	t.Parallel()
	guest := newDocsHarness(t).browser()
	list := guest.get(t, "/llms.txt")
	if list.status != http.StatusOK || !strings.HasPrefix(list.body, "# Purser\n\n> ") {
		t.Fatalf("%d: %.100s", list.status, list.body)
	}
	links := regexp.MustCompile(`\]\(https://purser\.example(/[^)]+)\)`).FindAllStringSubmatch(list.body, -1)
	if len(links) < 20 {
		t.Errorf("%d pages are listed", len(links))
	}
	for _, found := range links {
		if found[1] == "/v1/openapi.json" { // the API's own
			continue
		}
		if page := guest.get(t, found[1]); page.status != http.StatusOK {
			t.Errorf("%s answers %d", found[1], page.status)
		}
	}
	whole := guest.get(t, "/llms-full.txt")
	for _, want := range []string{"# Getting started", "# Performance", "`insufficient_balance` (409)"} {
		if !strings.Contains(whole.body, want) {
			t.Errorf("there is no %s", want)
		}
	}
}

// TestDocsLinks follows every link from /docs and below it, fragments included.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	r := newDocsHarness(t)
	guest := r.browser()
	link := regexp.MustCompile(`\s(?:href|src)="([^"]+)"`)
	anchor := regexp.MustCompile(`\sid="([^"]+)"`)
	anchors := map[string]map[string]bool{} // of each page
	type reference struct{ from, path, fragment string }
	var fragments []reference
	queue := []string{"/docs"}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if anchors[path] != nil {
			continue
		}
		anchors[path] = map[string]bool{}
		page := guest.get(t, path)
		if page.status != http.StatusOK {
			t.Errorf("%s answers %d", path, page.status)
		}
		if !strings.HasPrefix(path, "/docs") {
			continue
		}
		for _, found := range anchor.FindAllStringSubmatch(page.body, -1) {
			if anchors[path][found[1]] {
				t.Errorf("%s has the id %s twice", path, found[1])
			}
			anchors[path][found[1]] = true
		}
		for _, found := range link.FindAllStringSubmatch(page.body, -1) {
			target, fragment, _ := strings.Cut(html.UnescapeString(found[1]), "#")
			switch {
			case strings.HasPrefix(target, "https://"), target == "/v1/openapi.json", target == "/login", target == "/":
				continue
			case target == "":
				target = path
			case strings.HasPrefix(target, "?"): // the page in another language
				target = strings.SplitN(path, "?", 2)[0] + target
			}
			queue = append(queue, target)
			if fragment != "" {
				fragments = append(fragments, reference{path, target, fragment})
			}
		}
	}
	for _, f := range fragments {
		if !anchors[f.path][f.fragment] {
			t.Errorf("%s links to %s#%s, which is not there", f.from, f.path, f.fragment)
		}
	}
	if len(anchors) < 60 {
		t.Errorf("only %d pages were found", len(anchors))
	}
}
