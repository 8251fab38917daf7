package pg_test

import (
	"testing"

	"purser/store/internal/pg"
)

func TestCutText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":              "",
		"four":          "four",
		"fives":         "fiv…",
		"éééé":          "éééé",
		"ééééé":         "ééé…",
		"f\x00our\x00":  "four",
		"f\x00ives\x00": "fiv…",
		"a\xffb":        "a\ufffdb",
	} {
		if got := pg.CutText(text, 4); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
