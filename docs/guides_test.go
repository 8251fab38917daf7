package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func readAll(t *testing.T) []Guide {
	t.Helper()
	guides, err := Guides()
	if err != nil {
		t.Fatal(err)
	}
	return guides
}

// whole is the guide's HTML, with its code left out.
func (g Guide) whole() string {
	var html strings.Builder
	for _, block := range g.Body {
		html.WriteString(block.HTML)
	}
	return html.String()
}

func TestGuides(t *testing.T) {
	t.Parallel()
	guides := readAll(t)
	var slugs []string
	for _, guide := range guides {
		slugs = append(slugs, guide.Slug)
	}

	t.Run("come in reading order", func(t *testing.T) {
		want := slices.DeleteFunc(slices.Clone(readingOrder), func(slug string) bool { return !slices.Contains(slugs, slug) })
		if len(want) < 8 || !slices.Equal(slugs[:len(want)], want) {
			t.Errorf("got %v, want first %v", slugs, want)
		}
	})

	t.Run("are all that lie in the folder", func(t *testing.T) {
		paths, err := filepath.Glob("*.md")
		if err != nil || len(paths) != len(guides) {
			t.Errorf("%d files, %d guides, %v", len(paths), len(guides), err)
		}
	})

	t.Run("have a title, a summary of a sentence, and sections with their own anchors", func(t *testing.T) {
		for _, guide := range guides {
			if guide.Title == "" || !strings.Contains(guide.Summary, ".") && !strings.Contains(guide.Summary, ":") {
				t.Errorf("%s: title %q, summary %q", guide.Slug, guide.Title, guide.Summary)
			}
			var seen []string
			for _, section := range guide.Sections {
				if section.ID == "" || slices.Contains(seen, section.ID) {
					t.Errorf("%s: the section %q has the anchor %q", guide.Slug, section.Title, section.ID)
				}
				seen = append(seen, section.ID)
				if !strings.Contains(guide.whole(), `<h2 id="`+section.ID+`"><a href="#`+section.ID+`"`) {
					t.Errorf("%s: the heading %q does not link to itself", guide.Slug, section.Title)
				}
			}
		}
	})

	t.Run("say nothing of the machine that they were written on", func(t *testing.T) {
		for _, guide := range guides {
			if found := regexp.MustCompile(`/(home|root|work|tmp)/`).FindString(guide.Markdown); found != "" {
				t.Errorf("%s: %s", guide.Slug, found)
			}
		}
	})
}

// A link has to lead somewhere twice: between the files, for those who read the
// repository, and between the pages.
func TestLinks(t *testing.T) {
	t.Parallel()
	links := regexp.MustCompile(`\]\(([^)]+)\)`)
	guides := readAll(t)
	for _, guide := range guides {
		for _, found := range links.FindAllStringSubmatch(guide.Markdown, -1) {
			path, fragment, _ := strings.Cut(found[1], "#")
			if strings.HasPrefix(path, "https://") {
				continue
			}
			target := guide
			if path != "" {
				if _, err := os.Stat(path); err != nil {
					t.Errorf("%s.md links to %s: %v", guide.Slug, found[1], err)
					continue
				}
				at := slices.IndexFunc(guides, func(g Guide) bool { return g.Slug+".md" == path })
				if at < 0 { // a page of its own, without our sections
					continue
				}
				target = guides[at]
			}
			if fragment != "" && !slices.ContainsFunc(target.Sections, func(s Section) bool { return s.ID == fragment }) {
				t.Errorf("%s.md links to %s, and there is no such section", guide.Slug, found[1])
			}
		}
	}
}

