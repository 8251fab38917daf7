package docs

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
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
}

// Section is a heading of the second level.
type Section struct{ ID, Title string }

// readingOrder is how a newcomer would read. A guide that is not listed comes
// after these.
var readingOrder = []string{"start", "concepts", "api", "usage", "deposits", "reading", "payments", "errors-and-limits", "operating", "security", "performance"}

// taken are the addresses below /docs that are no guides.
var taken = []string{"reference", "errors"}

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

func place(slug string) int {
	if at := slices.Index(readingOrder, slug); at >= 0 {
		return at
	}
	return len(readingOrder)
}
