package fault

import (
	"errors"
	"fmt"
)

// Kind groups refusals by what the caller should make of them.
type Kind int

// The kinds, in the order of the statuses that the API gives them.
const (
	Invalid       Kind = iota + 1 // the request is malformed
	Unauthorized                  // no usable key
	Forbidden                     // a good key that may not do this
	NotFound                      // no such thing in this application
	NotAllowed                    // a known path, another method
	Conflict                      // the state of things forbids it now
	TooLarge                      // the body is past the limit
	WrongMedia                    // the body is not JSON
	Unprocessable                 // well-formed, but it cannot be priced or billed so
	Limited                       // too many requests
	Internal                      // ours, not the caller's
)

// statuses is the one map from a kind to the status that the API answers with. They are
// written as numbers: a domain package does not import net/http.
var statuses = map[Kind]int{
	Invalid:       400,
	Unauthorized:  401,
	Forbidden:     403,
	NotFound:      404,
	NotAllowed:    405,
	Conflict:      409,
	TooLarge:      413,
	WrongMedia:    415,
	Unprocessable: 422,
	Limited:       429,
	Internal:      500,
}

// Status is the HTTP status that the API answers with.
func (k Kind) Status() int { return statuses[k] }

// Code names a refusal for programs. It never changes once published.
type Code string

// Fault is a refusal: what programs switch on and what people read.
type Fault struct {
	Code    Code
	Message string
}

func (f *Fault) Error() string { return string(f.Code) + ": " + f.Message }

// Kind is the kind that the catalogue gives the fault's code.
func (f *Fault) Kind() Kind { return catalogue[f.Code].kind }

// New makes a fault with the message that the catalogue gives the code.
func New(code Code) *Fault {
	return &Fault{Code: code, Message: catalogue[code].message}
}

// Newf makes a fault with a message of its own.
func Newf(code Code, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Is reports whether err is, or wraps, a fault of the code.
func Is(err error, code Code) bool {
	f, ok := errors.AsType[*Fault](err)
	return ok && f.Code == code
}
