// Package outgoing makes the HTTP clients that call other programs.
//
// What it is: NewClient. A client follows no redirects and ends a connection that answers
// 101 Switching Protocols.
//
// What always holds: reading the body of a response ends with the deadline of its request.
//
// What it is not: which addresses may be reached, and for how long. That is the transport's
// and the caller's.
package outgoing
