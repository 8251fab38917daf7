package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// oracle judges bodies by the same document with a validator of the whole of
// JSON Schema, which ours must agree with.
type oracle struct {
	compiler *jsonschema.Compiler
}

const documentURL = "file:///openapi.json"

func newOracle(t testing.TB) oracle {
	t.Helper()
	encoded := loaded(t).json
	// Our own format, for which the oracle takes the one that it knows: it is as lenient about braces.
	encoded = bytes.ReplaceAll(encoded, []byte(`"format":"web-address"`), []byte(`"format":"uri"`))
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: "int64", Validate: isInt64})
	if err := c.AddResource(documentURL, tree); err != nil {
		t.Fatal(err)
	}
	return oracle{c}
}

// isInt64 is the format of OpenAPI, which the oracle does not know.
func isInt64(value any) error {
	text, ok := value.(json.Number)
	if !ok {
		return nil
	}
	exact, ok := new(big.Rat).SetString(string(text))
	if !ok || exact.IsInt() && !exact.Num().IsInt64() {
		return fmt.Errorf("%s is no int64", text)
	}
	return nil
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func (o oracle) schema(t testing.TB, path ...string) *jsonschema.Schema {
	t.Helper()
	pointer := ""
	for _, segment := range path {
		pointer += "/" + escapePointer.Replace(segment)
	}
	compiled, err := o.compiler.Compile(documentURL + "#" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func (o oracle) body(t testing.TB, op *operation) *jsonschema.Schema {
	t.Helper()
	return o.schema(t, "paths", op.path, strings.ToLower(op.method), "requestBody", "content", "application/json", "schema")
}

// agree fails when ours and the oracle judge a body differently, and reports
// whether both accept it.
func agree(t rapid.TB, ours *schema, theirs *jsonschema.Schema, body []byte) bool {
	t.Helper()
	value, err := decodeJSON(body, anything, false)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	v, objection := ours.check(value), theirs.Validate(tree)
	kept, err := decodeJSON(body, ours, false)
	if again := ours.check(kept); err != nil || (again == nil) != (v == nil) || v != nil && *again != *v {
		t.Fatalf("%s\ndecoded as a whole: %+v\nby its schema: %+v, %v", body, v, again, err)
	}
	if v != nil && strings.Contains(v.broken, "bytes together") { // JSON Schema has no such limit
		return false
	}
	if (v == nil) != (objection == nil) {
		t.Fatalf("%s\nours: %+v\noracle: %v", body, v, objection)
	}
	return v == nil
}

func TestOracleAgreesOnGeneratedBodies(t *testing.T) {
	judge := newOracle(t)
	accepted, refused := 0, 0
	for _, op := range loaded(t).operations {
		if op.body == nil {
			continue
		}
		theirs := judge.body(t, op)
		t.Run(op.id, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				if agree(t, op.body, theirs, []byte(drawJSON(t, op.body, 0))) {
					accepted++
				} else {
					refused++
				}
			})
		})
	}
	if all := accepted + refused; accepted < all/5 || refused < all/5 {
		t.Errorf("the bodies are too much alike: %d accepted, %d refused", accepted, refused)
	}
}

func TestOracleAgreesOnBounds(t *testing.T) {
	judge, doc := newOracle(t), loaded(t)
	for id, f := range fields {
		op := doc.named(t, id)
		theirs, body := judge.body(t, op), exampleBody(t, op)
		for name, bounds := range f.bounds {
			for _, value := range append(bounds.good, bounds.bad...) {
				if !hugeExponent.MatchString(value) {
					agree(t, op.body, theirs, []byte(withField(body, name, value)))
				}
			}
		}
	}
}

// TestOracleReadsTheWholeDocument compiles every schema of the document, which
// checks each against the schema of JSON Schema itself.
func TestOracleReadsTheWholeDocument(t *testing.T) {
	judge := newOracle(t)
	root := expanded(t)
	var walk func(path []string, node any)
	walk = func(path []string, node any) {
		switch node := node.(type) {
		case []any:
			for i, item := range node {
				walk(append(path, fmt.Sprint(i)), item)
			}
		case input:
			for name, member := range node {
				switch name {
				case "schema":
					judge.schema(t, append(path, name)...)
				case "example", "examples":
				default:
					walk(append(path, name), member)
				}
			}
		}
	}
	walk(nil, root)
	for name := range root.Object("components").Object("schemas") {
		judge.schema(t, "components", "schemas", name)
	}
}

// drawJSON draws a value near the bounds of a schema, mostly of its type.
func drawJSON(t *rapid.T, s *schema, depth int) string {
	if depth > 0 && rarely(t) {
		return rapid.SampledFrom([]string{`null`, `true`, `0`, `1`, `"x"`, `""`, `[]`, `{}`, `1.5`, `[null]`, `{"a":1}`}).Draw(t, "other type")
	}
	switch {
	case s.types&kindObject != 0:
		return drawObject(t, s, depth)
	case s.types&kindArray != 0:
		n := rapid.SampledFrom([]int{0, 1, 1, 2, 2, s.maxItems, s.maxItems + 1}).Draw(t, "items")
		if n > 2 {
			return repeated(n, drawJSON(t, s.items, depth+1))
		}
		list := make([]string, n)
		for i := range list {
			list[i] = drawJSON(t, s.items, depth+1)
		}
		return "[" + strings.Join(list, ",") + "]"
	case s.types&kindInteger != 0:
		return drawInteger(t, s)
	case s.types&kindBoolean != 0:
		return rapid.SampledFrom([]string{`true`, `false`}).Draw(t, "boolean")
	default:
		return drawText(t, s)
	}
}

