package component

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestViewsAndStylesheetAgree holds that a class in a view is one in the
// stylesheet, and the other way round: neither keeps what is unused.
func TestViewsAndStylesheetAgree(t *testing.T) {
	t.Parallel()
	styled, used := stylesheetClasses(t), viewClasses(t)
	for class, file := range used {
		if !slices.Contains(styled, class) {
			t.Errorf("%s uses the class %s, which has no rule", file, class)
		}
	}
	for _, class := range styled {
		if used[class] == "" && class != "htmx-request" { // which the script sets while it loads
			t.Errorf("the class %s has a rule, and no view uses it", class)
		}
	}
}

func stylesheetClasses(t *testing.T) []string {
	t.Helper()
	css, err := os.ReadFile("../../static/app.css")
	if err != nil {
		t.Fatal(err)
	}
	selectors := regexp.MustCompile(`(?s)/\*.*?\*/|\{[^{}]*\}`).ReplaceAllString(string(css), "{}")
	var classes []string
	for _, m := range regexp.MustCompile(`\.([a-z][a-z0-9-]*)`).FindAllStringSubmatch(selectors, -1) {
		classes = append(classes, m[1])
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// viewClasses gives each class with a file that uses it.
func viewClasses(t *testing.T) map[string]string {
	t.Helper()
	used := map[string]string{}
	tree := os.DirFS("../..")
	for _, folder := range []string{"views", "payments/sandbox/pages"} {
		err := fs.WalkDir(tree, folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".templ") {
				return err
			}
			content, err := fs.ReadFile(tree, path)
			for _, m := range regexp.MustCompile(`class="([^"]*)"`).FindAllSubmatch(content, -1) {
				for class := range strings.FieldsSeq(string(m[1])) {
					used[class] = path
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return used
}
