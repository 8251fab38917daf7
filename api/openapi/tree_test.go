package openapi

import (
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, text string) *Object {
	t.Helper()
	root, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestTheTreeKeepsOrderAndNumbers(t *testing.T) {
	t.Parallel()
	const text = `{"b":1,"a":{"z":[-1,{"y":"<x>"}],"9":true},"c":null,"big":9007199254740991,"part":0.5}`
	root := parse(t, text)
	encoded, err := root.JSON()
	if err != nil || string(encoded) != text {
		t.Errorf("it becomes %s, %v", encoded, err)
	}
	if root.Get("b") != int64(1) || root.Get("big") != int64(9007199254740991) || root.Get("part") != 0.5 {
		t.Errorf("the numbers are %T, %T and %T", root.Get("b"), root.Get("big"), root.Get("part"))
	}
	if !root.Has("c") || root.Has("d") || !root.Object("a").Bool("9") || root.Object("nothing").Object("at all").Text("x") != "" {
		t.Error("members are not found")
	}
	if got := parse(t, "b: 1\na:\n  - x\n").Names(); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("YAML is read as %v", got)
	}
}

func TestObjectsCanBeChanged(t *testing.T) {
	t.Parallel()
	root := New("a", int64(1), "b", "x")
	copied := root.Clone()
	root.Set("a", int64(2))
	root.Set("c", New("d", true))
	root.Delete("b")
	if encoded, err := root.JSON(); err != nil || string(encoded) != `{"a":2,"c":{"d":true}}` {
		t.Errorf("it is %s, %v", encoded, err)
	}
	if encoded, err := copied.JSON(); err != nil || string(encoded) != `{"a":1,"b":"x"}` {
		t.Errorf("the copy is %s, %v", encoded, err)
	}
}

func TestACopySharesNothing(t *testing.T) {
	t.Parallel()
	const text = `{"a":{"b":[{"c":1},null]}}`
	root := parse(t, text)
	copied := root.Copy()
	copied.Object("a").List("b")[0].(*Object).Set("c", int64(2))
	copied.Object("a").List("b")[1] = true
	copied.Object("a").Set("d", "x")
	if encoded, err := root.JSON(); err != nil || string(encoded) != text {
		t.Errorf("the original is %s, %v", encoded, err)
	}
	if encoded, err := copied.JSON(); err != nil || string(encoded) != `{"a":{"b":[{"c":2},true],"d":"x"}}` {
		t.Errorf("the copy is %s, %v", encoded, err)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	root := parse(t, `{"one":{"$ref":"#/two"},"two":{"type":"string","description":"two"},"loop":{"$ref":"#/loop"}}`)
	for name, c := range map[string]struct{ node, want string }{
		"a node without a reference":      {`{"a":1}`, `{"a":1}`},
		"a reference to a reference":      {`{"$ref":"#/one"}`, `{"type":"string","description":"two"}`},
		"what stands beside it wins":      {`{"$ref":"#/two","description":"own"}`, `{"type":"string","description":"own"}`},
		"a reference to nothing":          {`{"$ref":"#/three"}`, "refers to nothing"},
		"a reference to another document": {`{"$ref":"other.json#/two"}`, "refers to nothing"},
		"a circle":                        {`{"$ref":"#/loop"}`, "refers to itself"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node, err := root.Resolve(parse(t, c.node))
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("the error is %v, want %q", err, c.want)
				}
				return
			}
			if encoded, err := node.JSON(); err != nil || string(encoded) != c.want {
				t.Errorf("it is %s, %v, want %s", encoded, err, c.want)
			}
		})
	}
	if encoded, err := root.JSON(); err != nil || !strings.Contains(string(encoded), `"one":{"$ref":"#/two"}`) {
		t.Errorf("resolving changes the document to %s, %v", encoded, err)
	}
}

func TestParseRefusesOtherDocuments(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"- a\n- b\n", "a: [", "", "1"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
