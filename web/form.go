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
)

// Limits of a form, far above what any page sends.
const (
	maxFormBytes  = 64 << 10
	maxFormFields = 1000
)

// form is a submitted form and its validation errors.
type form struct {
	values   url.Values
	problems []component.Problem // in the order of detection
}

// form parses the body of a POST.
func (req *request) form() (*form, error) {
	r := req.http()
	r.Body = http.MaxBytesReader(req.echo.Response(), r.Body, maxFormBytes)
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
		if slices.ContainsFunc(values, isInvalidText) {
			return nil, fault.Newf(fault.InvalidRequest, "The form contains invalid characters. Go back and try again.")
		}
	}
	return &form{values: r.PostForm}, nil
}

// isInvalidText reports whether Postgres would refuse the text.
func isInvalidText(typed string) bool {
	return !utf8.ValidString(typed) || strings.ContainsRune(typed, 0)
}

// raw is the untrimmed value, for passwords.
func (f *form) raw(field string) string { return f.values.Get(field) }

// text is the trimmed value.
func (f *form) text(field string) string { return strings.TrimSpace(f.values.Get(field)) }

// list is every value of a field, such as the checked boxes of a group.
func (f *form) list(field string) []string { return f.values[field] }

// isSet reports whether a box was checked or a button pressed.
func (f *form) isSet(field string) bool { return f.values.Has(field) }

// fail adds a validation error to a field, or to the whole form if the field is empty.
// Only the first error of a field is kept.
func (f *form) fail(field, message string) {
	if f.problem(field) == "" {
		f.problems = append(f.problems, component.Problem{Field: field, Message: message})
	}
}

// problem is the validation error of a field, or "".
func (f *form) problem(field string) string {
	for _, p := range f.problems {
		if p.Field == field {
			return p.Message
		}
	}
	return ""
}

// check adds a fault to the field as a validation error. Other errors are internal and
// are returned.
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

// ok reports whether the form has no validation errors.
func (f *form) ok() bool { return len(f.problems) == 0 }

// draft returns the values of these fields for showing the form again. It never includes
// a password.
func (f *form) draft(fields ...string) component.Draft {
	d := component.Draft{Values: map[string]string{}, Problems: f.problems}
	for _, field := range fields {
		d.Values[field] = f.values.Get(field)
	}
	return d
}
