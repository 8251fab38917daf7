package fidelity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// route is one of the sandbox's, with its path as Stripe has it.
type route struct{ method, pattern string }

// unasked gives the routes that none of the requests went to, which are written
// as method and path. A path that is written out in the table has its own route.
func unasked(routes []route, asked map[string]bool) []route {
	used := map[route]bool{}
	for request := range asked {
		var to route
		best := -1
		for _, r := range routes {
			if literal, fits := matchPath(r.method+" "+r.pattern, request); fits && literal > best {
				to, best = r, literal
			}
		}
		used[to] = true
	}
	return slices.DeleteFunc(slices.Clone(routes), func(r route) bool { return used[r] })
}

// fewestRoutes is how many billing needs.
const fewestRoutes = 45

// sandboxRoutes reads the sandbox's own table, so that a new route cannot be
// left out of the conversation.
func sandboxRoutes(t testing.TB) (routes []route) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../routes.go", nil, 0)
	must(t, err)
	methods := map[string]string{"get": "GET", "post": "POST", "remove": "DELETE"}
	ast.Inspect(file, func(node ast.Node) bool {
		call, isCall := node.(*ast.CallExpr)
		if !isCall || len(call.Args) != 2 {
			return true
		}
		verb, named := call.Fun.(*ast.Ident)
		path, written := call.Args[0].(*ast.BasicLit)
		if named && written && methods[verb.Name] != "" {
			text, err := strconv.Unquote(path.Value)
			must(t, err)
			routes = append(routes, route{methods[verb.Name], "/v1/" + text})
		}
		return true
	})
	if len(routes) < fewestRoutes {
		t.Fatalf("only %d routes are found in the sandbox's table", len(routes))
	}
	return routes
}
