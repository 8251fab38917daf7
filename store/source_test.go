package store_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"purser/store/storetest"
)

// A statement that is not in the list is held by no rule, so none may be outside.
func TestNoStatementIsOutsideTheList(t *testing.T) {
	t.Parallel()
	tables := tablesOfTenants(t, connect(t, storetest.URL(t)))
	source := make(map[string]string)
	for _, name := range sourceFiles(t) {
		text, err := os.ReadFile(name)
		noError(t, err)
		source[name] = string(text)
	}
	if len(source) < 20 {
		t.Fatalf("only %d files were read", len(source))
	}
	// The one name that the distribution has to know stands there by itself.
	citus := filepath.Join("internal", "pg", "citus.go")
	source[citus] = strings.Replace(source[citus], `AnchorTable = "app_state"`, `AnchorTable = ""`, 1)
	problems, err := straySQL(source, tables)
	noError(t, err)
	for _, problem := range problems {
		t.Error(problem)
	}
}

func TestStraySQLIsFound(t *testing.T) {
	t.Parallel()
	const declared = "package store\nvar s = pg.Declare(\"name\", `SELECT id FROM wallets WHERE app_id = $1`)\n"
	for name, c := range map[string]struct {
		code string
		want int
	}{
		"none in the list itself":                {declared, 0},
		"none in a piece of listed ones":         {"package store\nconst part = `FROM wallets`\nconst whole = part + ` JOIN wallets`\nvar s = pg.Declare(`n`, `SELECT 1 ` + whole)\n", 0},
		"none in what people read":               {"package store\nvar s = \"There are no wallets yet.\"\n", 0},
		"none in a comment":                      {"package store\n// SELECT id FROM wallets\n", 0},
		"a query":                                {"package store\nfunc f() { db.Query(`SELECT id FROM wallets`) }\n", 1},
		"a query in small letters":               {"package store\nfunc f() { db.Query(`select id from wallets`) }\n", 1},
		"a query over two lines":                 {"package store\nfunc f() { db.Query(`SELECT id FROM\n\t wallets`) }\n", 1},
		"a query of the schema":                  {"package store\nfunc f() { db.Query(`SELECT id FROM public.wallets`) }\n", 1},
		"a quoted name":                          {"package store\nfunc f() { db.Query(`UPDATE \"wallets\" SET x = 1`) }\n", 1},
		"a second table":                         {"package store\nfunc f() { db.Query(`SELECT 1 FROM users u, wallets w`) }\n", 1},
		"a model":                                {"package store\ntype row struct { bun.BaseModel `bun:\"table:wallets,alias:w\"` }\n", 1},
		"a table for the query builder":          {"package store\nfunc f() { db.NewSelect().TableExpr(`wallets AS w`) }\n", 1},
		"a join for the query builder":           {"package store\nfunc f() { db.NewSelect().Join(`JOIN wallets AS w ON true`) }\n", 1},
		"a piece that is used elsewhere as well": {"package store\nconst part = `FROM wallets`\nvar s = pg.Declare(`n`, part)\nfunc f() { db.Query(`SELECT 1 ` + part) }\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := straySQL(map[string]string{"code.go": c.code}, []string{"wallets"})
			if err != nil || len(problems) != c.want {
				t.Errorf("it finds %q, %v", problems, err)
			}
		})
	}
}

// sourceFiles are the files of the store and of the packages below it, without tests and
// without those that only tests use.
func sourceFiles(t *testing.T) (files []string) {
	t.Helper()
	noError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"backup", "embedded", "storetest", "testdata"}, path):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			files = append(files, path)
		}
		return nil
	}))
	return files
}

// straySQL finds texts that name a table of tenants in the way of SQL or of the
// query builder, and are neither in a call of Declare nor a piece of such texts only.
func straySQL(source map[string]string, tables []string) (problems []string, err error) {
	names := strings.Join(tables, "|")
	naming := regexp.MustCompile(`(?i)\b(from|join|into|update|table|only|copy|truncate|lock|using)\s+(public\.)?"?(` + names + `)\b` +
		`|(?i)\b(from|join)\b[^.]*,\s*"?(` + names + `)\b|\btable:"?(` + names + `)\b|^\s*"?(` + names + `)"?(\s+AS\b.*)?$`)
	files := token.NewFileSet()
	var parsed []*ast.File
	for name, text := range source {
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	listed := listedPieces(parsed)
	for _, file := range parsed {
		walk(file, func(n ast.Node, above []ast.Node) {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || slices.ContainsFunc(above, isDeclaration) {
				return
			}
			if slices.ContainsFunc(above, func(n ast.Node) bool { return listed[nameOfConstant(n)] }) {
				return
			}
			text, unquoteErr := strconv.Unquote(literal.Value)
			if unquoteErr != nil {
				err = unquoteErr
			}
			if found := naming.FindString(text); found != "" {
				problems = append(problems, fmt.Sprintf("%s: %q is not in the list of statements", files.Position(literal.Pos()), found))
			}
		})
	}
	return problems, err
}

// listedPieces are the constants that are used in calls of Declare, or in other
// such constants, and nowhere else.
func listedPieces(files []*ast.File) map[string]bool {
	inside, outside := make(map[string][]string), make(map[string]bool)
	for _, file := range files {
		walk(file, func(n ast.Node, above []ast.Node) {
			use, ok := n.(*ast.Ident)
			if !ok || slices.ContainsFunc(above, isDeclaration) {
				if ok {
					inside[use.Name] = append(inside[use.Name], "")
				}
				return
			}
			if parent, ok := above[len(above)-1].(*ast.ValueSpec); ok && slices.Contains(parent.Names, use) {
				return
			}
			for _, n := range above {
				if owner := nameOfConstant(n); owner != "" {
					inside[use.Name] = append(inside[use.Name], owner)
					return
				}
			}
			outside[use.Name] = true
		})
	}
	// A piece of a piece that is used elsewhere is used elsewhere.
	for changed := true; changed; {
		changed = false
		for name, owners := range inside {
			if !outside[name] && slices.ContainsFunc(owners, func(owner string) bool { return outside[owner] }) {
				outside[name], changed = true, true
			}
		}
	}
	listed := make(map[string]bool)
	for name := range inside {
		listed[name] = !outside[name]
	}
	return listed
}

func isDeclaration(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	switch name := call.Fun.(type) {
	case *ast.Ident:
		return name.Name == "Declare"
	case *ast.SelectorExpr:
		return name.Sel.Name == "Declare"
	}
	return false
}

// nameOfConstant is the name that a declaration gives to one text, or empty.
func nameOfConstant(n ast.Node) string {
	if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == 1 && len(spec.Values) == 1 {
		return spec.Names[0].Name
	}
	return ""
}

// walk visits every node with those that it stands in.
func walk(root ast.Node, visit func(n ast.Node, above []ast.Node)) {
	var above []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		if len(above) > 0 {
			visit(n, above)
		}
		above = append(above, n)
		return true
	})
}
