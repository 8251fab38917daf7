package component

import (
	"context"
	"strings"
	"testing"

	"github.com/a-h/templ"
)

func rendered(t *testing.T, view templ.Component) string {
	t.Helper()
	var b strings.Builder
	if err := view.Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFieldSaysWhatBelongsToIt(t *testing.T) {
	t.Parallel()
	html := rendered(t, Field(Input{Label: Label{Name: "key", Text: "Key", Hint: "a hint", Error: "taken"}, Value: `"><b>`}))
	for _, want := range []string{
		`for="field-key"`, `id="field-key"`, `name="key"`, `required`, `aria-invalid="true"`,
		`aria-describedby="field-key-hint field-key-error"`, `id="field-key-hint"`, `id="field-key-error"`,
		`value="&#34;&gt;&lt;b&gt;"`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s in %s", want, html)
		}
	}
}

func TestLockedFieldIsDisabledAndSaysWhy(t *testing.T) {
	t.Parallel()
	html := rendered(t, Select(Selection{Label: Label{Name: "credit", Text: "Credit", Locked: "It is in use."}}))
	if !strings.Contains(html, " disabled") || strings.Contains(html, " required") || !strings.Contains(html, `aria-describedby="field-credit-locked"`) {
		t.Error(html)
	}
}

func TestHostileIdentityIsText(t *testing.T) {
	t.Parallel()
	html := rendered(t, WholeIdentity("<script>alert(1)</script>\u202e"))
	if strings.Contains(html, "<script") || !strings.Contains(html, "<bdi") || !strings.Contains(html, `\u{202e}`) {
		t.Error(html)
	}
}

func TestNothingIsShownForNothing(t *testing.T) {
	t.Parallel()
	for name, view := range map[string]templ.Component{
		"a pager of one page":         Pager(Pages{}),
		"a flash without a text":      Flash(Message{}),
		"a summary without a problem": Problems(Refusal{}),
	} {
		if html := rendered(t, view); html != "" {
			t.Errorf("%s: %s", name, html)
		}
	}
}

func TestIconThatDoesNotExistIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	rendered(t, Icon("missing"))
}
