package mail

import (
	"context"
	"strings"
	"unicode"
)

// Letter is what a mail says. Paragraphs are plain text.
type Letter struct {
	Subject    string
	Paragraphs []string
	Facts      []Fact
	// Button leads to Link. A letter without a link has neither.
	Button, Link string
	Closing      []string // below the button
}

// Fact is a labelled value, such as the address of a sign-in.
type Fact struct{ Label, Value string }

// maxSubject is how many characters of a subject are sent.
const maxSubject = 150

// SubjectLine is the subject as one line. Text that reads as an encoded word (RFC 2047)
// is broken up: mail programs would decode it, line breaks included.
func (l Letter) SubjectLine() string {
	subject := []rune(strings.ReplaceAll(oneLine(l.Subject), "=?", "= ?"))
	if len(subject) > maxSubject {
		subject = append(subject[:maxSubject-1], '…')
	}
	return string(subject)
}

// Text is the letter as plain text.
func (l Letter) Text() string {
	var text strings.Builder
	for _, paragraph := range l.Paragraphs {
		text.WriteString(oneLine(paragraph) + "\n\n")
	}
	for _, fact := range l.Facts {
		text.WriteString(oneLine(fact.Label) + ": " + oneLine(fact.Value) + "\n")
	}
	if len(l.Facts) > 0 {
		text.WriteString("\n")
	}
	if l.Link != "" {
		text.WriteString(oneLine(l.Button) + ":\n" + oneLine(l.Link) + "\n\n")
	}
	for _, paragraph := range l.Closing {
		text.WriteString(oneLine(paragraph) + "\n\n")
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// HTML is the letter as a page.
func (l Letter) HTML(ctx context.Context) (string, error) {
	var page strings.Builder
	err := letter(l).Render(ctx, &page)
	return page.String(), err
}

// oneLine replaces what could end a line or turn the text around.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}

// Name is a name that others chose, for the text of a letter. Mail programs make links
// of whatever looks like one, so dots, colons and slashes are separated from what follows.
func Name(name string) string {
	var safe strings.Builder
	runes := []rune(oneLine(name))
	for i, r := range runes {
		safe.WriteRune(r)
		if strings.ContainsRune(".:/@", r) && i+1 < len(runes) && runes[i+1] != ' ' {
			safe.WriteByte(' ')
		}
	}
	return safe.String()
}
