package tenancy

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"purser/fault"
)

// maxNameLength counts code points.
const maxNameLength = 120

// ParseName reads the name of an organization, an application, a key or a
// person: without the space around it, 1 to 120 characters, none of them a
// control character, nor one that turns the text around it: a name could show as
// another's in a list or a log.
func ParseName(text string) (string, error) {
	name := strings.TrimSpace(text)
	switch {
	case name == "":
		return "", fault.Newf(fault.InvalidRequest, "Enter a name.")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, notInName):
		return "", fault.Newf(fault.InvalidRequest, "The name contains invalid characters. Enter it again.")
	case utf8.RuneCountInString(name) > maxNameLength:
		return "", fault.Newf(fault.InvalidRequest, "The name must be %d characters or fewer.", maxNameLength)
	}
	return name, nil
}

func notInName(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

const maxSlugLength = 40

// slugOf makes the part of a URL for a name: a-z, 0-9 and single dashes inside. A name
// without any of them gets the noun. "new" is the page that creates one, so the noun is
// appended to it.
func slugOf(name, noun string) string {
	var slug strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		r = withoutAccent(r)
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			gap = true
			continue
		}
		if gap && slug.Len() > 0 {
			slug.WriteByte('-')
		}
		gap = false
		slug.WriteByte(byte(r))
	}
	switch text := shorten(slug.String(), maxSlugLength); text {
	case "":
		return noun
	case "new":
		return "new-" + noun
	default:
		return text
	}
}

// NumberedSlug is the n-th spelling to try for a slug that is taken: acme-2,
// acme-3. It is never longer than a slug may be.
func NumberedSlug(slug string, n int) string {
	number := "-" + strconv.Itoa(n)
	return shorten(slug, maxSlugLength-len(number)) + number
}

func shorten(slug string, limit int) string {
	if len(slug) > limit {
		slug = slug[:limit]
	}
	return strings.TrimRight(slug, "-")
}

// plain replaces ß and the letters à to ÿ, in the order of Unicode.
const plain = "saaaaaaaceeeeiiiidnooooo-ouuuuyty"

func withoutAccent(r rune) rune {
	if r >= 'ß' && r <= 'ÿ' {
		return rune(plain[r-'ß'])
	}
	return r
}
