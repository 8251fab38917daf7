package docs

import (
	"html"
	"regexp"
	"strings"
	"testing"
)

var markup = regexp.MustCompile(`</?span[^>]*>`)

func TestHighlight(t *testing.T) {
	t.Parallel()
	for _, sample := range []struct{ language, text, want string }{
		{"sh", `curl "$PURSER_URL/v1/check" # look`, `<span data-token="comment"># look</span>`},
		{"sh", `curl "$PURSER_URL/v1/check"`, `<span data-token="name">$PURSER_URL</span>`},
		{"json", `{"allowed": false, "n": 12}`, `<span data-token="name">&#34;allowed&#34;</span>: <span data-token="number">false</span>`},
		{"go", "return nil // done", `<span data-token="keyword">return</span> <span data-token="number">nil</span>`},
		{"go", "x := `raw`", "<span data-token=\"string\">`raw`</span>"},
		{"python", `print("a")`, `<span data-token="function">print</span>(<span data-token="string">&#34;a&#34;</span>)`},
		{"typescript", `const a = "b";`, `<span data-token="keyword">const</span>`},
	} {
		if got := Highlight(sample.language, sample.text); !strings.Contains(got, sample.want) {
			t.Errorf("%s %s:\n%s", sample.language, sample.text, got)
		}
	}

	t.Run("leaves the text as it is", func(t *testing.T) {
		for language := range lexerNames {
			for _, text := range []string{"", "<script>alert('x')</script>\n", "a\r\nb\n", "\t\"open\n", "'{\"é\": \"</span>\"}"} {
				shown := Highlight(language, text)
				if got := html.UnescapeString(markup.ReplaceAllString(shown, "")); got != html.UnescapeString(html.EscapeString(text)) {
					t.Errorf("%s: %q becomes %q", language, text, got)
				}
				if strings.Contains(shown, "<script") {
					t.Errorf("%s: markup passes: %s", language, shown)
				}
			}
		}
		if got := Highlight("cobol", "<b>"); got != "&lt;b&gt;" {
			t.Error(got)
		}
	})
}
