package docs

import (
	"encoding/json"
	"fmt"
	"strings"

	"purser/api/openapi"
)

// literals is how a language writes values, in the order of the document and on one line
// where that is short.
type literals struct {
	object, list    [2]string // opening and closing
	key             func(any) string
	yes, no, absent string
	comma           string // after the last of several lines
	space           string // inside of an object on one line
	indent          string
	columns         int // a line is full at
}

var jsonLiterals = literals{object: [2]string{"{", "}"}, list: [2]string{"[", "]"}, key: scalar, yes: "true", no: "false", absent: "null", indent: "  ", columns: 72}

// showJSON writes a value, and nothing for none.
func showJSON(value any) string {
	if value == nil {
		return ""
	}
	return jsonLiterals.write(value, "", 0)
}

// write writes a value that begins at a column.
func (l literals) write(value any, indent string, column int) string {
	if line := l.line(value); column+len(line) <= l.columns {
		return line
	}
	deeper := indent + l.indent
	lines := func(begin [2]string, parts []string) string {
		return begin[0] + "\n" + deeper + strings.Join(parts, ",\n"+deeper) + l.comma + "\n" + indent + begin[1]
	}
	var parts []string
	switch value := value.(type) {
	case *openapi.Object:
		for name, member := range value.All() {
			key := l.key(name) + ": "
			parts = append(parts, key+l.write(member, deeper, len(deeper)+len(key)))
		}
		return lines(l.object, parts)
	case []any:
		for _, item := range value {
			parts = append(parts, l.write(item, deeper, len(deeper)))
		}
		return lines(l.list, parts)
	}
	return l.line(value)
}

// line writes a value on one line.
func (l literals) line(value any) string {
	var parts []string
	switch value := value.(type) {
	case nil:
		return l.absent
	case bool:
		if value {
			return l.yes
		}
		return l.no
	case *openapi.Object:
		for name, member := range value.All() {
			parts = append(parts, l.key(name)+": "+l.line(member))
		}
		if len(parts) == 0 {
			return l.object[0] + l.object[1]
		}
		return l.object[0] + l.space + strings.Join(parts, ", ") + l.space + l.object[1]
	case []any:
		for _, item := range value {
			parts = append(parts, l.line(item))
		}
		return l.list[0] + strings.Join(parts, ", ") + l.list[1]
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
