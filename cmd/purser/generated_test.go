package main_test

import (
	"bytes"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"github.com/a-h/templ/generator"
	"github.com/a-h/templ/parser/v2"
)

// TestGeneratedCodeIsCurrent generates in memory, as templ's own command does it: a
// check that repaired the tree would pass the second time without anybody having
// committed the result, and the command takes half a minute to build.
func TestGeneratedCodeIsCurrent(t *testing.T) {
	t.Parallel()
	committed, generated := map[string]string{}, map[string]string{}
	for _, folder := range []string{"views", "payments/sandbox/pages"} {
		root := filepath.Join(moduleRoot, folder)
		for path, code := range readTree(t, root, "_templ.go") {
			committed[folder+"/"+path] = code
		}
		for path, template := range readTree(t, root, ".templ") {
			generated[folder+"/"+strings.TrimSuffix(path, ".templ")+"_templ.go"] = generate(t, path, template)
		}
	}
	if len(generated) == 0 {
		t.Fatal("nothing was generated")
	}
	for path, content := range generated {
		if committed[path] != content {
			t.Errorf("%s is stale: run make generate", path)
		}
	}
	for path := range committed {
		if _, exists := generated[path]; !exists {
			t.Errorf("%s has no template any more: run make generate", path)
		}
	}
}

// generate gives the code of a template. Its path is in what it says when it cannot
// be rendered.
func generate(t *testing.T, path, template string) string {
	t.Helper()
	parsed, err := parser.ParseString(template)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var code bytes.Buffer
	if _, err := generator.Generate(parsed, &code, generator.WithVersion(templ.Version()), generator.WithFileName(path)); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	formatted, err := format.Source(code.Bytes())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return string(formatted)
}

// readTree reads every file below the folder whose name has the ending.
func readTree(t *testing.T, folder, ending string) map[string]string {
	t.Helper()
	contents := map[string]string{}
	tree := os.DirFS(folder)
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ending) {
			return err
		}
		content, err := fs.ReadFile(tree, path)
		contents[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return contents
}
