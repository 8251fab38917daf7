package web

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"purser/fault"
	"purser/metering"
	"purser/views/page"
)

// What the catalog's fields take is what the API takes, in the words of a form.

// maxCount is the largest whole number that every JSON reader keeps exact.
const maxCount = 1<<53 - 1

var keyPattern = regexp.MustCompile(`\A[a-z0-9][a-z0-9_-]*\z`)

func isCatalogKey(text string) bool {
	return len(text) <= page.MaxKeyLength && keyPattern.MatchString(text)
}

// catalogKey is the part of the path that names a credit, a feature or a plan.
// What cannot be a key is not asked for: Postgres refuses some texts outright.
func (v *visit) catalogKey() (string, error) {
	key, err := v.param("key")
	if err == nil && !isCatalogKey(key) {
		err = fault.New(fault.PathNotFound)
	}
	return key, err
}

func (f *form) catalogKey(field string) string {
	key := f.text(field)
	if !isCatalogKey(key) {
		f.fail(field, fmt.Sprintf("Use 1 to %d characters: a–z, 0–9, - and _. Start with a letter or digit.", page.MaxKeyLength))
	}
	return key
}

func (f *form) catalogName(field string) string { return f.line(field, "name", page.MaxNameLength) }

func (f *form) catalogUnit(field string) string { return f.line(field, "unit", page.MaxUnitLength) }

// line is a text of one line. Lengths count characters, as the API does.
func (f *form) line(field, noun string, limit int) string {
	text := f.text(field)
	switch {
	case text == "":
		f.fail(field, "Enter a "+noun+".")
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		f.fail(field, "The "+noun+" contains invalid characters. Enter it again.")
	case utf8.RuneCountInString(text) > limit:
		f.fail(field, fmt.Sprintf("The %s must be %d characters or fewer.", noun, limit))
	}
	return text
}

// credits is an amount that was typed in credits.
func (f *form) credits(field string) metering.Amount {
	amount, ok := metering.ParseCredits(f.text(field))
	if !ok {
		f.fail(field, "Enter a number such as 0.25 (up to 9 decimals).")
	}
	return amount
}

// count is a whole number, at least the least.
func (f *form) count(field string, least int64) int64 {
	n, err := strconv.ParseInt(f.text(field), 10, 64)
	if err != nil || n < least || n > maxCount || strings.HasPrefix(f.text(field), "+") {
		f.fail(field, fmt.Sprintf("Enter a whole number from %d to %d.", least, int64(maxCount)))
	}
	return n
}

// choice is one of several values. The form offers only these, so anything else
// was not chosen in it.
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

// revision is the one that the form's values are of.
func (f *form) revision() (int64, error) {
	n, err := strconv.ParseInt(f.raw("revision"), 10, 64)
	if err != nil || n < 1 {
		return 0, fault.Newf(fault.InvalidRequest, "The form data was invalid. Reload the page and try again.")
	}
	return n, nil
}

// changed is a pointer to the value of a field that the form has; of a locked one,
// which browsers do not send, it is nil: no change is wished.
func changed[T any](f *form, field string, read func(string) T) *T {
	if !f.isSet(field) {
		return nil
	}
	return new(read(field))
}
