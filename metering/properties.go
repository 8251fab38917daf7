package metering

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Bounds of the properties of an event. The OpenAPI document has the same ones.
const (
	MaxProperties          = 8
	MaxPropertyNameLength  = 40
	MaxPropertyValueLength = 80
	MaxPropertyBytes       = 512 // of all names and values together
	PropertyNamePattern    = `^[A-Za-z0-9_-]*$`
)

// Properties are the caller's own labels of an event, as a JSON object with its names in
// order, so that two of them compare as texts. The zero value is none. They have no
// effect on a decision.
type Properties string

func NewProperties(values map[string]string) Properties {
	if len(values) == 0 {
		return ""
	}
	text, err := json.Marshal(values) // sorts the names
	if err != nil {
		panic(fmt.Sprintf("metering: texts have no JSON: %v", err)) // a map of strings always has
	}
	return Properties(text)
}

// ParseProperties reads a JSON object of texts, in any order and spacing.
func ParseProperties(text string) (Properties, error) {
	if text == "" {
		return "", nil
	}
	var values map[string]string
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return "", fmt.Errorf("metering: properties: %w", err)
	}
	return NewProperties(values), nil
}

// Values are the properties by their names, nil for none.
func (p Properties) Values() (values map[string]string) {
	if p != "" {
		_ = json.Unmarshal([]byte(p), &values) // both constructors write this
	}
	return values
}

// Names lists the names in order.
func (p Properties) Names() []string { return slices.Sorted(maps.Keys(p.Values())) }
