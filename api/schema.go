package api

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"purser/metering"
)

// schema is a compiled JSON Schema: the subset of draft 2020-12 that the document uses.
// It validates every usage event; a general validator took ten times as long with a
// hundred allocations. Tests compare it with one.
type schema struct {
	types kinds
	oneOf []*schema // alternatives; nothing else is set beside them

	properties    []property // the required ones first, in the order of the document
	open          bool       // unknown properties are allowed
	minProperties int
	maxProperties int
	propertyNames *schema // of the properties of a map
	values        *schema // of a map: an object with names of the caller's choice
	maxBytes      int     // of all names and values of a map of strings
	member        string  // "field" or "parameter", for messages

	items    *schema
	minItems int
	maxItems int

	minLength int
	maxLength int
	identity  bool // no tombstone
	pattern   *regexp.Regexp
	rule      string // completes "must be …" for the pattern and the format
	uri       bool
	enum      []string

	minimum int64
	maximum int64

	fallback    any // the default, filled in for an absent property
	hasFallback bool
	fills       []property // the properties with a default, in them or below
}

type property struct {
	name     string
	required bool
	schema   *schema
}

// kinds is a set of JSON types.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBoolean
	kindInteger
	kindString
	kindArray
	kindObject
)

var kindNames = map[string]kinds{
	"null":    kindNull,
	"boolean": kindBoolean,
	"integer": kindInteger,
	"string":  kindString,
	"array":   kindArray,
	"object":  kindObject,
}

// violation is the first constraint that a value violates.
type violation struct {
	path   string // of the value, such as featureLimits[3].limit; empty at the top
	broken string // completes the sentence that the path begins
}

func broken(format string, args ...any) *violation {
	return &violation{broken: fmt.Sprintf(format, args...)}
}

// under prepends a path segment.
func (v *violation) under(segment string) *violation {
	if v.path != "" && v.path[0] != '[' {
		segment += "."
	}
	v.path = segment + v.path
	return v
}

// check returns the first violation, or nil. It allocates only for a violation.
func (s *schema) check(value any) *violation {
	if s.oneOf != nil {
		return s.checkAlternatives(value)
	}
	if kindOf(value)&s.types == 0 {
		if bad, ok := value.(flaw); ok {
			return broken("%s", bad)
		}
		return broken("must be %s", s.types)
	}
	switch value := value.(type) {
	case string:
		return s.checkText(value)
	case int64:
		return s.checkInteger(value)
	case number:
		return s.checkNumber(value)
	case []any:
		return s.checkArray(value)
	case input:
		return s.checkObject(value)
	}
	return nil
}

func kindOf(value any) kinds {
	switch value := value.(type) {
	case nil:
		return kindNull
	case bool:
		return kindBoolean
	case int64:
		return kindInteger
	case number:
		if value.whole {
			return kindInteger
		}
	case string:
		return kindString
	case []any:
		return kindArray
	case input:
		return kindObject
	}
	return 0
}

// accepting returns the schema of values of a type, nil if the type is refused.
func (s *schema) accepting(kind kinds) *schema {
	for _, alternative := range s.oneOf {
		if alternative.types&kind != 0 {
			return alternative
		}
	}
	if s.types&kind == 0 {
		return nil
	}
	return s
}

// String lists the types for messages, as in "a string or null".
func (k kinds) String() string {
	var names []string
	for _, each := range []struct {
		kind kinds
		name string
	}{
		{kindObject, "an object"}, {kindArray, "an array"}, {kindString, "a string"},
		{kindInteger, "a whole number"}, {kindBoolean, "true or false"}, {kindNull, "null"},
	} {
		if k&each.kind != 0 {
			names = append(names, each.name)
		}
	}
	return strings.Join(names, " or ")
}

func (s *schema) checkAlternatives(value any) *violation {
	var first *violation
	for _, alternative := range s.oneOf {
		v := alternative.check(value)
		if v == nil {
			return nil
		}
		if first == nil {
			first = v
		}
	}
	return first
}

