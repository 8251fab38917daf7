package fidelity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stripe/stripe-mock/spec"
)

// checker compares JSON with the schemas of a description. It is stricter than
// the description: a field that is not described is a problem too.
type checker struct {
	schemas  map[string]*spec.Schema
	objects  map[string]*spec.Schema // by the value of their field "object"
	problems []string
}

func newChecker(described *spec.Spec) *checker {
	c := &checker{schemas: described.Components.Schemas, objects: map[string]*spec.Schema{}}
	for _, s := range c.schemas {
		if name := objectName(s); name != "" && s.XResourceID != "" && !forDeleted(s) {
			c.objects[name] = s
		}
	}
	return c
}

// objectName is the one value that the schema's field "object" can have.
func objectName(s *spec.Schema) string {
	field := s.Properties["object"]
	if field == nil || len(field.Enum) != 1 {
		return ""
	}
	name, _ := field.Enum[0].(string)
	return name
}

// forDeleted reports whether the schema is that of deleted objects, which are of
// the same name.
func forDeleted(s *spec.Schema) bool { return slices.Contains(s.Required, "deleted") }

func (c *checker) problem(at, format string, args ...any) {
	c.problems = append(c.problems, strings.TrimPrefix(at, ".")+" "+fmt.Sprintf(format, args...))
}

// take gives the problems found, each once, and forgets them.
func (c *checker) take() []string {
	found := slices.Compact(slices.Sorted(slices.Values(c.problems)))
	c.problems = nil
	return found
}

func (c *checker) resolve(s *spec.Schema) *spec.Schema {
	for s.Ref != "" {
		s = c.schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

// check compares a value with a schema.
func (c *checker) check(at string, value any, s *spec.Schema) {
	nullable := s.Nullable
	s = c.resolve(s)
	if value == nil {
		if !nullable && !s.Nullable {
			c.problem(at, "is null")
		}
		return
	}
	if len(s.AnyOf) > 0 {
		c.checkAny(at, value, s.AnyOf)
		return
	}
	switch s.Type {
	case spec.TypeObject:
		c.checkObject(at, value, s)
	case spec.TypeArray:
		c.checkArray(at, value, s)
	case spec.TypeString:
		c.checkText(at, value, s)
	case spec.TypeBoolean:
		if _, fits := value.(bool); !fits {
			c.problem(at, "is %v and not a boolean", value)
		}
	case spec.TypeInteger, spec.TypeNumber:
		number, fits := value.(json.Number)
		if !fits || s.Type == spec.TypeInteger && strings.ContainsAny(number.String(), ".eE") {
			c.problem(at, "is %v and not of type %s", value, s.Type)
		}
	}
}

func (c *checker) checkText(at string, value any, s *spec.Schema) {
	text, fits := value.(string)
	switch {
	case !fits:
		c.problem(at, "is %v and not a string", value)
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, any(text)):
		c.problem(at, "is %q, which is none of its values", text)
	case s.MaxLength > 0 && utf8.RuneCountInString(text) > s.MaxLength:
		c.problem(at, "has more than %d characters", s.MaxLength)
	}
}

func (c *checker) checkArray(at string, value any, s *spec.Schema) {
	list, fits := value.([]any)
	if !fits {
		c.problem(at, "is %v and not a list", value)
		return
	}
	for n, item := range list {
		c.check(fmt.Sprintf("%s[%d]", at, n), item, s.Items)
	}
}

func (c *checker) checkObject(at string, value any, s *spec.Schema) {
	fields, fits := value.(map[string]any)
	if !fits {
		c.problem(at, "is %v and not an object", value)
		return
	}
	for _, name := range s.Required {
		if _, given := fields[name]; !given {
			c.problem(at+"."+name, "is missing")
		}
	}
	for name, field := range fields {
		switch described := s.Properties[name]; {
		case described != nil:
			c.check(at+"."+name, field, described)
		case s.AdditionalProperties != nil:
			c.check(at+"."+name, field, s.AdditionalProperties)
		case len(s.Properties) > 0:
			c.problem(at+"."+name, "is no field of it")
		}
	}
}

// checkAny takes the branch that the value says it is, so that the problems are
// those of that branch. Where it does not say, one branch has to fit.
func (c *checker) checkAny(at string, value any, branches []*spec.Schema) {
	var tried []string
	for _, branch := range branches {
		if c.claims(value, c.resolve(branch)) {
			c.check(at, value, branch)
			return
		}
		attempt := &checker{schemas: c.schemas, objects: c.objects}
		attempt.check(at, value, branch)
		if len(attempt.problems) == 0 {
			return
		}
		tried = append(tried, attempt.problems...)
	}
	c.problem(at, "fits none of its forms: %s", strings.Join(tried, "; "))
}

// claims reports whether the value is an object of the schema's kind, or a
// deleted one where the schema is that of deleted ones.
func (c *checker) claims(value any, s *spec.Schema) bool {
	fields, isObject := value.(map[string]any)
	if !isObject || fields["object"] == nil || fields["object"] != objectName(s) {
		return false
	}
	return (fields["deleted"] == true) == forDeleted(s)
}

// checkEvent compares an event, and the object that it carries, which the
// description leaves open.
func (c *checker) checkEvent(at string, value any) {
	c.check(at, value, c.objects["event"])
	event, _ := value.(map[string]any)
	data, _ := event["data"].(map[string]any)
	carried, _ := data["object"].(map[string]any)
	name, _ := carried["object"].(string)
	s := c.objects[name]
	if s == nil {
		c.problem(at+".data.object", "is no object that is described, but %q", name)
		return
	}
	c.check(at+".data.object", carried, s)
	before, _ := data["previous_attributes"].(map[string]any)
	for attribute := range before {
		if s.Properties[attribute] == nil {
			c.problem(at+".data.previous_attributes."+attribute, "is no field of it")
		}
	}
}

// decode keeps numbers as they are written.
func decode(t testing.TB, text []byte) (value any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("not JSON: %v: %s", err, text)
	}
	return value
}

