package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const moduleRoot = "../.."

// TestMutantsFitTheSource keeps the list alive: who changes a line that a bug
// replaces says here what the bug would look like now.
func TestMutantsFitTheSource(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	for _, m := range mutants {
		if names[m.name] {
			t.Errorf("two bugs are called %q", m.name)
		}
		names[m.name] = true
		texts := make(map[string]string)
		for _, c := range m.changes {
			if texts[c.file] == "" {
				text, err := os.ReadFile(filepath.Join(moduleRoot, c.file))
				if err != nil {
					t.Fatal(err)
				}
				texts[c.file] = string(text)
			}
			changed, err := c.apply(texts[c.file])
			if err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
			texts[c.file] = changed
		}
	}
}

func TestTheTestsOfMutantsExist(t *testing.T) {
	t.Parallel()
	sources := make(map[string]string)
	for _, m := range mutants {
		if sources[m.pkg] == "" {
			files, err := filepath.Glob(filepath.Join(moduleRoot, m.pkg, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				sources[m.pkg] += string(text)
			}
		}
		for name := range strings.SplitSeq(m.tests, "|") {
			if !strings.Contains(sources[m.pkg], "\nfunc "+name+"(t *testing.T) {") {
				t.Errorf("%s: %s has no test %s", m.name, m.pkg, name)
			}
		}
	}
}

func TestChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		fits bool
	}{{"one two", true}, {"two", false}, {"one one", false}} {
		changed, err := once("file", "one", "1").apply(c.text)
		if (err == nil) != c.fits || (c.fits && changed != "1 two") {
			t.Errorf("%q became %q, %v", c.text, changed, err)
		}
	}
}
