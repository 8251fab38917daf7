package api

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"purser/api/openapi"
	"purser/fault"
	"purser/tenancy"
)

// expanded is the document as maps, which tests walk and compare.
func expanded(t testing.TB) input {
	t.Helper()
	root, err := parseDocument("")
	if err != nil {
		t.Fatal(err)
	}
	return asInput(root).(input)
}

// asInput turns objects of the document into what a request's body is read as.
func asInput(value any) any {
	switch value := value.(type) {
	case *openapi.Object:
		in := input{}
		for name, member := range value.All() {
			in[name] = asInput(member)
		}
		return in
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = asInput(item)
		}
		return list
	}
	return value
}

// asObject is the opposite of asInput, for nodes that a test makes up.
func asObject(in input) *openapi.Object { return asTree(in).(*openapi.Object) }

func asTree(value any) any {
	switch value := value.(type) {
	case input:
		object := openapi.New()
		for _, name := range slices.Sorted(maps.Keys(value)) {
			object.Set(name, asTree(value[name]))
		}
		return object
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = asTree(item)
		}
		return list
	}
	return value
}

func texts[T ~string](list []T) (all []any) {
	for _, each := range list {
		all = append(all, string(each))
	}
	return all
}

// TestOnlyAGroupNamesTheEventThatRefusedIt: all other errors are a code and a message.
func TestOnlyAGroupNamesTheEventThatRefusedIt(t *testing.T) {
	t.Parallel()
	doc, err := loadDocument("")
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range doc.operations {
		for status, r := range op.responses {
			if status < 400 {
				continue
			}
			want := []string{"error", "message"}
			if op.id == "trackGroup" && slices.Contains([]int{404, 409, 422}, status) {
				want = append(want, "index")
			}
			var got []string
			for _, p := range r.body.properties {
				got = append(got, p.name)
			}
			if !slices.Equal(got, want) || r.body.open {
				t.Errorf("%s: the error of %d has the fields %v, want %v and no other", op.id, status, got, want)
			}
		}
	}
}

func TestTheDocumentListsEveryErrorCode(t *testing.T) {
	t.Parallel()
	root := expanded(t)
	if got := root.Object("components").Object("schemas").Object("ErrorCode")["enum"]; !slices.Equal(got.([]any), texts(fault.Codes())) {
		t.Errorf("ErrorCode is %v", got)
	}
	c := newCompiler(asObject(root))
	listed := map[string]bool{"method_not_allowed": true}
	for path, methods := range root.Object("paths") {
		for method, node := range methods.(input) {
			node := node.(input)
			at := node.Text("operationId")
			var shown []string
			for status, response := range node.Object("responses") {
				number, _ := strconv.Atoi(status)
				if number < 400 {
					continue
				}
				examples := asInput(c.resolve(asObject(response.(input)), at)).(input).Object("content").Object("application/json").Object("examples")
				for code, example := range examples {
					want := input{"error": code, "message": fault.New(fault.Code(code)).Message}
					if value := example.(input).Object("value"); !maps.Equal(value, want) || statusOf(code) != number {
						t.Errorf("%s %s %s: the example of %d is %v", at, method, path, number, value)
					}
					shown = append(shown, code)
					listed[code] = true
				}
			}
			slices.Sort(shown)
			if !slices.Equal(texts(shown), node["x-errors"].([]any)) {
				t.Errorf("%s: x-errors is %v, and the examples are %v", at, node["x-errors"], shown)
			}
		}
	}
	// What only people meet, on pages.
	pages := []fault.Code{fault.PermissionNotHeld, fault.APIKeyNotFound, fault.LastOwner, fault.Archived, fault.APIKeyNotRotatable, fault.ProviderInUse, fault.PaymentNotRefundable}
	for _, code := range fault.Codes() {
		if listed[string(code)] == slices.Contains(pages, code) {
			t.Errorf("%s: an operation lists it: %t", code, listed[string(code)])
		}
	}
	if err := c.err(); err != nil {
		t.Error(err)
	}
}

