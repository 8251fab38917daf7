package rollup

import (
	"strings"
	"time"

	"purser/fault"
)

// The bounds of sums by entity and by property. Callers choose both, so there may be as
// many values as events.
const (
	MaxProperties    = 20    // names that have sums on one day: the first
	MaxValues        = 1_000 // values of a name that have sums of their own on one day: the first
	MaxDimensionDays = 92    // of one read
)

// OtherValue has the sums of all values past the limit.
const OtherValue = "~other"

// Dimension is what sums are split by: Entity or a property. Names of properties have no
// colon.
type Dimension string

// Entity splits sums by the entity of events.
const Entity Dimension = "entity"

const propertyPrefix = "property:"

// Property splits sums by a property of events.
func Property(name string) Dimension { return propertyPrefix + Dimension(name) }

// PropertyName is the property, or "" for another dimension.
func (d Dimension) PropertyName() string {
	name, found := strings.CutPrefix(string(d), propertyPrefix)
	if !found {
		return ""
	}
	return name
}

// Values are the values that have sums of their own, by day and dimension.
type Values map[int64]map[Dimension]map[string]bool

// Add notes a stored value.
func (v Values) Add(day int64, d Dimension, value string) {
	if v[day] == nil {
		v[day] = map[Dimension]map[string]bool{}
	}
	if v[day][d] == nil {
		v[day][d] = map[string]bool{}
	}
	v[day][d][value] = true
}

// Label is the value under which an event is added: its own, or OtherValue. It is not
// added at all if the dimension has no values on that day.
func (v Values) Label(day int64, d Dimension, value string) (label string, counted bool) {
	known := v[day][d]
	switch {
	case len(known) == 0:
		return "", false
	case known[value]:
		return value, true
	}
	return OtherValue, true
}

// Admit adds a value if there is room for it, and reports whether it did.
func (v Values) Admit(day int64, d Dimension, value string) bool {
	known := v[day][d]
	if known[value] || len(known) >= MaxValues {
		return false
	}
	if known == nil && d != Entity {
		properties := len(v[day])
		if v[day][Entity] != nil {
			properties--
		}
		if properties >= MaxProperties {
			return false
		}
	}
	v.Add(day, d, value)
	return true
}

// ForDimension refuses buckets that sums by entity or property don't have: they are kept
// by UTC day.
func (b Buckets) ForDimension() error {
	switch {
	case b.Unit == ByHour:
		return fault.Newf(fault.InvalidRequest, "Usage by entity or property is counted by the day. Choose days or months.")
	case b.Zone != time.UTC:
		return fault.Newf(fault.InvalidRequest, "Usage by entity or property is counted by UTC day. Choose the timezone UTC.")
	case b.End-b.From() > MaxDimensionDays*24*Hour:
		return fault.Newf(fault.InvalidRequest, "A range by entity or property has at most %d days. Choose a shorter range.", MaxDimensionDays)
	}
	return nil
}
