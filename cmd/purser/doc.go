// Command purser is the service and its tools, in one binary.
//
// What it is: the composition root. It reads the settings, finds or starts the
// database, wires the rooms together and stops them in order.
//
// What always holds: a setting that is unknown or malformed stops the start with
// a sentence that names it; on SIGTERM and SIGINT requests under way are
// finished before anything is taken from under them.
//
// What it is not: a place for behaviour. Whatever could be tested elsewhere is
// elsewhere.
package main
