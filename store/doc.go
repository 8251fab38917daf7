// Package store remembers: it is the only room that speaks to Postgres.
//
// What it is: three doors. App(scope) reads and writes the rows of one
// application; Org(id) those of one organization; Directory has the few looks
// that come before a scope is known. Worlds keeps what the payments sandbox
// knows. Each exported method is one transaction: load, decide in a noun, apply.
//
// What always holds: rows of an application are reached only in a transaction
// that names the application to the row-level policies; every statement on them
// is in the package's list and carries the application's id first; a balance
// changes only together with its journal entry, under its wallet's lock.
//
// What it is not: a place for rules. What may happen is decided by the nouns,
// and nothing here knows about HTTP.
package store
