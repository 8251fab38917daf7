package docs

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// tree is an object of the document that keeps the order of its members, which
// is the order in which people should read them.
type tree yaml.MapSlice

func parseTree(document []byte) (tree, error) {
	var root yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(document, &root, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}
	return tree(root), nil
}

// asTree is the object, or an empty one in place of anything else.
func asTree(value any) tree {
	object, _ := value.(yaml.MapSlice)
	return tree(object)
}

func (t tree) get(name string) any {
	for _, item := range t {
		if item.Key == name {
			return item.Value
		}
	}
	return nil
}

func (t tree) has(name string) bool { return t.get(name) != nil }

func (t tree) object(name string) tree { return asTree(t.get(name)) }

func (t tree) text(name string) string {
	text, _ := t.get(name).(string)
	return strings.TrimSpace(text)
}

func (t tree) flag(name string) bool {
	flag, _ := t.get(name).(bool)
	return flag
}

func (t tree) list(name string) []any {
	list, _ := t.get(name).([]any)
	return list
}

// More than our document nests; a circle ends here.
const maxReferences = 16

// resolve follows references. What stands beside one wins over what it names.
func (r *referenceReader) resolve(node tree) tree {
	for range maxReferences {
		reference := node.text("$ref")
		if reference == "" {
			return node
		}
		target := r.root
		for _, name := range strings.Split(strings.TrimPrefix(reference, "#/"), "/") {
			target = target.object(name)
		}
		if target == nil {
			r.fail(fmt.Errorf("%s refers to nothing", reference))
		}
		var merged tree
		for _, item := range node {
			if item.Key != "$ref" {
				merged = append(merged, item)
			}
		}
		node = append(merged, target...) // get takes the first
	}
	r.fail(fmt.Errorf("a reference goes in circles"))
	return nil
}

// A value that fits in this many columns is shown on one line.
const jsonColumns = 72

// showJSON writes a value in the order of the document, one line where that is
// short.
func showJSON(value any) string {
	if value == nil {
		return ""
	}
	var text strings.Builder
	writeJSON(&text, value, "", 0)
	return text.String()
}

// writeJSON writes a value that begins at a column.
func writeJSON(out *strings.Builder, value any, indent string, column int) {
	line := oneLine(value)
	if column+len(line) <= jsonColumns {
		out.WriteString(line)
		return
	}
	deeper := indent + "  "
	switch value := value.(type) {
	case yaml.MapSlice:
		out.WriteString("{\n")
		for i, item := range value {
			name := deeper + scalar(item.Key) + ": "
			out.WriteString(name)
			writeJSON(out, item.Value, deeper, len(name))
			endLine(out, i == len(value)-1)
		}
		out.WriteString(indent + "}")
	case []any:
		out.WriteString("[\n")
		for i, item := range value {
			out.WriteString(deeper)
			writeJSON(out, item, deeper, len(deeper))
			endLine(out, i == len(value)-1)
		}
		out.WriteString(indent + "]")
	default:
		out.WriteString(line)
	}
}

func endLine(out *strings.Builder, last bool) {
	if !last {
		out.WriteByte(',')
	}
	out.WriteByte('\n')
}

func oneLine(value any) string {
	var parts []string
	switch value := value.(type) {
	case yaml.MapSlice:
		for _, item := range value {
			parts = append(parts, scalar(item.Key)+": "+oneLine(item.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, item := range value {
			parts = append(parts, oneLine(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return scalar(value)
}

func scalar(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(text.String(), "\n")
}
