// Package sandboxtest keeps the sandbox's accounts in memory, for tests.
//
// What it is: an implementation of sandbox.Documents with nothing behind it.
//
// What always holds: changes of one application follow one another, as they do
// in the database; a row that was handed out is not changed afterwards.
//
// What it is not: for the product. What it holds ends with the process.
package sandboxtest
