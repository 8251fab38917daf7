// Package pg is the kernel of the store: how every package below store talks to
// Postgres.
//
// What it is: DB, a pool with the database's clock; App, the rows of one application;
// Tx, one transaction of it; Statement, the text of a query on those rows; the
// helpers that readers and writers of rows share; and Prepare, which makes a database
// ready: the serving role, the migrations, grants and policies.
//
// What always holds: a transaction of an application names it to the row-level
// policies; every statement is declared, and carries the application's id first. DB calls
// the functions registered with it for changed wallets and committed entries.
//
// What it is not: a place for tables. It knows app_state, the audit log, the policies
// and how a notification is inserted, and no other rows.
package pg
