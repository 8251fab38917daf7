package docs

import (
	"fmt"
	"slices"
	"strings"

	"purser/api/openapi"
)

// fields lists the members of an object, or of the objects in a list, in the
// order of the document.
func (r *referenceReader) fields(schema *openapi.Object) []Field {
	schema = r.resolve(schema)
	switch {
	case schema.Has("oneOf"): // ours are an object or null
		first, _ := schema.List("oneOf")[0].(*openapi.Object)
		return r.fields(first)
	case schema.Has("items"):
		return r.fields(schema.Object("items"))
	}
	required := schema.List("required")
	var fields []Field
	for name, property := range schema.Object("properties").Objects() {
		field := r.field(name, property)
		field.Required = slices.Contains(required, any(name))
		fields = append(fields, field)
	}
	return fields
}

func (r *referenceReader) field(name string, schema *openapi.Object) Field {
	schema = r.resolve(schema)
	field := Field{
		Name:        name,
		Type:        r.typeName(schema),
		Rule:        rule(schema),
		Description: r.html(textOf(schema, "description")),
		Fields:      r.fields(schema),
	}
	if schema.Has("default") {
		field.Default = showJSON(schema.Get("default"))
	}
	for _, value := range schema.List("enum") {
		field.Values = append(field.Values, fmt.Sprint(value))
	}
	return field
}

func (r *referenceReader) typeName(schema *openapi.Object) string {
	var names []string
	switch kind := schema.Get("type").(type) {
	case string:
		names = []string{kind}
	case []any:
		for _, each := range kind {
			names = append(names, fmt.Sprint(each))
		}
	}
	for i, name := range names {
		if name == "array" {
			names[i] = "list of " + r.typeName(r.resolve(schema.Object("items"))) + "s"
		}
	}
	return strings.Join(names, " or ")
}

// rule says a schema's bounds in words.
func rule(schema *openapi.Object) string {
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
	if own := textOf(schema, "x-rule"); own != "" {
		parts = append(parts, own)
	}
	return strings.Join(parts, "; ")
}

func between(schema *openapi.Object, least, above, most, of string) string {
	low, over, high := schema.Get(least), schema.Get(above), schema.Get(most)
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