func statusOf(code string) int { return fault.New(fault.Code(code)).Kind().Status() }

func TestAWrongListOfErrorsIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ operation, complaint string }{
		"an unknown code":          {`{"x-errors":["nonsense"],"responses":{}}`, `"nonsense" is not in the catalogue`},
		"no list":                  {`{"responses":{}}`, "x-errors is missing"},
		"a code without a status":  {`{"x-errors":["plan_not_found"],"responses":{}}`, "plan_not_found has a status that is not described"},
		"a status without a code":  {`{"x-errors":[],"responses":{"409":{"$ref":"#/components/responses/Conflict"}}}`, "no code is given for 409"},
		"a code of another status": {`{"x-errors":["plan_not_found"],"responses":{"409":{"$ref":"#/components/responses/Conflict"}}}`, "plan_not_found has a status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := []byte(`{"paths":{"/a":{"get":` + c.operation + `}},"components":{"responses":{"Conflict":{"x-errors":[],"content":{"application/json":{}}}},"schemas":{"ErrorCode":{}}}}`)
			root, err := openapi.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := expandDocument(root, ""); err == nil || !strings.Contains(err.Error(), c.complaint) {
				t.Errorf("the complaint is %v, want %q", err, c.complaint)
			}
		})
	}
}

// TestGeneratorsReadTheDocumentRight holds the rules by which openapi-typescript,
// oapi-codegen and hey-api make clients that compile: `make clients` runs them.
func TestGeneratorsReadTheDocumentRight(t *testing.T) {
	t.Parallel()
	root := expanded(t)
	tree, schemas := asObject(root), root.Object("components").Object("schemas")
	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch node := node.(type) {
		case []any:
			for i, item := range node {
				walk(fmt.Sprintf("%s/%d", at, i), item)
			}
		case input:
			if node.Has("$ref") && node.Has("default") {
				t.Errorf("%s: a default beside a reference makes the field required", at)
			}
			for name, property := range node.Object("properties") {
				if property, isSchema := property.(input); isSchema && property.Has("default") { // not of a property called properties
					t.Errorf("%s/%s: a default in a property makes the field required", at, name)
				}
			}
			for name, member := range node {
				if name != "example" && name != "examples" {
					walk(at+"/"+name, member)
				}
			}
		}
	}
	walk("", schemas)
	for path, methods := range root.Object("paths") {
		for method, node := range methods.(input) {
			node := node.(input)
			for status, response := range node.Object("responses") {
				schema := response.(input).Object("content").Object("application/json").Object("schema")
				whole := newCompiler(tree).schema(openapi.New("$ref", schema["$ref"]), path)
				if schema.Has("$ref") && whole.oneOf != nil && !newCompiler(tree).resolve(asObject(schema), path).Has("x-go-type") {
					t.Errorf("%s %s %s: null becomes an empty struct without x-go-type", method, path, status)
				}
				if schema.Has("oneOf") {
					t.Errorf("%s %s %s: null needs a schema with a name", method, path, status)
				}
			}
		}
	}
	for name, schema := range schemas {
		if schema := schema.(input); strings.HasSuffix(name, "Address") && schema.Text("format") == "uri" {
			t.Errorf("%s: an address with a placeholder is no URI", name)
		}
	}
	address := newCompiler(tree).schema(asObject(schemas.Object("WebAddress")), "WebAddress")
	if v := address.check("https://shop.test/thanks?session={CHECKOUT_SESSION_ID}"); v != nil {
		t.Errorf("a placeholder is refused: it %s", v.broken)
	}
	var names []string
	for p := range tenancy.APIPermissions().Each() {
		names = append(names, p.String())
	}
	if got := schemas.Object("Permission")["enum"].([]any); !slices.Equal(got, texts(names)) {
		t.Errorf("Permission is %v, want %v", got, names)
	}
}
