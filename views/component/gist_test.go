package component

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTheGistOfAMessage(t *testing.T) {
	t.Parallel()
	codes := "Invalid currency: xyz. Must be one of: " + strings.Repeat("usd, ", 100)
	for message, want := range map[string]string{
		"":                           "",
		"No such product":            "No such product",
		codes:                        "Invalid currency: xyz.",
		" The key expired.\nSee it.": "The key expired.",
		"It costs 1.5 credits":       "It costs 1.5 credits",
		strings.Repeat("é", 140):     strings.Repeat("é", 140),
	} {
		if got := GistText(message); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := GistText(strings.Repeat("usd, ", 100)); utf8.RuneCountInString(got) > 140 || !strings.HasSuffix(got, "usd…") {
		t.Errorf("a sentence without end is %q", got)
	}
}
