package docs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"purser/fault"
)

// Raw HTML is off in goldmark unless it is asked for; here it is refused as well.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

// toHTML shows a short text, such as a description of the OpenAPI document.
func toHTML(source string) (string, error) {
	written := []byte(source)
	document := markdown.Parser().Parse(text.NewReader(written))
	if err := (&guideReader{source: written}).prepare(document); err != nil {
		return "", err
	}
	var html bytes.Buffer
	err := markdown.Renderer().Render(&html, written, document)
	return html.String(), err
}

// guideReader turns one file into a Guide.
type guideReader struct {
	source []byte
	slugs  map[string]bool // of all guides, for the links between them
	guide  Guide
	html   bytes.Buffer // of the blocks since the last code
	tables int          // seen so far: each has a name of its own
}

func parseGuide(source []byte, slugs map[string]bool) (Guide, error) {
	r := &guideReader{source: source, slugs: slugs, guide: Guide{Markdown: string(source)}}
	document := markdown.Parser().Parse(text.NewReader(source))
	if err := r.prepare(document); err != nil {
		return Guide{}, err
	}
	for node := document.FirstChild(); node != nil; node = node.NextSibling() {
		if err := r.block(node); err != nil {
			return Guide{}, err
		}
	}
	r.flush()
	if r.guide.Title == "" || r.guide.Summary == "" {
		return Guide{}, errors.New("a guide begins with a heading and a paragraph")
	}
	return r.guide, nil
}

// block takes one block of the file's top level.
func (r *guideReader) block(node ast.Node) error {
	switch node := node.(type) {
	case *ast.HTMLBlock: // a comment: prepare lets nothing else pass
		return nil
	case *ast.FencedCodeBlock:
		if string(node.Language(r.source)) == "flow" {
			drawn, err := flowSVG(string(node.Lines().Value(r.source)))
			r.html.WriteString(drawn)
			return err
		}
		return r.code(string(node.Language(r.source)), node.Lines())
	case *ast.CodeBlock:
		return r.code("", node.Lines())
	case *ast.Heading:
		if node.Level == 1 {
			r.guide.Title = plain(node, r.source)
			return nil // the page shows it
		}
		if node.Level == 2 {
			r.guide.Sections = append(r.guide.Sections, Section{ID: headingID(node), Title: plain(node, r.source)})
		} else {
			r.note(plain(node, r.source))
		}
		linkToItself(node)
		return markdown.Renderer().Render(&r.html, r.source, node)
	case *ast.Paragraph:
		if r.guide.Summary == "" {
			r.guide.Summary = firstSentence(plain(node, r.source))
		}
	case *tables.Table: // it scrolls within a frame, which the keyboard reaches
		r.tables++
		fmt.Fprintf(&r.html, `<div class="table-frame" role="region" aria-label="Table %d" tabindex="0">`, r.tables)
		defer r.html.WriteString("</div>\n")
	}
	r.note(spaced(node, r.source))
	return markdown.Renderer().Render(&r.html, r.source, node)
}

// code adds a block. Blocks that follow each other directly, in different languages, are
// variants of one; a plain command of a checked guide is translated into the others.
func (r *guideReader) code(language string, lines *text.Segments) error {
	isFirst := r.html.Len() > 0 || len(r.guide.Body) == 0
	r.flush()
	written := strings.TrimRight(string(lines.Value(r.source)), "\n")
	r.note(written)
	key := language
	if key == "sh" {
		key = "curl"
	}
	of, isVariant := languageByKey(key)
	if last := len(r.guide.Body) - 1; isVariant && !isFirst && r.guide.Body[last].Code != nil {
		if r.guide.Body[last].Code.add(Variant{Language: of, Text: written}) {
			return nil
		}
	}
	block := &Code{Language: language, Text: written}
	r.guide.Body = append(r.guide.Body, Block{Code: block})
	calls, isPlain := parseCurl(written)
	if key != "curl" || !isPlain || !strings.Contains(r.guide.Markdown, CheckedMark) {
		return nil
	}
	var err error
	block.Variants, err = variants(written, calls)
	return err
}

// variants are a command, and its translations.
func variants(command string, calls []apiCall) ([]Variant, error) {
	all := []Variant{{Language: Languages[0], Text: command}}
	for _, language := range Languages[1:] {
		translated, err := translate(language.Key, calls)
		if err != nil {
			return nil, err
		}
		all = append(all, Variant{Language: language, Text: translated, Client: true})
	}
	return all, nil
}

// add takes a hand-written variant, and reports whether it belongs to the block.
func (c *Code) add(variant Variant) bool {
	own := c.Language
	if own == "sh" {
		own = "curl"
	}
	first, isVariant := languageByKey(own)
	if !isVariant || first.Key == variant.Language.Key {
		return false
	}
	if len(c.Variants) == 0 || c.Variants[len(c.Variants)-1].Client {
		c.Variants = []Variant{{Language: first, Text: c.Text}}
	}
	for _, known := range c.Variants {
		if known.Language.Key == variant.Language.Key {
			return false
		}
	}
	c.Variants = append(c.Variants, variant)
	return true
}

