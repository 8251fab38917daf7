package page

import "purser/views/component"

// Answered is what the server said to a form: what is wrong with it, or what was
// changed under it. It is zero when the form is shown for the first time.
type Answered struct {
	Problems []component.Problem
	Clash    *component.Clash // a stale revision: yours and theirs
}

// wrong is what is wrong with the value of one field.
func (a Answered) wrong(field string) string {
	for _, problem := range a.Problems {
		if problem.Field == field {
			return problem.Message
		}
	}
	return ""
}

// The longest texts that the catalog takes, in characters.
const (
	MaxKeyLength  = 80
	MaxNameLength = 120
	MaxUnitLength = 40
)

const keyHint = "Used in the API. Can't be changed later. Use a–z, 0–9, - and _."
