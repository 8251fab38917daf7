// Package wire speaks to Postgres in its binary format, several statements in one round
// trip.
//
// What it is: Pipe, the statements of a round trip; Column, the values of an array
// parameter; Row, the values of a result.
//
// What always holds: a statement runs with the policies set to the application that its
// first parameter names; a pipe fails with the first statement that fails, or that affects
// another number of rows than expected. Postgres stops only at a statement that fails: what
// follows an unexpected number of rows in the same round trip, even a COMMIT, has been done.
//
// What it is not: a transaction. The caller that sends BEGIN decides what belongs together.
package wire
