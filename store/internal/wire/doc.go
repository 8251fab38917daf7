// Package wire speaks to Postgres in its binary format, several statements in one round
// trip.
//
// What it is: Pipe, the statements of a round trip; Column, the values of an array
// parameter; Row, the values of a result.
//
// What always holds: a statement runs with the policies set to the application that its
// first parameter names; a pipe fails with the first statement that fails or affects other
// rows than it should. Postgres stops at the first of these only: what follows the second,
// such as a COMMIT in the same round trip, has been done.
//
// What it is not: a transaction. Who sends BEGIN decides what belongs together.
package wire
