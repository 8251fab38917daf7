// Package fault is the one shape of a refusal that a caller may see.
//
// What it is: a stable code, a sentence that says what to do, and the kind of
// refusal with its HTTP status.
//
// What always holds: every code that leaves the service is in the catalogue of
// this package, once, with its kind; a message reveals no internals.
//
// What it is not: an internal error. Any other error is a bug or an
// outage: the edge answers it with a fixed text and logs the cause.
package fault