func TestChecker(t *testing.T) {
	t.Parallel()
	described := &spec.Spec{}
	if err := json.Unmarshal([]byte(`{"components": {"schemas": {
		"box": {"type": "object", "x-resourceId": "box", "required": ["object", "size"], "properties": {
			"object": {"type": "string", "enum": ["box"]},
			"size": {"type": "integer"},
			"lid": {"anyOf": [{"type": "string", "maxLength": 5}, {"$ref": "#/components/schemas/lid"}], "nullable": true},
			"colours": {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}},
			"notes": {"type": "object", "additionalProperties": {"type": "string"}},
			"open": {"type": "boolean"}
		}},
		"lid": {"type": "object", "x-resourceId": "lid", "required": ["object", "fits"], "properties": {
			"object": {"type": "string", "enum": ["lid"]}, "fits": {"type": "boolean"}
		}}
	}}}`), described); err != nil {
		t.Fatal(err)
	}
	c := newChecker(described)
	for text, want := range map[string]string{
		`{"object": "box", "size": 1}`: "",
		`{"object": "box", "size": 1, "lid": null, "colours": ["red"], "notes": {"a": "b"}}`:  "",
		`{"object": "box", "size": 1, "lid": {"object": "lid", "fits": true}, "open": false}`: "",
		`{"object": "box"}`:                                                                     "size is missing",
		`{"object": "box", "size": null}`:                                                       "size is null",
		`{"object": "box", "size": 1.5}`:                                                        "size is 1.5 and not of type integer",
		`{"object": "box", "size": "1"}`:                                                        "size is 1 and not of type integer",
		`{"object": "crate", "size": 1}`:                                                        `object is "crate", which is none of its values`,
		`{"object": "box", "size": 1, "open": "yes"}`:                                           "open is yes and not a boolean",
		`{"object": "box", "size": 1, "colours": ["red", "green"]}`:                             `colours[1] is "green", which is none of its values`,
		`{"object": "box", "size": 1, "colours": "red"}`:                                        "colours is red and not a list",
		`{"object": "box", "size": 1, "notes": {"a": 1}}`:                                       "notes.a is 1 and not a string",
		`{"object": "box", "size": 1, "depth": 2}`:                                              "depth is no field of it",
		`{"object": "box", "size": 1, "lid": {"object": "lid"}}`:                                "lid.fits is missing",
		`{"object": "box", "size": 1, "lid": "lid_12"}`:                                         "lid fits none of its forms: lid has more than 5 characters",
		`{"object": "box", "size": 1, "lid": {"object": "lid", "fits": true, "deleted": true}}`: "lid fits none of its forms",
		`{"object": "box", "size": 1, "lid": {"object": "knob", "fits": true}}`:                 "lid fits none of its forms",
	} {
		c.check("", decode(t, []byte(text)), c.objects["box"])
		found := strings.Join(c.take(), "; ")
		if (found == "") != (want == "") || !strings.HasPrefix(found, want) {
			t.Errorf("%s: %q, want %q", text, found, want)
		}
	}
}
