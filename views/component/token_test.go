package component

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEveryPostingFormHasAToken holds that the token is the first field of every form
// that posts: the server refuses a form of a signed-in user without it.
func TestEveryPostingFormHasAToken(t *testing.T) {
	t.Parallel()
	posting := regexp.MustCompile(`(?is)method\s*=\s*["{]\s*"?post\b`)
	withToken := regexp.MustCompile(`<form\b[^\n]*method="post"[^\n]*>\n\s*@(?:component\.)?FormToken\(\)\n`)
	forms := 0
	tree := os.DirFS("..")
	err := fs.WalkDir(tree, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".templ") {
			return err
		}
		content, err := fs.ReadFile(tree, path)
		found := len(posting.FindAll(content, -1))
		if held := len(withToken.FindAll(content, -1)); held != found {
			t.Errorf("views/%s: %d of %d forms that post begin with @component.FormToken()", path, held, found)
		}
		forms += found
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if forms == 0 {
		t.Error("found no form that posts")
	}
}

func TestFormTokenIsEscapedAndAbsentWithoutASession(t *testing.T) {
	t.Parallel()
	render := func(token string) string {
		var out strings.Builder
		if err := FormToken().Render(WithFormToken(t.Context(), token), &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := render(""); got != "" {
		t.Errorf("without a session: %q", got)
	}
	if got, want := render(`a"<b`), `<input type="hidden" name="form_token" value="a&#34;&lt;b">`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
