// Package form reads the parameters of Stripe's API.
//
// What it is: form fields and query parameters with brackets, such as
// items[0][price]=x, as a tree that handlers read field by field.
//
// What always holds: a field is text until a handler asks for something else; a
// value that is not what the handler asks for, and a field that no handler asked
// for, are remembered, and the first of them is the error of the whole form.
//
// What it is not: a validator. It knows no resource and no range.
package form
