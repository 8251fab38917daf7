// Package form reads the parameters of Stripe's API.
//
// What it is: form fields and query parameters with brackets, such as
// items[0][price]=x, as a tree that handlers read field by field.
//
// What always holds: values are text until a handler reads them as another type; a
// value of the wrong type and a field that no handler read are recorded, and the first
// of them is the error of the form.
//
// What it is not: a validator of resources or ranges.
package form
