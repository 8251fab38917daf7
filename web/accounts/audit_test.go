package accounts

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheAuditLogIsFilteredByEveryAction reads the actions that are audited from the source.
func TestTheAuditLogIsFilteredByEveryAction(t *testing.T) {
	t.Parallel()
	written := regexp.MustCompile(`(?i:audit|action).*"([a-z-]+)\.[a-z-]+"`)
	var nouns []string
	for _, folder := range []string{"api", "cmd/purser", "jobs", "store", "web"} {
		root := os.DirFS("../../" + folder)
		err := fs.WalkDir(root, ".", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := fs.ReadFile(root, path)
			for _, found := range written.FindAllSubmatch(source, -1) {
				nouns = append(nouns, string(found[1]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(nouns)
	if nouns = slices.Compact(nouns); !slices.Equal(nouns, auditNouns) {
		t.Errorf("audited are\n%q, the filter has\n%q", nouns, auditNouns)
	}
}