// note adds text to the section that is being read, for the search.
func (r *guideReader) note(text string) {
	if last := len(r.guide.Sections) - 1; last >= 0 {
		r.guide.Sections[last].Text += text + " "
		return
	}
	r.guide.Introduction += text + " "
}

func (r *guideReader) flush() {
	if r.html.Len() > 0 {
		r.guide.Body = append(r.guide.Body, Block{HTML: r.html.String()})
		r.html.Reset()
	}
}

// prepare makes a document fit for the site: links lead to its pages, error
// codes to theirs, tables carry the names that narrow screens show.
func (r *guideReader) prepare(document ast.Node) error {
	var codes []*ast.CodeSpan
	err := ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.RawHTML:
			return ast.WalkStop, errors.New("there is HTML in a line")
		case *ast.HTMLBlock:
			if node.HTMLBlockType != ast.HTMLBlockType2 {
				return ast.WalkStop, errors.New("there is HTML that is no comment")
			}
		case *ast.Image:
			return ast.WalkStop, errors.New("there is an image, and the site serves none of them")
		case *ast.Link:
			target, err := r.resolve(string(node.Destination))
			if err != nil {
				return ast.WalkStop, err
			}
			node.Destination = []byte(target)
			return ast.WalkSkipChildren, nil
		case *ast.Heading:
			return ast.WalkSkipChildren, nil
		case *ast.CodeSpan:
			codes = append(codes, node)
		case *tables.Table:
			labelCells(node, r.source)
		}
		return ast.WalkContinue, nil
	})
	for _, span := range codes { // after the walk, which must not see the tree change
		linkErrorCode(span, r.source)
	}
	return err
}

// published names the files outside this folder that have a page of their own.
var published = map[string]string{
	"../api/openapi.yaml":   "/docs/reference",
	"../fault/catalogue.go": "/docs/errors",
	"../notify/data.go":     "/docs/notifications",
}

// resolve turns a link that works between the files into one that works between
// the pages.
func (r *guideReader) resolve(target string) (string, error) {
	path, fragment, hasFragment := strings.Cut(target, "#")
	if hasFragment {
		fragment = "#" + fragment
	}
	if page, isPublished := published[path]; isPublished {
		return page + fragment, nil
	}
	if slug, isGuide := strings.CutSuffix(path, ".md"); isGuide && r.slugs[slug] {
		return "/docs/" + slug + fragment, nil
	}
	if path == "" || strings.HasPrefix(path, "https://") {
		return target, nil
	}
	return "", fmt.Errorf("the link %s leads nowhere on the site", target)
}

// linkErrorCode makes `insufficient_balance` a way to what it means.
func linkErrorCode(span *ast.CodeSpan, source []byte) {
	code := fault.Code(plain(span, source))
	if !fault.Known(code) {
		return
	}
	link := ast.NewLink()
	link.Destination = []byte("/docs/errors/" + string(code))
	span.Parent().ReplaceChild(span.Parent(), span, link)
	link.AppendChild(link, span)
}

// labelCells gives each cell the name of its column, for screens on which rows
// become cards.
func labelCells(table *tables.Table, source []byte) {
	table.SetAttributeString("class", []byte("table"))
	var columns []string
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		at := 0
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			if _, isHeader := row.(*tables.TableHeader); isHeader {
				columns = append(columns, plain(cell, source))
			} else if at < len(columns) {
				cell.SetAttributeString("data-label", []byte(columns[at]))
			}
			at++
		}
	}
}

func headingID(heading *ast.Heading) string {
	id, _ := heading.AttributeString("id")
	written, _ := id.([]byte)
	return string(written)
}

func firstSentence(text string) string {
	if sentence, _, more := strings.Cut(text, ". "); more {
		return sentence + "."
	}
	return text
}

// linkToItself makes a heading the link that people share.
func linkToItself(heading *ast.Heading) {
	link := ast.NewLink()
	link.Destination = []byte("#" + headingID(heading))
	link.SetAttributeString("class", []byte("anchor"))
	for heading.HasChildren() {
		link.AppendChild(link, heading.FirstChild()) // which takes it from the heading
	}
	heading.AppendChild(heading, link)
}

// plain is a node's text without its markup.
func plain(node ast.Node, source []byte) string { return words(node, source, "") }

// spaced is plain with spaces between blocks, such as the cells of a table.
func spaced(node ast.Node, source []byte) string { return words(node, source, " ") }

func words(node ast.Node, source []byte, between string) string {
	var words strings.Builder
	_ = ast.Walk(node, func(child ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering && child.Type() == ast.TypeBlock {
			words.WriteString(between)
		}
		switch child := child.(type) {
		case *ast.Text:
			if entering {
				words.Write(child.Segment.Value(source))
				if child.SoftLineBreak() || child.HardLineBreak() {
					words.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				words.Write(child.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return words.String()
}
