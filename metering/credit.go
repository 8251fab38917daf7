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

// NewCredit makes the first revision of a credit.
func NewCredit(id ids.ID, key, name, unit string, now int64) Credit {
	return Credit{ID: id, Key: key, Name: name, Unit: unit, Revision: 1, CreatedAt: now}
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
	next := c
	set(&next.Name, p.Name)
	set(&next.Unit, p.Unit)
	if next != c {
		next.Revision++
	}
	return next, nil
}

func expectRevision(expected *int64, current int64) error {
	if expected != nil && *expected != current {
		return fault.Newf(fault.RevisionConflict,
			"You expected revision %d, and it is at revision %d. Read it again, then repeat your change.", *expected, current)
	}
	return nil
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
