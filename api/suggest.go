package api

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// maxEcho is how many characters of the caller's own text a message repeats.
const maxEcho = 40

// quote shortens the caller's text for a message, printable and in quotation marks.
func quote(text string) string {
	kept := strings.Builder{}
	n := 0
	for _, r := range text {
		if n == maxEcho {
			kept.WriteRune('…')
			break
		}
		if !unicode.IsGraphic(r) {
			r = unicode.ReplacementChar
		}
		kept.WriteRune(r)
		n++
	}
	return strconv.QuoteToGraphic(kept.String())
}

// suggestion returns a "did you mean" for a misspelt property, among those absent from
// the object, or "".
func (s *schema) suggestion(name string, object input) string {
	if len(name) > maxEcho {
		return ""
	}
	best, nearest := "", 3
	for _, p := range s.properties {
		if object.Has(p.name) {
			continue
		}
		if d := distance(plain(name), plain(p.name)); d < nearest && d <= len(p.name)/3 {
			best, nearest = p.name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// plain ignores how words are joined: credit_key and CreditKey are creditKey.
func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// distance is the number of letters changed, removed, added or swapped with the next one
// between a and b.
func distance(a, b string) int {
	row := func() []int { return make([]int, len(b)+1) }
	before, last, this := row(), row(), row()
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		this[0] = i + 1
		for j := range len(b) {
			changed := last[j]
			if a[i] != b[j] {
				changed++
			}
			this[j+1] = min(changed, last[j+1]+1, this[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				this[j+1] = min(this[j+1], before[j-1]+1)
			}
		}
		before, last, this = last, this, before
	}
	return last[len(b)]
}
