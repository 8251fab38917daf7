package docs

import (
	"embed"
	"fmt"
	"html"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Chroma's own package of lexers reads all of its 270 languages when a process starts,
// so the five of the documentation are embedded here.
//
//go:embed lexers/*.xml
var lexerFiles embed.FS

// lexerNames maps the languages of code blocks to lexers.
var lexerNames = map[string]string{
	"sh": "bash", "curl": "bash", "json": "json", "go": "go", "python": "python", "typescript": "typescript",
}

var lexers = sync.OnceValues(func() (map[string]*chroma.RegexLexer, error) {
	read := map[string]*chroma.RegexLexer{}
	for _, name := range lexerNames {
		lexer, err := chroma.NewXMLLexer(lexerFiles, "lexers/"+name+".xml")
		if err != nil {
			return nil, fmt.Errorf("docs: the lexer %s: %w", name, err)
		}
		read[name] = lexer
	}
	return read, nil
})

// maxHighlighted bounds the memory: all guides and the reference have some hundreds of
// blocks, the quickstarts of applications add theirs.
const maxHighlighted = 1024

type highlightKey struct{ language, text string }

var highlighted = sync.OnceValues(func() (*lru.Cache[highlightKey, string], error) {
	return lru.New[highlightKey, string](maxHighlighted)
})

// Highlight is the text as escaped HTML, with a span around each token that has a colour.
// Text in an unknown language is escaped only.
func Highlight(language, text string) string {
	cache, err := highlighted()
	if err != nil {
		return html.EscapeString(text)
	}
	key := highlightKey{language, text}
	if shown, known := cache.Get(key); known {
		return shown
	}
	shown, err := tokenise(language, text)
	if err != nil { // the colours are missing, and the text is not
		shown = html.EscapeString(text)
	}
	cache.Add(key, shown)
	return shown
}

func tokenise(language, text string) (string, error) {
	name, known := lexerNames[language]
	if !known {
		return html.EscapeString(text), nil
	}
	all, err := lexers()
	if err != nil {
		return "", err
	}
	tokens, err := all[name].Tokenise(&chroma.TokeniseOptions{State: "root"}, text)
	if err != nil {
		return "", fmt.Errorf("docs: highlighting %s: %w", language, err)
	}
	var out strings.Builder
	last := ""
	end := func() {
		if last != "" {
			out.WriteString("</span>")
		}
	}
	for token := tokens(); token != chroma.EOF; token = tokens() {
		kind := tokenKind(token.Type)
		if kind != last {
			end()
			if kind != "" {
				out.WriteString(`<span data-token="` + kind + `">`)
			}
			last = kind
		}
		out.WriteString(html.EscapeString(token.Value))
	}
	end()
	return out.String(), nil
}

// tokenKind is the name that the stylesheet has a colour for. Most tokens have none: a
// page of code has to stay calm.
func tokenKind(kind chroma.TokenType) string {
	switch {
	case kind.InCategory(chroma.Comment):
		return "comment"
	case kind.InSubCategory(chroma.LiteralString):
		return "string"
	case kind.InSubCategory(chroma.LiteralNumber), kind == chroma.KeywordConstant:
		return "number"
	case kind.InCategory(chroma.Keyword):
		return "keyword"
	case kind == chroma.NameTag, kind == chroma.NameVariable:
		return "name"
	case kind == chroma.NameFunction, kind == chroma.NameBuiltin:
		return "function"
	}
	return ""
}
