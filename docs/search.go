package docs

import (
	"cmp"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"purser/fault"
)

// Limits of a search. The index has some hundreds of entries, so one search reads a few
// hundred kilobytes.
const (
	MaxQuery   = 100 // bytes; the rest is ignored
	maxTerms   = 8
	MaxResults = 20
)

// Index is everything that can be searched.
type Index struct{ entries []entry }

// entry is a part of a page that has an address of its own.
type entry struct {
	href, kind, page, title, text string
	lowPage, lowTitle, lowText    string
}

// Result is an entry that matches all terms of a query.
type Result struct {
	Href    string
	Kind    string // of page: Guide, API reference, Error code, Changelog
	Page    string // title of the page
	Title   string // of the part; empty for the page itself
	Excerpt []Fragment
}

// Fragment is a piece of an excerpt.
type Fragment struct {
	Text  string
	Match bool // it is a term of the query
}

// NewIndex reads the guides, the changelog, the error codes and the reference with its types
// of notifications.
func NewIndex(reference *Reference) (*Index, error) {
	guides, err := Guides()
	if err != nil {
		return nil, err
	}
	changelog, err := Changelog()
	if err != nil {
		return nil, err
	}
	index := &Index{}
	for _, guide := range guides {
		index.addGuide("Guide", guide)
	}
	for _, group := range reference.Groups {
		page := "/docs/reference/" + group.Slug
		index.add(entry{href: page, kind: "API reference", page: group.Name, text: group.Description})
		for _, op := range group.Operations {
			text := op.Method + " " + op.Path + ". " + withoutMarkup(op.Description) + " " + fieldNames(op.Parameters) + fieldNames(op.Body)
			index.add(entry{href: page + "#" + op.ID, kind: "API reference", page: group.Name, title: op.Summary, text: text})
		}
	}
	for _, w := range reference.Webhooks {
		index.add(entry{href: "/docs/notifications#" + w.Type, kind: "API reference", page: "Notification types", title: w.Type, text: w.Text + " " + fieldNames(w.Data)})
	}
	for _, code := range fault.Codes() {
		meaning := code.Meaning()
		text := fmt.Sprintf("%s %s %s", fault.New(code).Message, meaning.When, meaning.Do)
		index.add(entry{href: "/docs/errors/" + string(code), kind: "Error code", page: "Error codes", title: string(code), text: text})
	}
	index.addGuide("Changelog", changelog)
	return index, nil
}

func (x *Index) addGuide(kind string, guide Guide) {
	href := "/docs/" + guide.Slug
	x.add(entry{href: href, kind: kind, page: guide.Title, text: guide.Introduction})
	for _, section := range guide.Sections {
		x.add(entry{href: href + "#" + section.ID, kind: kind, page: guide.Title, title: section.Title, text: section.Text})
	}
}

func (x *Index) add(e entry) {
	e.text = strings.Join(strings.Fields(e.text), " ")
	e.lowPage, e.lowTitle, e.lowText = strings.ToLower(e.page), strings.ToLower(e.title), strings.ToLower(e.text)
	x.entries = append(x.entries, e)
}

// Search gives the entries that have all terms at the beginning of words, the best
// first: a term in a title counts more than one in the text.
func (x *Index) Search(query string) []Result {
	terms := searchTerms(query)
	if len(terms) == 0 {
		return nil
	}
	type match struct {
		entry entry
		score int
	}
	var matches []match
	for _, e := range x.entries {
		if score := e.score(terms); score > 0 {
			matches = append(matches, match{e, score})
		}
	}
	slices.SortStableFunc(matches, func(a, b match) int { return cmp.Compare(b.score, a.score) })
	matches = matches[:min(len(matches), MaxResults)]
	results := make([]Result, len(matches))
	for i, m := range matches {
		results[i] = Result{Href: m.entry.href, Kind: m.entry.kind, Page: m.entry.page, Title: m.entry.title, Excerpt: m.entry.excerpt(terms)}
	}
	return results
}

