// Package wire speaks to Postgres in its binary format, several statements in one round
// trip.
//
// What it is: Pipe, the statements of a round trip; Column, the values of an array
// parameter; Row, the values of a result.
//
// What always holds: a statement runs with the policies set to the application that its
// first parameter names; a pipe ends with the first statement that fails or affects
// other rows than it should.
//
// What it is not: a transaction. Who sends BEGIN decides what belongs together.
package wire