func (s *schema) checkText(text string) *violation {
	// Counting code points is only needed when the bytes do not settle it.
	if len(text) > s.maxLength && utf8.RuneCountInString(text) > s.maxLength {
		return broken("must be at most %d characters", s.maxLength)
	}
	if len(text) < utf8.UTFMax*s.minLength && utf8.RuneCountInString(text) < s.minLength {
		if s.minLength == 1 {
			return broken("must not be empty")
		}
		return broken("must be at least %d characters", s.minLength)
	}
	if s.identity && metering.IsTombstone(text) {
		return broken("belongs to an erased wallet")
	}
	if s.enum != nil && !slices.Contains(s.enum, text) {
		return broken("must be one of %s", strings.Join(s.enum, ", "))
	}
	if s.pattern != nil && !s.pattern.MatchString(text) || s.uri && !isURI(text) {
		return broken("must be %s", s.rule)
	}
	return nil
}

// isURI implements format uri: an absolute URL with a valid host. The library does not
// parse the inside of an IPv6 host.
func isURI(text string) bool {
	address, err := url.Parse(text)
	if err != nil || !address.IsAbs() {
		return false
	}
	host := address.Hostname()
	if !strings.Contains(host, ":") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == ""
}

func (s *schema) checkInteger(value int64) *violation {
	if value < s.minimum {
		return broken("must be at least %d", s.minimum)
	}
	if value > s.maximum {
		return broken("must be at most %d", s.maximum)
	}
	return nil
}

// checkNumber refuses numbers outside int64, which exceed every bound.
func (s *schema) checkNumber(value number) *violation {
	if value.negative {
		return broken("must be at least %d", s.minimum)
	}
	return broken("must be at most %d", s.maximum)
}

func (s *schema) checkArray(items []any) *violation {
	if len(items) > s.maxItems {
		return broken("must have at most %d items", s.maxItems)
	}
	if len(items) < s.minItems {
		return broken("must have at least %s", plural(s.minItems, "item"))
	}
	for i, item := range items {
		if v := s.items.check(item); v != nil {
			return v.under(fmt.Sprintf("[%d]", i))
		}
	}
	return nil
}

// checkMap checks an object whose names are the caller's, in the order of the names.
func (s *schema) checkMap(object input) *violation {
	if len(object) > s.maxProperties {
		return broken("must have at most %s", plural(s.maxProperties, s.member))
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if v := s.propertyNames.checkText(name); v != nil {
			return broken("has the name %s, which %s", quote(name), v.broken)
		}
		if v := s.values.check(object[name]); v != nil {
			return v.under(name)
		}
		text, _ := object[name].(string)
		size += len(name) + len(text)
	}
	if size > s.maxBytes {
		return broken("must be at most %d bytes together, names and values", s.maxBytes)
	}
	return nil
}

func (s *schema) checkObject(object input) *violation {
	if s.values != nil {
		return s.checkMap(object)
	}
	known := 0
	for i := range s.properties {
		if object.Has(s.properties[i].name) {
			known++
		}
	}
	// Before what is missing: a misspelt field explains both.
	if known < len(object) && !s.open {
		return s.unknown(object)
	}
	if len(object) < s.minProperties {
		return broken("must have at least %s", plural(s.minProperties, s.member))
	}
	for i := range s.properties {
		p := &s.properties[i]
		value, given := object[p.name]
		if !given {
			if p.required {
				return broken("is required").under(p.name)
			}
			continue
		}
		if v := p.schema.check(value); v != nil {
			return v.under(p.name)
		}
	}
	return nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "one " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// unknown returns the alphabetically first property that is not in the schema.
func (s *schema) unknown(object input) *violation {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if s.property(name) == nil {
			return broken("has an unknown %s %s%s", s.member, quote(name), s.suggestion(name, object))
		}
	}
	return nil
}

func (s *schema) property(name string) *property {
	for i := range s.properties {
		if s.properties[i].name == name {
			return &s.properties[i]
		}
	}
	return nil
}

// fill sets the defaults of absent properties, at every level.
func (s *schema) fill(value any) {
	switch value := value.(type) {
	case input:
		for i := range s.fills {
			p := &s.fills[i]
			if given, ok := value[p.name]; ok {
				p.schema.fill(given)
			} else if p.schema.hasFallback {
				value[p.name] = p.schema.fallback
			}
		}
	case []any:
		if len(s.items.fills) > 0 {
			for _, item := range value {
				s.items.fill(item)
			}
		}
	}
}
