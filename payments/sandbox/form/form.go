package form

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how many brackets a name may have. The API needs four.
const maxDepth = 8

// Problem is an error in a form.
type Problem struct {
	Code    string
	Param   string
	Message string
}

func (p *Problem) Error() string { return p.Message }

// Fields is one level of a form. The level of a field that was not sent is empty, so
// handlers can read nested fields without checks.
type Fields struct {
	children map[string]*node
	form     *state
}

type node struct {
	name  string // with brackets, as a caller would write it
	value string
	leaf  bool
	asked bool
	below map[string]*node
}

// state is shared by all levels of a form.
type state struct {
	root    map[string]*node
	problem *Problem
}

// Parse builds the tree. A name that is both a value and a parent, or that
// appears twice, is a mistake.
func Parse(values url.Values) (*Fields, error) {
	s := &state{root: map[string]*node{}}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for i, value := range values[name] {
			if err := s.add(name, value, i); err != nil {
				return nil, err
			}
		}
	}
	return &Fields{children: s.root, form: s}, nil
}

// add inserts a value into the tree. The index of the nth expand[] is n.
func (s *state) add(name, value string, nth int) error {
	steps, ok := split(name)
	if !ok || len(steps) > maxDepth {
		return &Problem{"parameter_unknown", name, "Received unknown parameter: " + name}
	}
	level := s.root
	for i, step := range steps {
		if step == "" {
			step = strconv.Itoa(nth)
		}
		n := level[step]
		if n == nil {
			n = &node{name: join(steps[:i+1])}
			level[step] = n
		}
		last := i == len(steps)-1
		if n.leaf || last && n.below != nil {
			return &Problem{"parameter_invalid", name, "The parameter " + name + " was given twice."}
		}
		if last {
			n.leaf, n.value = true, value
			return nil
		}
		if n.below == nil {
			n.below = map[string]*node{}
		}
		level = n.below
	}
	return nil
}

// split parses a name such as a[b][c].
func split(name string) (steps []string, ok bool) {
	first, rest, nested := strings.Cut(name, "[")
	if first == "" {
		return nil, false
	}
	steps = []string{first}
	if !nested {
		return steps, true
	}
	if !strings.HasSuffix(rest, "]") {
		return nil, false
	}
	return append(steps, strings.Split(strings.TrimSuffix(rest, "]"), "][")...), true
}

func join(steps []string) string {
	if len(steps) == 1 {
		return steps[0]
	}
	return steps[0] + "[" + strings.Join(steps[1:], "][") + "]"
}

// Problem returns the first error of the form: a value of the wrong type, or else a
// field that was not read. Call it after all fields have been read.
func (f *Fields) Problem() error {
	if f.form.problem != nil {
		return f.form.problem
	}
	if unknown := unasked(f.form.root); unknown != "" {
		return &Problem{"parameter_unknown", unknown, "Received unknown parameter: " + unknown}
	}
	return nil
}

func unasked(level map[string]*node) string {
	for _, key := range slices.Sorted(maps.Keys(level)) {
		n := level[key]
		if !n.asked {
			return n.name
		}
		if below := unasked(n.below); below != "" {
			return below
		}
	}
	return ""
}

func (f *Fields) wrong(n *node, code, kind string) {
	if f.form.problem == nil {
		f.form.problem = &Problem{code, n.name, fmt.Sprintf("Invalid %s: %s", kind, n.value)}
	}
}

// leaf returns a field that was sent with a value.
func (f *Fields) leaf(name string) *node {
	n := f.children[name]
	if n == nil {
		return nil
	}
	n.asked = true
	if !n.leaf {
		f.wrong(n, "parameter_invalid_string", "string")
		return nil
	}
	return n
}

// Text is a field, or nothing.
func (f *Fields) Text(name string) string {
	if n := f.leaf(name); n != nil {
		return n.value
	}
	return ""
}

// MaybeText is a field, or nil when it was not sent.
func (f *Fields) MaybeText(name string) *string {
	if n := f.leaf(name); n != nil {
		return &n.value
	}
	return nil
}

// OneOf is a field that has one of the values, or nothing.
func (f *Fields) OneOf(name string, values ...string) string {
	n := f.leaf(name)
	if n == nil {
		return ""
	}
	if !slices.Contains(values, n.value) {
		f.wrong(n, "parameter_invalid", name+", must be one of "+strings.Join(values, ", "))
		return ""
	}
	return n.value
}

