package site

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/views/component"
)

// The rules of catalog fields are those of package metering, which the API calls too.

func (f *Form) CatalogKey(field string) string { return f.parsed(field, metering.ParseKey) }

func (f *Form) CatalogName(field string) string { return f.parsed(field, metering.ParseName) }

func (f *Form) CatalogUnit(field string) string { return f.parsed(field, metering.ParseUnit) }

// parsed reads a text that was typed, without the space around it.
func (f *Form) parsed(field string, parse func(string) (string, error)) string {
	text, err := parse(f.Text(field))
	if refusal, ok := errors.AsType[*fault.Fault](err); ok {
		f.Fail(field, refusal.Message)
	}
	return text
}

// Edited is the new value of a stored text, or nil if the field was left as it was. A
// text that came by the API may have space around it, and line breaks, which a browser
// does not send back: such a text stays as it is until it is edited.
func (f *Form) Edited(field, stored string, read func(string) string) *string {
	if f.Raw(field) == withoutLineBreaks.Replace(stored) {
		return nil
	}
	return new(read(field))
}

var withoutLineBreaks = strings.NewReplacer("\r", "", "\n", "")

// Credits parses an amount in credits.
func (f *Form) Credits(field string) metering.Amount {
	amount, ok := metering.ParseCredits(f.Text(field))
	if !ok {
		f.Fail(field, "Enter a number such as 0.25 (up to 9 decimals).")
	}
	return amount
}

// Count parses a whole number with a minimum.
func (f *Form) Count(field string, least int64) int64 {
	return f.Between(field, least, metering.MaxQuantity)
}

// Between parses a whole number of a range.
func (f *Form) Between(field string, least, most int64) int64 {
	n, err := strconv.ParseInt(f.Text(field), 10, 64)
	if err != nil || n < least || n > most || strings.HasPrefix(f.Text(field), "+") {
		f.Fail(field, fmt.Sprintf("Enter a whole number from %d to %d.", least, most))
	}
	return n
}

// Choice parses one of the offered values.
func Choice[T ~string](f *Form, field string, offered ...T) T {
	chosen := T(f.Text(field))
	for _, value := range offered {
		if chosen == value {
			return chosen
		}
	}
	f.Fail(field, "Select an option.")
	return chosen
}

// A form is sent within this time after it was opened. Clocks of nodes differ a little.
const (
	maxFormAge = 24 * time.Hour
	clockSlack = time.Minute
)

// ParseFormID parses the id that a form got when it was opened. Lists and limits go by the
// time in an id, so a browser must not choose it: an older id, or one ahead, is refused.
func ParseFormID(prefix, text string) (id ids.ID, ok bool) {
	id, err := ids.Parse(prefix, text)
	age := ids.New().Millis() - id.Millis()
	return id, err == nil && age <= maxFormAge.Milliseconds() && age >= -clockSlack.Milliseconds()
}

// NewID is the id of what the form creates for an owner. The form carries one, so that a
// form sent twice creates one thing. With other values in the fields, as after going back in
// the browser, or without an id in the form, it is another id.
func (f *Form) NewID(prefix string, owner ids.ID, fields ...string) ids.ID {
	form, ok := ParseFormID(prefix, f.Raw("id"))
	if !ok {
		return ids.New()
	}
	values := make([]string, len(fields))
	for i, field := range fields {
		values[i] = f.Text(field)
	}
	return IDFor(owner, form, values...)
}

// IDFor derives the id of what a form creates from the id in the form and its values. Mixed
// with the owner's id, a browser cannot choose the id of another owner's.
func IDFor(owner, form ids.ID, values ...string) ids.ID {
	mixed := slices.Concat(owner[:], form[:])
	for _, value := range values {
		mixed = strconv.AppendQuote(mixed, value)
	}
	sum := sha256.Sum256(mixed)
	id := form // its first bytes are the time, by which most are sorted
	id[7] = sum[0]
	copy(id[9:], sum[1:])
	return id
}

// WithNewID is an empty form with an id.
func WithNewID(prefix string) component.Draft {
	return component.Draft{Values: map[string]string{"id": ids.New().Format(prefix)}}
}

// Revision is the revision that the form was opened with.
func (f *Form) Revision() (int64, error) {
	n, err := strconv.ParseInt(f.Raw("revision"), 10, 64)
	if err != nil || n < 1 {
		return 0, fault.Newf(fault.InvalidRequest, "The form data was invalid. Reload the page and try again.")
	}
	return n, nil
}

// Changed returns the value of a submitted field, or nil for a locked one, which
// browsers do not send: nil leaves it unchanged.
func Changed[T any](f *Form, field string, read func(string) T) *T {
	if !f.IsSet(field) {
		return nil
	}
	return new(read(field))
}