// rarely is true about once in thirty times.
func rarely(t *rapid.T) bool { return rapid.Byte().Draw(t, "rarely")%32 == 29 }

func drawObject(t *rapid.T, s *schema, depth int) string {
	var members []string
	if s.values != nil {
		for i := range rapid.SampledFrom([]int{0, 1, 2, s.maxProperties, s.maxProperties + 1}).Draw(t, "members") {
			name := rapid.SampledFrom([]string{"a", "A-z_0", "", "a b", "é", strings.Repeat("a", s.propertyNames.maxLength), strings.Repeat("a", s.propertyNames.maxLength+1)}).Draw(t, "name")
			members = append(members, fmt.Sprintf("%q:%s", fmt.Sprint(name, i), drawJSON(t, s.values, depth+1)))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	for _, p := range s.properties {
		if p.required && !rarely(t) || !p.required && rapid.Bool().Draw(t, "given") {
			members = append(members, fmt.Sprintf("%q:%s", p.name, drawJSON(t, p.schema, depth+1)))
		}
	}
	if rarely(t) {
		members = append(members, `"stranger":1`)
	}
	return "{" + strings.Join(members, ",") + "}"
}

func drawInteger(t *rapid.T, s *schema) string {
	near := []int64{1, 2, 3, 4, 5, 100, s.minimum, s.maximum}
	value := rapid.SampledFrom(near).Draw(t, "bound")
	exact := new(big.Int).Add(big.NewInt(value), big.NewInt(rapid.SampledFrom([]int64{0, 0, 0, 1, -1}).Draw(t, "off by")))
	form := rapid.SampledFrom([]string{"%s", "%s", "%s", "%s", "%s.0", "%se0", "%s.0e1", "%se2", "%s.50", "%se-1", "%se30"}).Draw(t, "form")
	return fmt.Sprintf(form, exact)
}

// drawText takes the example's kind of text most of the time, so that bodies with
// many fields are accepted now and then.
func drawText(t *rapid.T, s *schema) string {
	fitting := rapid.SampledFrom([]string{"1", "12", "9999999999999999999"})
	switch {
	case s.enum != nil:
		fitting = rapid.SampledFrom(s.enum)
	case s.uri:
		fitting = rapid.SampledFrom([]string{"https://a.example/x", "http://[::1]:8080", "https://a.example/?a={B}#c"})
	case s.pattern != nil && s.pattern.MatchString("eur"):
		fitting = rapid.SampledFrom([]string{"eur", "usd"})
	}
	pools := []*rapid.Generator[string]{
		fitting, fitting, fitting, fitting, fitting, fitting, fitting, fitting,
		rapid.SampledFrom([]string{"", "a", "0", "00", "a_b", "-a", "A", "é", "😀", "a\n", " ", "https://[fe80::1%25en0]/", "https://a:b", "https://", "mailto:a@b"}),
		rapid.StringMatching(`(https?|HTTPS|Http)://[a-z\[\]:.%@]{0,12}(/[a-z{}%2\\]{0,5})?`),
		rapid.StringN(0, 30, -1).Filter(func(text string) bool { return !strings.Contains(text, "\x00") }),
	}
	if s.maxLength < 5000 {
		pools = append(pools, rapid.Custom(func(t *rapid.T) string {
			n := rapid.IntRange(s.maxLength-1, s.maxLength+1).Draw(t, "length")
			return strings.Repeat(rapid.SampledFrom([]string{"a", "1", "é", "😀"}).Draw(t, "letter"), n)
		}))
	}
	text, err := json.Marshal(rapid.OneOf(pools...).Draw(t, "text"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// hugeExponent is what the oracle would spend minutes and gigabytes on.
var hugeExponent = regexp.MustCompile(`[eE][+-]?0*[0-9]{3}`)

// FuzzOracle: whatever decodes, ours and the oracle judge alike.
func FuzzOracle(f *testing.F) {
	judge, doc := newOracle(f), loaded(f)
	type pair struct {
		ours   *schema
		theirs *jsonschema.Schema
	}
	var pairs []pair
	for _, op := range doc.operations {
		if op.body != nil {
			pairs = append(pairs, pair{op.body, judge.body(f, op)})
			f.Add([]byte(exampleBody(f, op)), uint8(len(pairs)-1))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, which uint8) {
		if _, err := decodeAnything(body); err != nil || hugeExponent.Match(body) {
			return
		}
		p := pairs[int(which)%len(pairs)]
		agree(t, p.ours, p.theirs, body)
	})
}

// sampleEvent is a body of POST /v1/events as a busy caller sends it.
var sampleEvent = []byte(`{"id":"019b76da-a800-7c3e-8f5a-2d9b1e4c7a60","identity":"user_4821@example.com","feature":"chat-completion","amountNanocredits":"1250000000","occurredAt":1767225600000,"entityId":"conversation-99","quantity":1200}`)

func BenchmarkDecodeUsage(b *testing.B) {
	op := loaded(b).named(b, "trackUsage")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := op.decodeBody(sampleEvent); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckUsage(b *testing.B) {
	op := loaded(b).named(b, "trackUsage")
	object, err := decodeAnything(sampleEvent)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if v := op.body.check(object); v != nil {
			b.Fatal(v)
		}
	}
}

func BenchmarkReadUsage(b *testing.B) {
	op := loaded(b).named(b, "trackUsage")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := op.validateBody(nil, sampleEvent); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOracleUsage is what a general validator takes for the same body.
func BenchmarkOracleUsage(b *testing.B) {
	theirs := newOracle(b).body(b, loaded(b).named(b, "trackUsage"))
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(sampleEvent))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := theirs.Validate(tree); err != nil {
			b.Fatal(err)
		}
	}
}
