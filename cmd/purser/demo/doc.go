// Package demo fills an empty installation with an organization to look around in.
//
// What it is: some weeks in the life of an application, lived through in seconds. A
// backend of its customers makes requests to the API, people pay at the sandbox's
// pages, the sandbox's clock moves on from day to day, and at the end every case
// that support meets is there to be found.
//
// What always holds: nothing is written past the code that callers use, so the books
// of the demo are as sound as any; it is made once, in a database that had neither
// accounts nor organizations, for a development application; chance is seeded, so
// installations that begin on the same weekday are alike.
//
// What it is not: for tests of the product, which make the states they need, nor
// for anything live.
package demo
