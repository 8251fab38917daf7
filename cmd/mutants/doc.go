// Command mutants checks that the tests catch the bugs that matter.
//
// What it is: a list of bugs that a change could bring, most of them where money is counted,
// and a loop that seeds each into a copy of the module and runs the tests that should catch
// it. It prints the result of each, and fails when one survives.
//
// What always holds: the tree itself is never touched; a bug is a text that is
// replaced by another, and one that no longer fits the source is reported, not
// skipped; tests that fail without any bug stop the run, for they would catch
// everything; a bug is caught by its own tests, not by any other failure.
//
// What it is not: a search for bugs. It knows only those on its list.
package main
