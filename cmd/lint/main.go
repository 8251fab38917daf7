//go:build lint

// Command lint runs the checks of go vet and of staticcheck over the packages it is
// given, such as ./...
//
// What it is: staticcheck's own command with vet's analyzers added. Each of the two
// reads every dependency down to the standard library before it can say anything
// about this module; together they read them once.
//
// What it is not: part of ./..., which leaves out the tag lint, so that neither tests
// nor checks spend time on the libraries behind it.
package main

import (
	"os"

	"golang.org/x/tools/go/analysis/suite/vet"
	"honnef.co/go/tools/lintcmd"
	"honnef.co/go/tools/lintcmd/version"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

func main() {
	command := lintcmd.NewCommand("lint")
	command.SetVersion(version.Version, version.MachineVersion)
	command.ParseFlags(os.Args[1:])
	command.AddBareAnalyzers(vet.Suite...)
	command.AddAnalyzers(simple.Analyzers...)
	command.AddAnalyzers(staticcheck.Analyzers...)
	command.AddAnalyzers(stylecheck.Analyzers...)
	command.AddAnalyzers(unused.Analyzer)
	command.Run()
}
