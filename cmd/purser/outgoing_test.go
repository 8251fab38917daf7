package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// ownClients are the packages that make HTTP clients without httpd/outgoing: it itself,
// and what runs against a server of its own.
var ownClients = []string{"httpd/outgoing", "cmd/bench"}

// A client that is made elsewhere can be held for ever by a server that answers 101.
func TestClientsAreMadeInOnePlace(t *testing.T) {
	t.Parallel()
	for _, one := range readPackages(t) {
		if slices.Contains(ownClients, one.name) {
			continue
		}
		for _, file := range one.GoFiles {
			for _, place := range madeClients(t, filepath.Join(one.Dir, file)) {
				t.Errorf("%s makes a client: take one of httpd/outgoing", place)
			}
		}
	}
}

// madeClients finds every http.Client that the file makes, and what sends by the default one.
func madeClients(t *testing.T, path string) (places []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	known := importedAs(file, "net/http")
	if known == "net/http" {
		known = "http"
	}
	is := func(node ast.Node, names ...string) bool {
		selector, isSelector := node.(*ast.SelectorExpr)
		if !isSelector {
			return false
		}
		of, isName := selector.X.(*ast.Ident)
		return isName && of.Name == known && slices.Contains(names, selector.Sel.Name)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		literal, isLiteral := node.(*ast.CompositeLit)
		if isLiteral && is(literal.Type, "Client") || is(node, "DefaultClient", "Get", "Head", "Post", "PostForm") {
			places = append(places, set.Position(node.Pos()).String())
		}
		return true
	})
	return places
}
