package docs

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"purser"
)

//go:embed *.md
var files embed.FS

// Guide is one Markdown file.
type Guide struct {
	Slug     string // the file's name without .md
	Title    string // its first heading
	Summary  string // its first sentence, as text
	Body     []Block
	Sections []Section
	Markdown string // the file as it is written

	Introduction string // text before the first section, for the search
}

// Block is either HTML that is safe to show or a piece of code.
type Block struct {
	HTML string
	Code *Code
}

// Code is a fenced block, to be read and copied.
type Code struct {
	Language string // sh, json, …; empty when the guide does not say
	Text     string // without the last line feed
	Variants []Variant
}

// Variant is a block in one of the Languages. A block has none, or at least two.
type Variant struct {
	Language Language
	Text     string
	Client   bool // it was translated, and calls the language's client
}

// In is the block in a language, or as it is written when there is no such variant.
func (c Code) In(language Language) Variant {
	for _, variant := range c.Variants {
		if variant.Language.Key == language.Key {
			return variant
		}
	}
	if len(c.Variants) > 0 {
		return c.Variants[0]
	}
	return Variant{Language: Language{Key: c.Language}, Text: c.Text}
}

// CheckedMark is in every guide whose code a test runs. Only their commands are
// translated, so that every variant that is shown has been run.
const CheckedMark = "<!-- checked:"

// Section is a heading of the second level, and the text below it for the search.
type Section struct{ ID, Title, Text string }

// Chapter is a part of the navigation.
type Chapter struct {
	Title string
	Slugs []string
}

// Chapters are the guides as a newcomer would read them. A guide that is not listed
// comes in the last chapter.
var Chapters = []Chapter{
	{"Get started", []string{"start", "concepts"}},
	{"Guides", []string{
		"ai-tokens",
		"seats",
		"free-tier",
		"prepaid-and-subscription",
		"usage-page",
		"low-balance",
		"mirror",
		"reconcile",
		"migrate",
		"testing",
		"going-live",
	}},
	{"Build", []string{
		"api",
		"clients",
		"usage",
		"batches",
		"deposits",
		"reading",
		"reversing",
		"transfers",
		"exporting",
		"erasing",
		"payments",
		"errors-and-limits",
	}},
	{"Operate", []string{
		"install",
		"operating",
		"production",
		"monitoring",
		"backup",
		"upgrade",
		"security",
		"performance",
	}},
}

// readingOrder is all chapters in one list.
var readingOrder = func() (slugs []string) {
	for _, chapter := range Chapters {
		slugs = append(slugs, chapter.Slugs...)
	}
	return slugs
}()

// Chapter is the position in Chapters of the chapter that has the guide.
func (g Guide) Chapter() int {
	at := slices.IndexFunc(Chapters, func(c Chapter) bool { return slices.Contains(c.Slugs, g.Slug) })
	if at < 0 {
		return len(Chapters) - 1
	}
	return at
}

// taken are the addresses below /docs that are no guides.
var taken = []string{"reference", "errors", "notifications", "search", "changelog"}

// Guides gives all guides in reading order. They are read once; an error is a
// mistake in a guide, which a test finds.
var Guides = sync.OnceValues(func() ([]Guide, error) { return readGuides(files) })

func readGuides(tree fs.FS) ([]Guide, error) {
	paths, err := fs.Glob(tree, "*.md")
	if err != nil {
		return nil, err
	}
	slugs := map[string]bool{}
	for _, path := range paths {
		slugs[strings.TrimSuffix(path, ".md")] = true
	}
	var guides []Guide
	for _, path := range paths {
		source, err := fs.ReadFile(tree, path)
		if err != nil {
			return nil, err
		}
		guide, err := parseGuide(source, slugs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		guide.Slug = strings.TrimSuffix(path, ".md")
		if slices.Contains(taken, guide.Slug) {
			return nil, fmt.Errorf("%s: its address is another page's", path)
		}
		guides = append(guides, guide)
	}
	slices.SortStableFunc(guides, func(a, b Guide) int { return cmp.Compare(place(a.Slug), place(b.Slug)) })
	return guides, nil
}

// Changelog is CHANGELOG.md as a guide, which is not among the guides.
var Changelog = sync.OnceValues(func() (Guide, error) {
	guide, err := parseGuide([]byte(purser.Changelog), map[string]bool{})
	if err != nil {
		return Guide{}, fmt.Errorf("CHANGELOG.md: %w", err)
	}
	guide.Slug = "changelog"
	return guide, nil
})

func place(slug string) int {
	if at := slices.Index(readingOrder, slug); at >= 0 {
		return at
	}
	return len(readingOrder)
}
