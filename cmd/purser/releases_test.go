package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// release is a line of RELEASES.
type release struct{ version, commit, date string }

var releaseLine = regexp.MustCompile(`^(\d+\.\d+\.\d+) ([0-9a-f]{40}) (\d{4}-\d{2}-\d{2})$`)

// releases are the released versions, the newest last.
func releases(t *testing.T) []release {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(moduleRoot, "RELEASES"))
	if err != nil {
		t.Fatal(err)
	}
	var all []release
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "#") {
			continue
		}
		match := releaseLine.FindStringSubmatch(line)
		if match == nil {
			t.Fatalf("RELEASES has the line %q: write version, commit and date", line)
		}
		all = append(all, release{match[1], match[2], match[3]})
	}
	if len(all) == 0 {
		t.Fatal("RELEASES names no release")
	}
	return all
}

func TestEveryReleaseIsInTheChangelog(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(moduleRoot, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, heading := range regexp.MustCompile(`(?m)^## \[(\d\S*)\] - (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, heading[1]+" of "+heading[2])
	}
	var released []string
	for _, r := range releases(t) {
		released = append([]string{r.version + " of " + r.date}, released...)
	}
	if got, want := strings.Join(listed, ", "), strings.Join(released, ", "); got != want {
		t.Errorf("CHANGELOG.md lists %s, and RELEASES %s", got, want)
	}
}
