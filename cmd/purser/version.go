package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"runtime"
)

// The build sets these. The time is that of the commit, so that two builds of one commit
// are the same file.
var (
	version = "dev"
	commit  = "unknown"
	built   = "unknown"
)

// printVersion prints what the binary was built from and with.
func printVersion(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("version", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print JSON")
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if *asJSON {
		return json.NewEncoder(stdout).Encode(struct {
			Version  string `json:"version"`
			Commit   string `json:"commit"`
			Built    string `json:"built"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
		}{version, commit, built, runtime.Version(), platform})
	}
	_, err := fmt.Fprintf(stdout, "purser %s\ncommit %s\nbuilt  %s\ngo     %s %s\n", version, commit, built, runtime.Version(), platform)
	return err
}
