package web

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"purser/fault"
	"purser/metering"
)

// The rules of catalog fields are those of package metering, which the API calls too.

// catalogKey is the path parameter of a credit, feature or plan. An invalid key is not
// queried: Postgres refuses some strings.
func (req *request) catalogKey() (string, error) {
	key, err := req.param("key")
	if err == nil && !metering.IsKey(key) {
		err = fault.New(fault.PathNotFound)
	}
	return key, err
}

func (f *form) catalogKey(field string) string  { return f.parsed(field, metering.ParseKey) }
func (f *form) catalogName(field string) string { return f.parsed(field, metering.ParseName) }
func (f *form) catalogUnit(field string) string { return f.parsed(field, metering.ParseUnit) }

// parsed reads a text that was typed, without the space around it.
func (f *form) parsed(field string, parse func(string) (string, error)) string {
	text, err := parse(f.text(field))
	var refusal *fault.Fault
	if errors.As(err, &refusal) {
		f.fail(field, refusal.Message)
	}
	return text
}

// edited is the new value of a stored text, or nil if the field was left as it was. A
// text that came by the API may have space around it, and line breaks, which a browser
// does not send back: such a text stays as it is until it is edited.
func (f *form) edited(field, stored string, read func(string) string) *string {
	if f.raw(field) == withoutLineBreaks.Replace(stored) {
		return nil
	}
	return new(read(field))
}

var withoutLineBreaks = strings.NewReplacer("\r", "", "\n", "")

// credits parses an amount in credits.
func (f *form) credits(field string) metering.Amount {
	amount, ok := metering.ParseCredits(f.text(field))
	if !ok {
		f.fail(field, "Enter a number such as 0.25 (up to 9 decimals).")
	}
	return amount
}

// count parses a whole number with a minimum.
func (f *form) count(field string, least int64) int64 {
	n, err := strconv.ParseInt(f.text(field), 10, 64)
	if err != nil || n < least || n > metering.MaxQuantity || strings.HasPrefix(f.text(field), "+") {
		f.fail(field, fmt.Sprintf("Enter a whole number from %d to %d.", least, metering.MaxQuantity))
	}
	return n
}

// choice parses one of the offered values.
func choice[T ~string](f *form, field string, offered ...T) T {
	chosen := T(f.text(field))
	for _, value := range offered {
		if chosen == value {
			return chosen
		}
	}
	f.fail(field, "Select an option.")
	return chosen
}

// revision is the revision that the form was opened with.
func (f *form) revision() (int64, error) {
	n, err := strconv.ParseInt(f.raw("revision"), 10, 64)
	if err != nil || n < 1 {
		return 0, fault.Newf(fault.InvalidRequest, "The form data was invalid. Reload the page and try again.")
	}
	return n, nil
}

// changed returns the value of a submitted field, or nil for a locked one, which
// browsers do not send: nil leaves it unchanged.
func changed[T any](f *form, field string, read func(string) T) *T {
	if !f.isSet(field) {
		return nil
	}
	return new(read(field))
}
