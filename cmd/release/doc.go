// Command release builds what a release consists of: an archive for each platform with the
// static binary, checksums, a bill of materials and the notices of third parties.
//
// What it is: `make release`. What the binaries are made of is read from the binaries.
//
// What always holds: two runs on one commit with one Go release write the same bytes. A
// module without a licence file fails the run.
//
// What it is not: publication. Nothing leaves the machine.
package main
