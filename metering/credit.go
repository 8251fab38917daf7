package metering

import (
	"purser/fault"
	"purser/ids"
)

// Credit is a kind of balance, such as "tokens". It is not an amount.
type Credit struct {
	ID        ids.ID
	Key       string
	Name      string
	Unit      string
	Revision  int64
	CreatedAt int64
}

// NewCredit checks a draft and makes it the first revision.
func NewCredit(draft Credit) (Credit, error) {
	if err := checkTexts(&draft.Key, &draft.Name, &draft.Unit); err != nil {
		return Credit{}, err
	}
	draft.Revision = 1
	return draft, nil
}

// checkTexts checks what is given of a catalog entry's key, name and unit.
func checkTexts(key, name, unit *string) error {
	for _, field := range []struct {
		text  *string
		parse func(string) (string, error)
	}{{key, ParseKey}, {name, ParseName}, {unit, ParseUnit}} {
		if field.text == nil {
			continue
		}
		if _, err := field.parse(*field.text); err != nil {
			return err
		}
	}
	return nil
}

// CreditPatch is a requested change; a nil field stays unchanged.
type CreditPatch struct {
	ExpectedRevision *int64
	Name             *string
	Unit             *string
}

// Patch gives the credit after the change. A patch that changes nothing keeps
// the revision.
func (c Credit) Patch(p CreditPatch) (Credit, error) {
	if err := expectRevision(p.ExpectedRevision, c.Revision); err != nil {
		return c, err
	}
	if err := checkTexts(nil, p.Name, p.Unit); err != nil {
		return c, err
	}
	next := c
	Set(&next.Name, p.Name)
	Set(&next.Unit, p.Unit)
	if next != c {
		next.Revision++
	}
	return next, nil
}

func expectRevision(expected *int64, current int64) error {
	if expected != nil && *expected != current {
		return fault.Newf(fault.RevisionConflict,
			"You sent revision %d, but the current revision is %d. Read it again, then repeat your change.", *expected, current)
	}
	return nil
}

// Set is a step of a patch: it sets a field to the value, unless that is nil.
func Set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
