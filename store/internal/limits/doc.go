// Package limits holds how long a session of the store may take.
//
// What it is: the values of statement_timeout, lock_timeout and
// idle_in_transaction_session_timeout for sessions that serve requests, and how long a
// new one may take to connect and to prepare its statements.
//
// What always holds: a server never changes them. Test processes relax them before
// they open a store.
//
// What it is not: a setting. Operators cannot change these values.
package limits
