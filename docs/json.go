package docs

import (
	"encoding/json"
	"fmt"
	"strings"

	"purser/api/openapi"
)

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
	case *openapi.Object:
		out.WriteString("{\n")
		names := value.Names()
		for i, each := range names {
			name := deeper + scalar(each) + ": "
			out.WriteString(name)
			writeJSON(out, value.Get(each), deeper, len(name))
			endLine(out, i == len(names)-1)
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
	case *openapi.Object:
		for name, member := range value.All() {
			parts = append(parts, scalar(name)+": "+oneLine(member))
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