func TestParseGuide(t *testing.T) {
	t.Parallel()
	parse := func(t *testing.T, source string) (Guide, error) {
		t.Helper()
		guides, err := readGuides(fstest.MapFS{"a.md": {Data: []byte(source)}, "b.md": {Data: []byte("# B\n\nB.\n")}})
		if err != nil {
			return Guide{}, err
		}
		return guides[0], nil
	}
	const head = "# Title\n\nA *first* `word`\nor two.\n\n"

	t.Run("takes title and summary as text", func(t *testing.T) {
		guide, err := parse(t, head)
		if err != nil || guide.Title != "Title" || guide.Summary != "A first word or two." {
			t.Errorf("%q, %q, %v", guide.Title, guide.Summary, err)
		}
	})

	t.Run("gives code apart, as it is written", func(t *testing.T) {
		guide, err := parse(t, head+"```sh\ncurl '<x>'\n\necho\n```\n\nText.\n\n    indented\n")
		if err != nil || len(guide.Body) != 4 {
			t.Fatalf("%d blocks, %v", len(guide.Body), err)
		}
		if code := guide.Body[1].Code; code.Language != "sh" || code.Text != "curl '<x>'\n\necho" {
			t.Errorf("%+v", code)
		}
		if code := guide.Body[3].Code; code.Language != "" || code.Text != "indented" {
			t.Errorf("%+v", code)
		}
	})

	t.Run("leads between pages where the text leads between files", func(t *testing.T) {
		guide, err := parse(t, head+"[b](b.md#x) [r](../api/openapi.yaml) [e](../fault/catalogue.go) [s](#here) [w](https://example.com)\n")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"/docs/b#x"`, `"/docs/reference"`, `"/docs/errors"`, `"#here"`, `"https://example.com"`} {
			if !strings.Contains(guide.whole(), "href="+want) {
				t.Errorf("no link to %s in %s", want, guide.whole())
			}
		}
	})

	t.Run("links an error code to its page, once", func(t *testing.T) {
		guide, err := parse(t, head+"`insufficient_balance` and `no_such_code` and [`rate_limited`](b.md)\n")
		if err != nil {
			t.Fatal(err)
		}
		html := guide.whole()
		if !strings.Contains(html, `<a href="/docs/errors/insufficient_balance"><code>insufficient_balance</code></a>`) || strings.Count(html, "/docs/errors/") != 1 {
			t.Error(html)
		}
	})

	t.Run("names the column of each cell", func(t *testing.T) {
		guide, err := parse(t, head+"| Name | A `b` |\n|---|---|\n| x | y |\n")
		if err != nil || !strings.Contains(guide.whole(), `<td data-label="A b">y</td>`) || !strings.Contains(guide.whole(), `<table class="table">`) {
			t.Errorf("%v: %s", err, guide.whole())
		}
	})

	t.Run("leaves comments out", func(t *testing.T) {
		guide, err := parse(t, head+"<!-- not for readers -->\n\nText.\n")
		if err != nil || strings.Contains(guide.whole(), "not for readers") || strings.Contains(guide.whole(), "omitted") {
			t.Errorf("%v: %s", err, guide.whole())
		}
	})

	t.Run("refuses the name of another page", func(t *testing.T) {
		if _, err := readGuides(fstest.MapFS{"errors.md": {Data: []byte(head)}}); err == nil {
			t.Error("it was taken")
		}
	})

	for name, source := range map[string]string{
		"HTML in a block":          head + "<div onclick=x>no</div>\n",
		"HTML in a line":           head + "a <b>b</b>\n",
		"a script":                 head + "<script>alert(1)</script>\n",
		"an image":                 head + "![x](https://example.com/x.png)\n",
		"a link to a missing file": head + "[x](missing.md)\n",
		"a link outside the site":  head + "[x](../README.md)\n",
		"a link that is a script":  head + "[x](javascript:alert(1))\n",
		"a plain http address":     head + "[x](http://example.com)\n",
		"no title":                 "Only text.\n",
		"no text":                  "# Only a title\n",
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if guide, err := parse(t, source); err == nil {
				t.Errorf("it was taken: %s", guide.whole())
			}
		})
	}
}
