// Package demo fills an empty installation with an organization to look around in.
//
// What it is: some weeks of an application, simulated in seconds. A backend sends
// requests to the API, customers pay at the sandbox's pages, the sandbox's clock advances
// day by day, and at the end every case that support handles exists.
//
// What always holds: all data is written through the code that callers use, so its
// balances verify like any other; it is created once, in a database without accounts and
// organizations, for a test application; randomness is seeded, so installations
// that start on the same weekday are alike.
//
// What it is not: a fixture for tests, which create the states they need, nor for live
// applications.
package demo
