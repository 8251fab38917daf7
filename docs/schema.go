package docs

import (
	"fmt"
	"slices"
	"strings"
)

// fields lists the members of an object, or of the objects in a list, in the
// order of the document.
func (r *referenceReader) fields(schema tree) []Field {
	schema = r.resolve(schema)
	switch {
	case schema.has("oneOf"): // ours are an object or null
		return r.fields(asTree(schema.list("oneOf")[0]))
	case schema.has("items"):
		return r.fields(schema.object("items"))
	}
	required := schema.list("required")
	var fields []Field
	for _, property := range schema.object("properties") {
		name := fmt.Sprint(property.Key)
		field := r.field(name, asTree(property.Value))
		field.Required = slices.Contains(required, any(name))
		fields = append(fields, field)
	}
	return fields
}

func (r *referenceReader) field(name string, schema tree) Field {
	schema = r.resolve(schema)
	field := Field{
		Name:        name,
		Type:        r.typeName(schema),
		Rule:        rule(schema),
		Description: r.html(schema.text("description")),
		Fields:      r.fields(schema),
	}
	if schema.has("default") {
		field.Default = showJSON(schema.get("default"))
	}
	for _, value := range schema.list("enum") {
		field.Values = append(field.Values, fmt.Sprint(value))
	}
	return field
}

func (r *referenceReader) typeName(schema tree) string {
	var names []string
	switch kind := schema.get("type").(type) {
	case string:
		names = []string{kind}
	case []any:
		for _, each := range kind {
			names = append(names, fmt.Sprint(each))
		}
	}
	for i, name := range names {
		if name == "array" {
			names[i] = "list of " + r.typeName(r.resolve(schema.object("items"))) + "s"
		}
	}
	return strings.Join(names, " or ")
}

// rule says a schema's bounds in words.
func rule(schema tree) string {
	var parts []string
	for _, bounds := range []struct{ least, above, most, of string }{
		{"minLength", "", "maxLength", " characters"},
		{"minimum", "exclusiveMinimum", "maximum", ""},
		{"minItems", "", "maxItems", " items"},
	} {
		if text := between(schema, bounds.least, bounds.above, bounds.most, bounds.of); text != "" {
			parts = append(parts, text)
		}
	}
	if text := schema.text("x-rule"); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func between(schema tree, least, above, most, of string) string {
	low, over, high := schema.get(least), schema.get(above), schema.get(most)
	switch {
	case over != nil && high != nil:
		return fmt.Sprintf("more than %v, at most %v%s", over, high, of)
	case over != nil:
		return fmt.Sprintf("more than %v%s", over, of)
	case low != nil && high != nil:
		return fmt.Sprintf("%v to %v%s", low, high, of)
	case high != nil:
		return fmt.Sprintf("at most %v%s", high, of)
	case low != nil && fmt.Sprint(low) == "1" && of == " characters":
		return "not empty"
	case low != nil:
		return fmt.Sprintf("at least %v%s", low, of)
	}
	return ""
}
