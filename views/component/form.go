package component

import "purser/metering"

// Answered is what the server said to a form: what is wrong with it, or what was
// changed under it. It is zero when the form is shown for the first time.
type Answered struct {
	Problems []Problem
	Clash    *Clash // a stale revision: yours and theirs
}

// Wrong is what is wrong with the value of one field.
func (a Answered) Wrong(field string) string { return Wrong(a.Problems, field) }

// Wrong is the message of a field's problem, or "".
func Wrong(problems []Problem, field string) string {
	for _, problem := range problems {
		if problem.Field == field {
			return problem.Message
		}
	}
	return ""
}

// FormPath is where the form of a new or a stored object posts.
func FormPath(base, key string, isNew bool) string {
	if isNew {
		return base + "/new"
	}
	return base + "/" + key + "/edit"
}

// SubmitText is what the button of such a form says.
func SubmitText(noun string, isNew bool) string {
	if isNew {
		return "Create " + noun
	}
	return "Save"
}

// The longest texts that the catalog takes, in characters.
const (
	MaxKeyLength  = metering.MaxKeyLength
	MaxNameLength = metering.MaxNameLength
	MaxUnitLength = metering.MaxUnitLength
)
