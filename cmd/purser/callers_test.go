package main_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// calledByOthers are methods that code outside the module calls, through an interface.
var calledByOthers = []string{
	"Error", "Unwrap", "String", "MarshalJSON", "UnmarshalJSON", "Scan", "Value", "LogValue", "Describe", "Collect",
}

// reading are the packages whose code may call the store, directly or through an
// interface. The packages that only tests use are none of them.
var reading = []string{"api", "cmd/purser", "cmd/purser/demo", "jobs", "mail", "notify/delivery", "payments/cashier", "payments/sandbox", "store", "store/notifications", "store/payments", "store/people", "store/queue", "store/reports", "store/verify", "store/internal/identities", "web", "web/accounts", "web/catalog", "web/developers", "web/site", "web/support"}

// handles are the packages whose exported methods need a caller.
var handles = []string{"store", "store/internal/identities", "store/notifications", "store/payments", "store/people", "store/queue", "store/reports", "store/verify"}

// A method that only tests call is code that no user runs and a way around the rules:
// it belongs in store/storetest or in an export_test.go.
func TestExportedStoreMethodsHaveProductionCallers(t *testing.T) {
	t.Parallel()
	packages := readExports(t)
	exported, used := map[string]bool{}, map[string]bool{}
	for _, p := range packages {
		if !p.ours() || !slices.Contains(reading, strings.TrimPrefix(p.ImportPath, moduleName+"/")) {
			continue
		}
		checked, info := p.check(t, packages)
		if slices.Contains(handles, strings.TrimPrefix(p.ImportPath, moduleName+"/")) {
			maps.Copy(exported, exportedMethods(checked))
		}
		for _, object := range info.Uses {
			function, isFunction := object.(*types.Func)
			if !isFunction {
				continue
			}
			used[function.FullName()] = true
			if receiver := function.Signature().Recv(); receiver != nil && types.IsInterface(receiver.Type()) {
				used[function.Name()] = true // whichever type is behind the interface
			}
		}
	}
	if len(exported) < 100 || !used["("+storePath+".App).Deposit"] {
		t.Fatalf("%d exported methods and %d used functions found: the check does not see the store", len(exported), len(used))
	}
	for _, method := range slices.Sorted(maps.Keys(exported)) {
		name := method[strings.LastIndex(method, ".")+1:]
		if !used[method] && !used[name] && !slices.Contains(calledByOthers, name) {
			t.Errorf("%s has no production caller: move it to store/storetest or an export_test.go", method)
		}
	}
}

const storePath = moduleName + "/store"

// exportedMethods are the full names of the methods of a package's exported types.
func exportedMethods(p *types.Package) map[string]bool {
	found := map[string]bool{}
	for _, name := range p.Scope().Names() {
		declared, isType := p.Scope().Lookup(name).(*types.TypeName)
		if !isType || !declared.Exported() {
			continue
		}
		named, isNamed := declared.Type().(*types.Named)
		if !isNamed {
			continue
		}
		for method := range named.Methods() {
			if method.Exported() {
				found[method.FullName()] = true
			}
		}
	}
	return found
}

// exportedPackage is what go list says about a package and its compiled form.
type exportedPackage struct {
	ImportPath string
	Dir        string
	Export     string
	GoFiles    []string
}

func (p exportedPackage) ours() bool { return strings.HasPrefix(p.ImportPath, moduleName+"/") }

// check types the package's production code against the compiled forms of what it
// imports, which the build of the tests has left in Go's cache.
func (p exportedPackage) check(t *testing.T, all map[string]exportedPackage) (*types.Package, *types.Info) {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(all[path].Export)
	})}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked, err := config.Check(p.ImportPath, set, files, info)
	if err != nil {
		t.Fatal(err)
	}
	return checked, info
}

func readExports(t *testing.T) map[string]exportedPackage {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(outputOf(t, "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")))
	packages := map[string]exportedPackage{}
	for {
		var next exportedPackage
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("reading the output of go list: %v", err)
		}
		packages[next.ImportPath] = next
	}
}
