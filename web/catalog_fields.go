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
	"purser/views/component"
)

// Catalog fields have the same limits as in the API.

// maxCount is the largest integer that every JSON parser keeps exact.
const maxCount = 1<<53 - 1

var keyPattern = regexp.MustCompile(`\A[a-z0-9][a-z0-9_-]*\z`)

func isCatalogKey(text string) bool {
	return len(text) <= component.MaxKeyLength && keyPattern.MatchString(text)
}

// catalogKey is the path parameter of a credit, feature or plan. An invalid key is not
// queried: Postgres refuses some strings.
func (req *request) catalogKey() (string, error) {
	key, err := req.param("key")
	if err == nil && !isCatalogKey(key) {
		err = fault.New(fault.PathNotFound)
	}
	return key, err
}

func (f *form) catalogKey(field string) string {
	key := f.text(field)
	if !isCatalogKey(key) {
		f.fail(field, fmt.Sprintf("Use 1 to %d characters: a–z, 0–9, - and _. Start with a letter or digit.", component.MaxKeyLength))
	}
	return key
}

func (f *form) catalogName(field string) string {
	return f.line(field, "name", component.MaxNameLength)
}

func (f *form) catalogUnit(field string) string {
	return f.line(field, "unit", component.MaxUnitLength)
}

// line is a single-line text. Lengths count characters, as in the API.
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
	if err != nil || n < least || n > maxCount || strings.HasPrefix(f.text(field), "+") {
		f.fail(field, fmt.Sprintf("Enter a whole number from %d to %d.", least, int64(maxCount)))
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
