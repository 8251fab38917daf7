// Package verify recomputes an application from its entries, and seals what it has
// verified.
//
// What it is: App, a pass over the books of one application, and what earlier passes
// found; Installation, what concerns all applications, and which of them are due.
//
// What always holds: a pass reads many short snapshots, each consistent in itself, so it
// may run beside a server at work; it changes nothing but seals and its own results; a
// rule that was not checked everywhere is reported, and its wallets are not sealed.
//
// What it is not: the rules by which usage is decided. It reads what was stored, and
// computes it in another way.
package verify
