// Package sandboxtest keeps the sandbox's accounts in memory, for tests.
//
// What it is: an implementation of sandbox.Accounts in memory.
//
// What always holds: updates of an application are serialized, as in the database; a
// returned row is not changed afterwards.
//
// What it is not: for the product. What it holds ends with the process.
package sandboxtest
