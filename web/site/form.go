package site

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

// Form is a submitted form and its validation errors.
type Form struct {
	values   url.Values
	Problems []component.Problem // in the order of detection
}

// readForm parses the body of a POST.
func (req *Request) readForm() error {
	r := req.HTTP()
	r.Body = http.MaxBytesReader(req.echo.Response(), r.Body, maxFormBytes)
	if err := r.ParseForm(); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return fault.Newf(fault.BodyTooLarge, "The form is too large.")
		}
		return fault.Newf(fault.InvalidRequest, "The form data was invalid. Go back and try again.")
	}
	if len(r.PostForm) > maxFormFields {
		return fault.Newf(fault.BodyTooLarge, "The form is too large.")
	}
	for _, values := range r.PostForm {
		if slices.ContainsFunc(values, isInvalidText) {
			return fault.Newf(fault.InvalidRequest, "The form contains invalid characters. Go back and try again.")
		}
	}
	req.Form = &Form{values: r.PostForm}
	return nil
}

// isInvalidText reports whether Postgres would refuse the text.
func isInvalidText(typed string) bool {
	return !utf8.ValidString(typed) || strings.ContainsRune(typed, 0)
}

// Raw is the untrimmed value, for passwords and identities.
func (f *Form) Raw(field string) string { return f.values.Get(field) }

// Text is the trimmed value.
func (f *Form) Text(field string) string { return strings.TrimSpace(f.values.Get(field)) }

// List is every value of a field, such as the checked boxes of a group.
func (f *Form) List(field string) []string { return f.values[field] }

// IsSet reports whether a box was checked or a button pressed.
func (f *Form) IsSet(field string) bool { return f.values.Has(field) }

// Fail adds a validation error to a field, or to the whole form if the field is empty.
// Only the first error of a field is kept.
func (f *Form) Fail(field, message string) {
	if f.Problem(field) == "" {
		f.Problems = append(f.Problems, component.Problem{Field: field, Message: message})
	}
}

// Problem is the validation error of a field, or "".
func (f *Form) Problem(field string) string { return component.Wrong(f.Problems, field) }

// Check adds a fault to the field as a validation error. Other errors are internal and
// are returned.
func (f *Form) Check(field string, err error) error {
	refusal, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return err
	}
	switch refusal.Kind() {
	case fault.NotFound, fault.Internal, fault.Limited:
		return err
	}
	f.Fail(field, refusal.Message)
	return nil
}

// OK reports whether the form has no validation errors.
func (f *Form) OK() bool { return len(f.Problems) == 0 }

// Draft returns the values of these fields for showing the form again. It never includes
// a password.
func (f *Form) Draft(fields ...string) component.Draft {
	d := component.Draft{Values: map[string]string{}, Problems: f.Problems}
	for _, field := range fields {
		d.Values[field] = f.values.Get(field)
	}
	return d
}