// searchTerms are the words of a query, in lower case.
func searchTerms(query string) []string {
	if len(query) > MaxQuery {
		query = query[:MaxQuery]
	}
	words := strings.FieldsFunc(strings.ToLower(strings.ToValidUTF8(query, "")), func(r rune) bool {
		return !isWord(r) && r != '_'
	})
	var terms []string
	for _, word := range words {
		word = strings.Trim(word, "_")
		if word != "" && !slices.Contains(terms, word) && len(terms) < maxTerms {
			terms = append(terms, word)
		}
	}
	return terms
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Weights of a term by where it is found.
const (
	inTitle, inPage, inText = 12, 6, 1
	wholeWord               = 4
	mostInText              = 4
)

func (e entry) score(terms []string) int {
	total := 0
	for _, term := range terms {
		score := 0
		if at, whole := findWord(e.lowTitle, term, 0); at >= 0 {
			score += inTitle
			if whole {
				score += wholeWord
			}
		}
		if at, _ := findWord(e.lowPage, term, 0); at >= 0 {
			score += inPage
		}
		if e.title == "" && score > 0 {
			score += inTitle // the page itself before its parts
		}
		for at, count := 0, 0; count < mostInText; count++ {
			if at, _ = findWord(e.lowText, term, at); at < 0 {
				break
			}
			score += inText
			at += len(term)
		}
		if score == 0 {
			return 0
		}
		total += score
	}
	return total
}

// findWord finds the next word from a position that begins with the term, or with its
// singular.
func findWord(text, term string, from int) (at int, whole bool) {
	if singular := strings.TrimSuffix(term, "s"); len(singular) > 3 {
		term = singular
	}
	for from < len(text) {
		found := strings.Index(text[from:], term)
		if found < 0 {
			break
		}
		at := from + found
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		if at == 0 || !isWord(before) {
			after, _ := utf8.DecodeRuneInString(text[at+len(term):])
			return at, !isWord(after)
		}
		from = at + len(term)
	}
	return -1, false
}

// Length of an excerpt, and how much of it is before the first term; in bytes.
const excerptLength, excerptLead = 180, 60

// excerpt is the text around the first term. Lower case may differ in length from the
// original; then nothing is marked.
func (e entry) excerpt(terms []string) []Fragment {
	first := len(e.lowText)
	for _, term := range terms {
		if at, _ := findWord(e.lowText, term, 0); at >= 0 {
			first = min(first, at)
		}
	}
	if first == len(e.lowText) || len(e.lowText) != len(e.text) {
		first = 0
	}
	begin := wordBoundary(e.text, max(0, first-excerptLead))
	end := wordBoundary(e.text, min(len(e.text), begin+excerptLength))
	var fragments []Fragment
	if begin > 0 {
		fragments = append(fragments, Fragment{Text: "… "})
	}
	if len(e.lowText) != len(e.text) {
		fragments = append(fragments, Fragment{Text: e.text[begin:end]})
	} else {
		fragments = append(fragments, mark(e.text[begin:end], e.lowText[begin:end], terms)...)
	}
	if end < len(e.text) {
		fragments = append(fragments, Fragment{Text: " …"})
	}
	return fragments
}

// wordBoundary moves a position to the end of the word that it is in, and off the space
// behind it when that begins a text.
func wordBoundary(text string, at int) int {
	if at == 0 || at >= len(text) {
		return min(at, len(text))
	}
	if space := strings.IndexByte(text[at:], ' '); space >= 0 {
		return at + space
	}
	return len(text)
}

func mark(text, low string, terms []string) []Fragment {
	var fragments []Fragment
	for at := 0; at < len(text); {
		next, length := len(text), 0
		for _, term := range terms {
			if found, _ := findWord(low, term, at); found >= 0 && found < next {
				next, length = found, len(term)
				if !strings.HasPrefix(low[found:], term) { // its singular
					length--
				}
			}
		}
		if next > at {
			fragments = append(fragments, Fragment{Text: text[at:next]})
		}
		if length > 0 {
			fragments = append(fragments, Fragment{Text: text[next : next+length], Match: true})
		}
		at = next + length
	}
	return fragments
}

var markupTag = regexp.MustCompile(`<[^>]*>`)

// withoutMarkup is the text of HTML that toHTML made.
func withoutMarkup(source string) string {
	return html.UnescapeString(markupTag.ReplaceAllString(source, ""))
}

func fieldNames(fields []Field) string {
	var names strings.Builder
	for _, field := range fields {
		names.WriteString(field.Name + " " + fieldNames(field.Fields))
	}
	return names.String()
}