// Int is an integer, or nil when it was not sent. An empty field is zero, which clears
// a value.
func (f *Fields) Int(name string) *int64 {
	n := f.leaf(name)
	if n == nil {
		return nil
	}
	if n.value == "" {
		return new(int64)
	}
	value, err := strconv.ParseInt(n.value, 10, 64)
	if err != nil {
		f.wrong(n, "parameter_invalid_integer", "integer")
		return nil
	}
	return &value
}

// Bool is true or false, or nil when it was not sent.
func (f *Fields) Bool(name string) *bool {
	n := f.leaf(name)
	if n == nil {
		return nil
	}
	if n.value != "true" && n.value != "false" {
		f.wrong(n, "parameter_invalid_boolean", "boolean")
		return nil
	}
	return new(n.value == "true")
}

// Group is the level below a field; empty when it was not sent.
func (f *Fields) Group(name string) *Fields {
	group := &Fields{form: f.form}
	if n := f.children[name]; n != nil {
		n.asked = true
		if n.leaf && n.value != "" {
			f.wrong(n, "parameter_invalid", "object")
		}
		group.children = n.below
	}
	return group
}

// Has reports whether the field was sent, in any form.
func (f *Fields) Has(name string) bool {
	_, sent := f.children[name]
	return sent
}

// List is the levels below a field, in the order of their numbers.
func (f *Fields) List(name string) []*Fields {
	group := f.Group(name)
	var list []*Fields
	for _, key := range group.order() {
		list = append(list, group.Group(key))
	}
	return list
}

// Texts is a list of values, such as expand[].
func (f *Fields) Texts(name string) []string {
	group := f.Group(name)
	var texts []string
	for _, key := range group.order() {
		texts = append(texts, group.Text(key))
	}
	return texts
}

// IsLeaf reports whether the field was sent as one value.
func (f *Fields) IsLeaf(name string) bool {
	n := f.children[name]
	return n != nil && n.leaf
}

// Clear is the key that clears all existing pairs.
const Clear = ""

// Stripe's limits for metadata.
const (
	maxPairKey   = 40
	maxPairValue = 500
)

// Pairs is a map from names to values, or nil when it was not sent. An empty value
// deletes its pair, and an empty field all pairs.
func (f *Fields) Pairs(name string) map[string]string {
	if !f.Has(name) {
		return nil
	}
	group, pairs := f.Group(name), map[string]string{}
	if f.IsLeaf(name) {
		pairs[Clear] = ""
	}
	for _, key := range slices.Sorted(maps.Keys(group.children)) {
		pairs[key] = group.Text(key)
		switch length := utf8.RuneCountInString(pairs[key]); {
		case key == "":
			f.refuse(&Problem{"parameter_invalid_empty", name, "Metadata keys cannot be empty."})
		case utf8.RuneCountInString(key) > maxPairKey:
			f.refuse(&Problem{"parameter_invalid_string", name, fmt.Sprintf("Metadata keys can have up to %d characters, but you passed in a key that is %d characters. Invalid key: %s", maxPairKey, utf8.RuneCountInString(key), key)})
		case length > maxPairValue:
			f.refuse(&Problem{"parameter_invalid_string", name, fmt.Sprintf("Metadata values can have up to %d characters, but you passed in a value that is %d characters. Invalid value: %s", maxPairValue, length, pairs[key])})
		}
	}
	return pairs
}

func (f *Fields) refuse(p *Problem) {
	if f.form.problem == nil {
		f.form.problem = p
	}
}

// order sorts the keys of a list as numbers.
func (f *Fields) order() []string {
	return slices.SortedFunc(maps.Keys(f.children), func(a, b string) int {
		x, errX := strconv.Atoi(a)
		y, errY := strconv.Atoi(b)
		if errX != nil || errY != nil {
			return strings.Compare(a, b)
		}
		return x - y
	})
}

// Ignore marks a field as read.
func (f *Fields) Ignore(names ...string) {
	for _, name := range names {
		if n := f.children[name]; n != nil {
			ignore(n)
		}
	}
}

func ignore(n *node) {
	n.asked = true
	for _, below := range n.below {
		ignore(below)
	}
}
