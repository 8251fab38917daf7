package api

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"

	"purser/api/openapi"
)

// compiler compiles the document's schemas into request validators. An unknown keyword
// is an error, so that nothing in the document is silently not enforced.
type compiler struct {
	root     *openapi.Object    // the document, for resolving references
	compiled map[string]*schema // by reference; nil while being compiled
	errs     []error
}

func newCompiler(root *openapi.Object) *compiler {
	return &compiler{root: root, compiled: map[string]*schema{}}
}

// fail collects an error of the document, so that all are reported together.
func (c *compiler) fail(at, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)))
}

func (c *compiler) err() error { return errors.Join(c.errs...) }

// schema compiles a node. After a failure it still returns a schema, only to find
// further failures.
func (c *compiler) schema(node *openapi.Object, at string) *schema {
	s := &schema{
		maxProperties: math.MaxInt, maxBytes: math.MaxInt,
		maxItems:  math.MaxInt,
		maxLength: math.MaxInt,
		minimum:   math.MinInt64,
		maximum:   math.MaxInt64,
		open:      true,
		member:    "field",
	}
	if node.Has("$ref") {
		s = c.reference(node, at)
	}
	for _, keyword := range slices.Sorted(slices.Values(node.Names())) {
		c.keyword(s, node, keyword, at)
	}
	c.finish(s, at)
	return s
}

// reference starts from a copy of the referenced schema. Only annotations are allowed
// beside $ref: other keywords would be validated twice, and client generators ignore
// them or apply a default to a field that is always present.
func (c *compiler) reference(node *openapi.Object, at string) *schema {
	for keyword := range node.All() {
		if !slices.Contains([]string{"$ref", "description"}, keyword) {
			c.fail(at, "%s cannot stand beside $ref", keyword)
		}
	}
	ref := c.text(node, "$ref", at)
	target, begun := c.compiled[ref]
	if !begun {
		c.compiled[ref] = nil
		target = c.schema(c.resolve(node, at), ref)
		c.compiled[ref] = target
	}
	if target == nil {
		c.fail(at, "%s refers to itself", ref)
		return new(schema)
	}
	s := *target
	return &s
}

// resolve follows a reference.
func (c *compiler) resolve(node *openapi.Object, at string) *openapi.Object {
	found, err := c.root.Resolve(node)
	if err != nil {
		c.fail(at, "%v", err)
	}
	return found
}

func (c *compiler) keyword(s *schema, node *openapi.Object, keyword, at string) {
	switch keyword {
	case "$ref", "title", "description", "examples", "x-go-type":
	case "x-rule": // read beside pattern
	case "required":
		if !node.Has("properties") {
			c.fail(at, "required needs properties")
		}
	case "type":
		s.types = c.types(node.Get("type"), at)
	case "oneOf":
		for i, alternative := range c.objects(node, keyword, at) {
			s.oneOf = append(s.oneOf, c.schema(alternative, fmt.Sprintf("%s/oneOf/%d", at, i)))
		}
	case "properties":
		s.properties = c.properties(node, at)
	case "additionalProperties":
		if values, isMap := node.Get(keyword).(*openapi.Object); isMap {
			s.values, s.open = c.schema(values, at+"/additionalProperties"), false
			break
		}
		s.open = expect[bool](c, node, keyword, at)
	case "propertyNames":
		s.propertyNames = c.schema(expect[*openapi.Object](c, node, keyword, at), at+"/propertyNames")
	case "maxProperties":
		s.maxProperties = int(expect[int64](c, node, keyword, at))
	case "x-max-bytes":
		s.maxBytes = int(expect[int64](c, node, keyword, at))
	case "minProperties":
		s.minProperties = int(expect[int64](c, node, keyword, at))
	case "items":
		s.items = c.schema(expect[*openapi.Object](c, node, keyword, at), at+"/items")
	case "minItems":
		s.minItems = int(expect[int64](c, node, keyword, at))
	case "maxItems":
		s.maxItems = int(expect[int64](c, node, keyword, at))
	case "minLength":
		s.minLength = int(expect[int64](c, node, keyword, at))
	case "x-no-tombstone":
		s.identity = expect[bool](c, node, keyword, at)
	case "maxLength":
		s.maxLength = int(expect[int64](c, node, keyword, at))
	case "pattern":
		s.pattern = c.pattern(node, at)
		s.rule = c.text(node, "x-rule", at)
	case "format":
		c.format(s, node, at)
	case "enum":
		s.enum = c.texts(node, keyword, at)
	case "minimum":
		s.minimum = expect[int64](c, node, keyword, at)
	case "exclusiveMinimum":
		if node.Has("minimum") {
			c.fail(at, "there are two minima")
		}
		s.minimum = expect[int64](c, node, keyword, at) + 1
	case "maximum":
		s.maximum = expect[int64](c, node, keyword, at)
	case "default":
		s.fallback, s.hasFallback = node.Get("default"), true
	default:
		c.fail(at, "the keyword %s is not understood", keyword)
	}
}

