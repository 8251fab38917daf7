package main

import (
	"errors"
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

func TestABugIsCaughtByItsTestsOnly(t *testing.T) {
	t.Parallel()
	m, failed := bug("a bug", "./store", "TestOne|TestTwo"), errors.New("exit status 1")
	for output, want := range map[string]verdict{
		"--- FAIL: TestOne (0.01s)\n    one_test.go:1: wrong\nFAIL\nFAIL\tpurser/store\t0.1s\nFAIL\n": caught,
		"--- FAIL: TestTwo (0.01s)\n    --- FAIL: TestTwo/part (0.00s)\nFAIL\n":                       caught,
		"    --- FAIL: TestTwo/part (0.00s)\npanic: nil map [recovered]\n":                            caught,
		"panic: nil map\n\ngoroutine 1 [running]:\nFAIL\tpurser/store\t0.1s\n":                        caught,
		"=== RUN\nfatal error: all goroutines are asleep - deadlock!\nFAIL\tpurser/store\t0.1s\n":     caught,
		"panic: test timed out after 10m0s\nrunning tests:\n\tTestOne (10m0s)\n":                      timedOut,
		"# purser/store\n./a.go:1:1: undefined: x\nFAIL\tpurser/store [build failed]\n":               stale,
		"--- FAIL: TestOneMore (0.01s)\nFAIL\n":                                                       otherwise,
		"signal: killed\nFAIL\tpurser/store\t0.1s\n":                                                  otherwise,
		"one_test.go:1: the log says panic: nil map\nFAIL\tpurser/store\t0.1s\n":                      otherwise,
		"open /tmp/x: no space left on device\n":                                                      otherwise,
		"":                                                                                            otherwise,
	} {
		if got := verdictOn(m, output, failed); got != want {
			t.Errorf("%s, not %s: %s", got, want, output)
		}
	}
	if got := verdictOn(m, "ok  \tpurser/store\t0.1s\n", nil); got != survived {
		t.Errorf("tests that pass: %s", got)
	}
}
