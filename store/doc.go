// Package store persists: it and the packages below it are the only ones that talk to
// Postgres.
//
// What it is: handles. App(scope) reads and writes the catalog, wallets and keys of one
// application; Payments(scope) what is sold and paid in it, PaymentAccounts(scope) its
// accounts at the provider; Queue(scope) what it does later, and Queues the queues of
// all; Reports(scope) reads what pages show of it, and Stats counts for this node;
// Org(id), User(id), Auth and Directory are for organizations and accounts;
// SandboxAccounts stores the payments sandbox; Engine decides and writes usage in
// batches. It has lanes: each has its own queue and cache, and runs one transaction at a
// time. Each exported method is one transaction: load, decide in a domain package, apply.
// The exceptions read many short snapshots or work in portions, and say so: Verification,
// reports that go over all rows, and Engine, whose transaction is a batch.
//
// What always holds: rows of an application are reached only in a transaction
// that names the application to the row-level policies; every statement on them
// is in the kernel's list (internal/pg) and carries the application's id first; a balance
// changes only together with its journal entry, under its wallet's lock or, from a
// cached state, with its version compared in the same statement. Every exported
// method has a caller in production: what only tests need is in storetest.
//
// What it is not: a place for rules. What may happen is decided by the domain
// packages, and nothing here knows about HTTP.
package store
