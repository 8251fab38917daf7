package site

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
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
	failed   error               // the first error that is not of the form
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

// Confirms reports whether a name was typed as pages show it.
func (f *Form) Confirms(field, name string) bool { return AsShown(f.Raw(field)) == AsShown(name) }

// AsShown is a text as a person sees and types it: browsers collapse space and show nothing
// for some characters, which pages write out in identities, such as \u{200b}. A text of
// nothing else stays, so that an empty field never confirms it.
func AsShown(text string) string {
	text = writtenOut.ReplaceAllStringFunc(text, func(code string) string {
		r, err := strconv.ParseInt(code[3:len(code)-1], 16, 32)
		if err != nil {
			return code
		}
		return string(rune(r))
	})
	seen := strings.Map(func(r rune) rune {
		if !unicode.IsSpace(r) && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, text)
	return cmp.Or(strings.Join(strings.Fields(seen), " "), text)
}

var writtenOut = regexp.MustCompile(`\\u\{[0-9a-f]{1,6}\}`)

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

// Check adds a fault to the field as a validation error. Other errors, also of something
// missing, are not of the form: the guard returns the first, whatever the handler does.
func (f *Form) Check(field string, err error) {
	refusal, ok := errors.AsType[*fault.Fault](err)
	switch {
	case err == nil:
	case !ok, slices.Contains([]fault.Kind{fault.NotFound, fault.Internal, fault.Limited}, refusal.Kind()):
		f.failed = cmp.Or(f.failed, err)
	default:
		f.Fail(field, refusal.Message)
	}
}

// OK reports whether nothing is wrong.
func (f *Form) OK() bool { return len(f.Problems) == 0 && f.failed == nil }

// Draft returns the values of these fields for showing the form again. It never includes
// a password.
func (f *Form) Draft(fields ...string) component.Draft {
	d := component.Draft{Values: map[string]string{}, Problems: f.Problems}
	for _, field := range fields {
		d.Values[field] = f.values.Get(field)
	}
	return d
}
