package openapi

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"
)

// Object is an object of the document. A nil Object is empty.
//
// A value is nil, a bool, an int64, a float64, a string, a []any or an *Object.
type Object struct{ members []member }

type member struct {
	name  string
	value any
}

// Parse reads a document, as YAML or JSON.
func Parse(text []byte) (*Object, error) {
	var root any
	if err := yaml.UnmarshalWithOptions(text, &root, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}
	object, ok := convert(root).(*Object)
	if !ok {
		return nil, errors.New("the OpenAPI document is not an object")
	}
	return object, nil
}

// convert turns what the YAML library reads into values of the tree.
func convert(value any) any {
	switch value := value.(type) {
	case yaml.MapSlice:
		object := &Object{members: make([]member, 0, len(value))}
		for _, item := range value {
			object.members = append(object.members, member{fmt.Sprint(item.Key), convert(item.Value)})
		}
		return object
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = convert(item)
		}
		return list
	case uint64:
		if value <= math.MaxInt64 {
			return int64(value)
		}
		return float64(value)
	}
	return value
}

// New makes an object of names and values in turn.
func New(namesAndValues ...any) *Object {
	o := &Object{}
	for pair := range slices.Chunk(namesAndValues, 2) {
		o.Set(pair[0].(string), pair[1])
	}
	return o
}

// All iterates over the members in their order.
func (o *Object) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		if o == nil {
			return
		}
		for _, m := range o.members {
			if !yield(m.name, m.value) {
				return
			}
		}
	}
}

// Objects iterates over the members that are objects.
func (o *Object) Objects() iter.Seq2[string, *Object] {
	return func(yield func(string, *Object) bool) {
		for name, value := range o.All() {
			if object, ok := value.(*Object); ok && !yield(name, object) {
				return
			}
		}
	}
}

// Names lists the members in their order.
func (o *Object) Names() (names []string) {
	for name := range o.All() {
		names = append(names, name)
	}
	return names
}

// Get returns a member's value, or nil.
func (o *Object) Get(name string) any {
	for each, value := range o.All() {
		if each == name {
			return value
		}
	}
	return nil
}

// Has reports whether there is such a member.
func (o *Object) Has(name string) bool {
	for each := range o.All() {
		if each == name {
			return true
		}
	}
	return false
}

// Object returns a member that is an object, or nil.
func (o *Object) Object(name string) *Object {
	object, _ := o.Get(name).(*Object)
	return object
}

// List returns a member that is an array, or nil.
func (o *Object) List(name string) []any {
	list, _ := o.Get(name).([]any)
	return list
}

// Text returns a member that is a string, or "".
func (o *Object) Text(name string) string {
	text, _ := o.Get(name).(string)
	return text
}

// Bool returns a member that is a boolean, or false.
func (o *Object) Bool(name string) bool {
	flag, _ := o.Get(name).(bool)
	return flag
}

// Set replaces a member, or adds it at the end.
func (o *Object) Set(name string, value any) {
	for i := range o.members {
		if o.members[i].name == name {
			o.members[i].value = value
			return
		}
	}
	o.members = append(o.members, member{name, value})
}

// Delete removes a member.
func (o *Object) Delete(name string) {
	o.members = slices.DeleteFunc(o.members, func(m member) bool { return m.name == name })
}

// Clone copies the object, and none of its values.
func (o *Object) Clone() *Object {
	if o == nil {
		return &Object{}
	}
	return &Object{members: slices.Clone(o.members)}
}

// Copy copies the object with all its values.
func (o *Object) Copy() *Object {
	copied := &Object{}
	for name, value := range o.All() {
		copied.members = append(copied.members, member{name, copyValue(value)})
	}
	return copied
}

func copyValue(value any) any {
	switch value := value.(type) {
	case *Object:
		return value.Copy()
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = copyValue(item)
		}
		return list
	}
	return value
}

// JSON encodes the object in its order, without spaces.
func (o *Object) JSON() ([]byte, error) { return json.Marshal(o) }

// MarshalJSONTo implements json.MarshalerTo.
func (o *Object) MarshalJSONTo(to *jsontext.Encoder) error {
	if err := to.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for name, value := range o.All() {
		if err := errors.Join(to.WriteToken(jsontext.String(name)), json.MarshalEncode(to, value)); err != nil {
			return err
		}
	}
	return to.WriteToken(jsontext.EndObject)
}

// maxReferences bounds a chain of references: more than the document has.
const maxReferences = 16

// Resolve follows a node's reference within the document of the root. What stands beside
// a reference wins over what it names.
func (o *Object) Resolve(node *Object) (*Object, error) {
	for range maxReferences {
		reference := node.Text("$ref")
		if reference == "" {
			return node, nil
		}
		path, local := strings.CutPrefix(reference, "#/")
		target := o
		for name := range strings.SplitSeq(path, "/") {
			target = target.Object(name)
		}
		if !local || target == nil {
			return nil, fmt.Errorf("%s refers to nothing", reference)
		}
		merged := target.Clone()
		for name, value := range node.All() {
			if name != "$ref" {
				merged.Set(name, value)
			}
		}
		node = merged
	}
	return nil, fmt.Errorf("%s refers to itself", node.Text("$ref"))
}
