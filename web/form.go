package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"purser/fault"
	"purser/views/component"
	"purser/views/page"
)

// Limits of a form: no page has one that comes near them.
const (
	maxFormBytes  = 64 << 10
	maxFormFields = 1000
)

// form is what a person sent: the values as typed, and what is wrong with them.
type form struct {
	values   url.Values
	problems []component.Problem // in the order in which they were found
}

// form reads the body of a POST.
func (v *visit) form() (*form, error) {
	r := v.request()
	r.Body = http.MaxBytesReader(v.echo.Response(), r.Body, maxFormBytes)
	if err := r.ParseForm(); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, fault.Newf(fault.BodyTooLarge, "The form is too large.")
		}
		return nil, fault.Newf(fault.InvalidRequest, "The form data was invalid. Go back and try again.")
	}
	if len(r.PostForm) > maxFormFields {
		return nil, fault.Newf(fault.BodyTooLarge, "The form is too large.")
	}
	for _, values := range r.PostForm {
		if slices.ContainsFunc(values, isNoText) {
			return nil, fault.Newf(fault.InvalidRequest, "The form contains invalid characters. Go back and try again.")
		}
	}
	return &form{values: r.PostForm}, nil
}

// isNoText reports whether Postgres would refuse it as text.
func isNoText(typed string) bool { return !utf8.ValidString(typed) || strings.ContainsRune(typed, 0) }

// raw is a value exactly as typed: for passwords.
func (f *form) raw(field string) string { return f.values.Get(field) }

// text is a value without the space around it.
func (f *form) text(field string) string { return strings.TrimSpace(f.values.Get(field)) }

// list is every value of a field: the checked ones of a list of boxes.
func (f *form) list(field string) []string { return f.values[field] }

// isSet reports whether a box was checked or a button pressed.
func (f *form) isSet(field string) bool { return f.values.Has(field) }

// fail notes what is wrong with a field, or with the form as a whole when the field
// is empty. Of several findings on one field the first counts.
func (f *form) fail(field, message string) {
	if f.problem(field) == "" {
		f.problems = append(f.problems, component.Problem{Field: field, Message: message})
	}
}

// problem is what is wrong with a field, or empty.
func (f *form) problem(field string) string {
	for _, p := range f.problems {
		if p.Field == field {
			return p.Message
		}
	}
	return ""
}

// check notes a refusal of a field's value. What is no refusal is ours, and comes
// back.
func (f *form) check(field string, err error) error {
	var refusal *fault.Fault
	if !errors.As(err, &refusal) {
		return err
	}
	switch refusal.Kind() {
	case fault.NotFound, fault.Internal, fault.Limited:
		return err
	}
	f.fail(field, refusal.Message)
	return nil
}

// ok reports whether nothing is wrong.
func (f *form) ok() bool { return len(f.problems) == 0 }

// draft is the form for the view that shows it again, with the values of these
// fields. A password is never among them.
func (f *form) draft(fields ...string) page.Draft {
	d := page.Draft{Values: map[string]string{}, Problems: f.problems}
	for _, field := range fields {
		d.Values[field] = f.values.Get(field)
	}
	return d
}