// finish checks constraints between keywords.
func (c *compiler) finish(s *schema, at string) {
	if (s.types == 0) == (s.oneOf == nil) {
		c.fail(at, "there is neither a type nor oneOf, or both")
	}
	var kinds kinds
	for _, alternative := range s.oneOf {
		if alternative.types&kinds != 0 {
			c.fail(at, "two of oneOf have a type in common")
		}
		kinds |= alternative.types
	}
	if s.enum != nil && s.types != kindString {
		c.fail(at, "an enum is for strings alone")
	}
	if (s.values == nil) != (s.propertyNames == nil) || s.values != nil && len(s.properties) > 0 {
		c.fail(at, "a map has propertyNames and a schema as additionalProperties, and no properties")
	}
	if s.types&kindArray != 0 && s.items == nil {
		c.fail(at, "there are no items")
	}
	if s.hasFallback {
		if v := s.check(s.fallback); v != nil {
			c.fail(at, "the default is not valid: it %s", v.broken)
		}
		// All requests share one default value, so it must be immutable.
		if list, isList := s.fallback.([]any); isList && len(list) > 0 || kindOf(s.fallback) == kindObject {
			c.fail(at, "the default is neither a scalar nor an empty array")
		}
	}
	s.fills = nil
	for _, p := range s.properties {
		inside := p.schema
		if inside.items != nil {
			inside = inside.items
		}
		if p.schema.hasFallback || len(inside.fills) > 0 {
			s.fills = append(s.fills, p)
		}
	}
}

func (c *compiler) types(value any, at string) (set kinds) {
	names, isList := value.([]any)
	if !isList {
		names = []any{value}
	}
	for _, name := range names {
		name, _ := name.(string)
		if kindNames[name] == 0 {
			c.fail(at, "the type %q is not understood", name)
		}
		set |= kindNames[name]
	}
	return set
}

// properties puts the required ones first, in document order, so that the first
// violation is the one that a reader of the document expects.
func (c *compiler) properties(node *openapi.Object, at string) []property {
	nodes := expect[*openapi.Object](c, node, "properties", at)
	required := c.texts(node, "required", at)
	names := slices.Clone(required)
	for _, name := range slices.Sorted(slices.Values(nodes.Names())) {
		if !slices.Contains(required, name) {
			names = append(names, name)
		}
	}
	var all []property
	for _, name := range names {
		each := c.schema(expect[*openapi.Object](c, nodes, name, at), at+"/"+name)
		all = append(all, property{name, slices.Contains(required, name), each})
	}
	return all
}

func (c *compiler) pattern(node *openapi.Object, at string) *regexp.Regexp {
	pattern, err := regexp.Compile(c.text(node, "pattern", at))
	if err != nil {
		c.fail(at, "%v", err)
	}
	return pattern
}

func (c *compiler) format(s *schema, node *openapi.Object, at string) {
	switch format := c.text(node, "format", at); format {
	case "int64": // every integer is read as int64
	case "uri", "web-address": // the latter with braces, which the library takes for both
		s.uri = true
		if !node.Has("pattern") {
			s.rule = "a whole address, with its scheme"
		}
	default:
		c.fail(at, "the format %s is not understood", format)
	}
}

// expect reads a member of a node. A missing member or another type is a failure.
func expect[T any](c *compiler, node *openapi.Object, name, at string) (value T) {
	value, ok := node.Get(name).(T)
	if !ok {
		c.fail(at, "%s is missing or of the wrong type", name)
	}
	return value
}

func (c *compiler) text(node *openapi.Object, name, at string) string {
	return expect[string](c, node, name, at)
}

// texts reads an optional array of strings.
func (c *compiler) texts(node *openapi.Object, name, at string) (all []string) {
	for i, value := range c.items(node, name, at) {
		each, ok := value.(string)
		if !ok {
			c.fail(at, "%s/%d is not a string", name, i)
		}
		all = append(all, each)
	}
	return all
}

// objects reads an optional array of objects.
func (c *compiler) objects(node *openapi.Object, name, at string) (all []*openapi.Object) {
	for i, value := range c.items(node, name, at) {
		each, ok := value.(*openapi.Object)
		if !ok {
			c.fail(at, "%s/%d is not an object", name, i)
		}
		all = append(all, each)
	}
	return all
}

func (c *compiler) items(node *openapi.Object, name, at string) []any {
	if !node.Has(name) {
		return nil
	}
	return expect[[]any](c, node, name, at)
}
