package docs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"purser/docs"
	"purser/fault"
	"purser/views/component"
	"purser/views/layout"
)

// Home is the entry to the documentation.
type Home struct {
	Frame  layout.DocsFrame
	Guides []docs.Guide
}

// Guide is one guide, between its neighbours.
type Guide struct {
	Frame          layout.DocsFrame
	Guide          docs.Guide
	Language       docs.Language // of the examples
	Previous, Next *docs.Guide
}

// usesClient reports whether an example of the page calls the language's client.
func (g Guide) usesClient() bool {
	for _, block := range g.Guide.Body {
		if block.Code != nil && block.Code.In(g.Language).Client {
			return true
		}
	}
	return false
}

// Search is what a search found.
type Search struct {
	Frame   layout.DocsFrame
	Query   string
	Results []docs.Result
}

func (s Search) lead() string {
	switch {
	case s.Query == "":
		return "Search the guides, the API reference, the error codes and the changelog."
	case len(s.Results) == 0:
		return "No results for “" + s.Query + "”. Try a single word, such as refund."
	case len(s.Results) == docs.MaxResults:
		return fmt.Sprintf("The best %d results for “%s”.", docs.MaxResults, s.Query)
	}
	return component.Counted(int64(len(s.Results)), "result", "results") + " for “" + s.Query + "”."
}

// Reference is what there is to call.
type Reference struct {
	Frame     layout.DocsFrame
	Reference *docs.Reference
}

// Group is the operations of one group, in full.
type Group struct {
	Frame    layout.DocsFrame
	Group    docs.Group
	Language docs.Language             // of the examples
	Variants map[string][]docs.Variant // by the operation's id
}

// Errors is every error code, by status.
type Errors struct {
	Frame    layout.DocsFrame
	Statuses []Status
}

// Status is the codes that answer with one status.
type Status struct {
	Status int
	Text   string
	Codes  []*fault.Fault
}

// ID is the anchor of the status.
func (s Status) ID() string { return "status-" + strconv.Itoa(s.Status) }

// Title is the status in words.
func (s Status) Title() string { return fmt.Sprintf("%d %s", s.Status, s.Text) }

// Error is one code: what it means, and what to do.
type Error struct {
	Frame  layout.DocsFrame
	Fault  *fault.Fault
	Status Status
}

// answer is what a program gets to see.
func (e Error) answer() component.CommandLine {
	return component.CommandLine{
		ID:    "answer",
		Label: "Response as JSON",
		Text:  fmt.Sprintf("HTTP %s\n\n{\n  \"error\": %q,\n  \"message\": %q\n}", e.Status.Title(), e.Fault.Code, e.Fault.Message),
	}
}

// codeBlock shows a guide's code in a language. The number keeps the id apart from the
// others of the page.
func codeBlock(number int, code *docs.Code, language docs.Language) component.CommandLine {
	label := "Example"
	switch code.Language {
	case "sh":
		label = "Command"
	case "json":
		label = "Response"
	}
	line := component.CommandLine{ID: fmt.Sprintf("code-%d", number), Label: fmt.Sprintf("%s %d", label, number)}
	return withVariants(line, code.Variants, code.In(language))
}

// withVariants shows one variant, and links to the others. The links work without a script;
// with one, only the text of the page is exchanged.
func withVariants(line component.CommandLine, all []docs.Variant, shown docs.Variant) component.CommandLine {
	line.Text, line.Language = shown.Text, shown.Language.Key
	if len(all) < 2 {
		return line
	}
	for _, variant := range all {
		line.Tabs = append(line.Tabs, component.Tab{
			Label:   variant.Language.Name,
			Href:    "?language=" + variant.Language.Key + "#" + line.ID,
			Current: variant.Language.Key == shown.Language.Key,
		})
	}
	return line
}

// example is an operation's call in the page's language.
func (g Group) example(op docs.Operation) component.CommandLine {
	code := docs.Code{Variants: g.Variants[op.ID]}
	line := component.CommandLine{ID: op.ID + "-example", Label: "Example of: " + op.Summary}
	return withVariants(line, code.Variants, code.In(g.Language))
}

// Client is the file that examples in a language import.
type Client struct {
	Frame    layout.DocsFrame
	Language docs.Language
	Text     string
}

func answerExample(op docs.Operation, answer docs.Answer) component.CommandLine {
	return component.CommandLine{
		ID:       fmt.Sprintf("%s-%d", op.ID, answer.Status),
		Label:    fmt.Sprintf("Example of %d for: %s", answer.Status, op.Summary),
		Text:     answer.Example,
		Language: "json",
	}
}

// need is what the caller has to hold.
func need(op docs.Operation) string {
	return cmp.Or(op.Permission, "none")
}

// line is a field on a row of its own; nested ones come after it, by their whole
// name.
type line struct {
	docs.Field
	Path string
}

func lines(fields []docs.Field, above string) []line {
	var all []line
	for _, field := range fields {
		path := above + field.Name
		all = append(all, line{field, path})
		below := path + "."
		if strings.HasPrefix(field.Type, "list of object") {
			below = path + "[]."
		}
		all = append(all, lines(field.Fields, below)...)
	}
	return all
}

// kind is the type, and whether it must be there.
func (l line) kind() string {
	switch {
	case l.In != "" && l.Required:
		return l.Type + " in the " + l.In + ", required"
	case l.In != "":
		return l.Type + " in the " + l.In
	case l.Required:
		return l.Type + ", required"
	}
	return l.Type
}

func (l line) rules() string {
	var rules []string
	if len(l.Values) > 0 {
		rules = append(rules, "one of "+strings.Join(l.Values, ", "))
	}
	if l.Rule != "" {
		rules = append(rules, l.Rule)
	}
	if l.Default != "" {
		rules = append(rules, "default "+l.Default)
	}
	return strings.Join(rules, "; ")
}
