// Command purser is the service and its tools, in one binary.
//
// What it is: the composition root. It reads the settings, connects to or starts the
// database, wires the packages together and stops them in order.
//
// What always holds: an unknown or malformed setting fails the start with an error that
// names it; on SIGTERM and SIGINT, requests in flight finish before their dependencies
// are closed.
//
// What it is not: a place for domain logic.
package main
