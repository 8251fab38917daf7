package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"purser/fault"
)

// anything is a schema that accepts every value.
var anything = func() *schema {
	s := &schema{types: ^kinds(0), maxProperties: math.MaxInt, maxItems: math.MaxInt}
	s.values, s.items = s, s
	return s
}()

func decodeAnything(body []byte) (input, error) {
	return (&operation{maxBody: maxBody, body: anything}).decodeBody(body)
}

func TestDecodeBody(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want input
	}{
		"an empty object":             {`{}`, input{}},
		"space around it":             {" \t\r\n{} \n", input{}},
		"every kind of value":         {`{"a":null,"b":true,"c":false,"d":"x","e":1,"f":[],"g":{}}`, input{"a": nil, "b": true, "c": false, "d": "x", "e": int64(1), "f": []any{}, "g": input{}}},
		"escapes":                     {`{"a":"\u0041\n\"\\\/"}`, input{"a": "A\n\"\\/"}},
		"a pair of surrogates":        {`{"a":"\ud83d\ude00"}`, input{"a": "😀"}},
		"a noncharacter":              {`{"a":"\uffff"}`, input{"a": "\uffff"}},
		"names that differ by case":   {`{"a":1,"A":2}`, input{"a": int64(1), "A": int64(2)}},
		"the same name at two levels": {`{"a":{"a":1}}`, input{"a": input{"a": int64(1)}}},
		"a name that is empty":        {`{"":1}`, input{"": int64(1)}},
	} {
		t.Run("reads "+name, func(t *testing.T) {
			got, err := decodeAnything([]byte(c.body))
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}

// badBodies are what no operation accepts, with what is said about each.
var badBodies = map[string]struct{ body, message string }{
	"nothing":                      {"", "The body is empty. Send a JSON object."},
	"only space":                   {" \n", "The body is empty. Send a JSON object."},
	"null":                         {"null", "The body must be a JSON object."},
	"an array":                     {"[]", "The body must be a JSON object."},
	"a string":                     {`"{}"`, "The body must be a JSON object."},
	"a number":                     {"1", "The body must be a JSON object."},
	"true":                         {"true", "The body must be a JSON object."},
	"a byte order mark":            {"\xef\xbb\xbf{}", "The body starts with a byte order mark. Send plain UTF-8."},
	"UTF-16":                       {"{\x00}\x00", "The body is not valid JSON after byte 1."},
	"invalid UTF-8":                {"{\"a\":\"\xff\"}", "The body is not valid UTF-8."},
	"an overlong form":             {"{\"a\":\"\xc0\x80\"}", "The body is not valid UTF-8."},
	"a surrogate in UTF-8":         {"{\"a\":\"\xed\xa0\x80\"}", "The body is not valid UTF-8."},
	"a lone high surrogate":        {`{"a":"\ud800"}`, "The body is not valid JSON after byte 6."},
	"a lone low surrogate":         {`{"a":"\udc00x"}`, "The body is not valid JSON after byte 6."},
	"surrogates the wrong way":     {`{"a":"\ude00\ud83d"}`, "The body is not valid JSON after byte 6."},
	"a lone surrogate in a name":   {`{"\ud800":1}`, "The body is not valid JSON after byte 2."},
	"NUL in a string":              {`{"a":"x\u0000"}`, "The body contains the character NUL."},
	"NUL in a name":                {`{"\u0000":1}`, "The body contains the character NUL."},
	"NUL deep down":                {`{"a":[{"b":"\u0000"}]}`, "The body contains the character NUL."},
	"a raw NUL":                    {"{\"a\":\"\x00\"}", "The body is not valid JSON after byte 6."},
	"a raw line break in a string": {"{\"a\":\"\n\"}", "The body is not valid JSON after byte 6."},
	"the same field twice":         {`{"a":1,"a":2}`, `The field "a" appears twice.`},
	"the same field in two forms":  {`{"a":1,"\u0061":2}`, `The field "a" appears twice.`},
	"the same field twice, below":  {`{"x":{"a":1,"a":1}}`, `The field "a" appears twice.`},
	"two objects":                  {`{}{}`, "The body has extra data after the JSON object."},
	"trailing data":                {`{} x`, "The body has extra data after the JSON object."},
	"a trailing NUL":               {"{}\x00", "The body has extra data after the JSON object."},
	"a trailing comma":             {`{"a":1,}`, "The body is not valid JSON after byte 6."},
	"a missing value":              {`{"a":}`, "The body is not valid JSON after byte 5."},
	"an end too early":             {`{"a":`, "The body is truncated: the JSON is not complete."},
	"an open array":                {`{"a":[1`, "The body is truncated: the JSON is not complete."},
	"a bracket of the other kind":  {`{"a":[1}`, "The body is not valid JSON after byte 7."},
	"a name without quotes":        {`{a:1}`, "The body is not valid JSON after byte 1."},
	"a number as a name":           {`{1:1}`, "The body is not valid JSON after byte 1."},
	"single quotes":                {`{'a':1}`, "The body is not valid JSON after byte 1."},
	"a comment":                    {`{/**/}`, "The body is not valid JSON after byte 1."},
	"a leading zero":               {`{"a":01}`, "The body is not valid JSON after byte 6."},
	"a plus sign":                  {`{"a":+1}`, "The body is not valid JSON after byte 5."},
	"a hexadecimal number":         {`{"a":0x1}`, "The body is not valid JSON after byte 6."},
	"NaN":                          {`{"a":NaN}`, "The body is not valid JSON after byte 5."},
	"Infinity":                     {`{"a":-Infinity}`, "The body is not valid JSON after byte 6."},
	"deep nesting":                 {`{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`, "The body nests deeper than 16 levels."},
	"nothing but nesting":          {strings.Repeat("[", maxBody), "The body nests deeper than 16 levels."},
	"nothing but objects":          {strings.Repeat(`{"":`, maxBody/4), "The body nests deeper than 16 levels."},
}

func TestDecodeBodyRefuses(t *testing.T) {
	for name, c := range badBodies {
		t.Run(name, func(t *testing.T) {
			got, err := decodeAnything([]byte(c.body))
			if !fault.Is(err, fault.InvalidRequest) {
				t.Fatalf("got %v, %v", got, err)
			}
			if message := err.(*fault.Fault).Message; message != c.message {
				t.Errorf("the message is %q, want %q", message, c.message)
			}
		})
	}
}

func TestDecodeLimits(t *testing.T) {
	t.Run("reads a body at the limit and refuses one byte more", func(t *testing.T) {
		body := []byte(`{"a":"` + strings.Repeat("x", maxBody-8) + `"}`)
		if len(body) != 16384 {
			t.Fatalf("the body has %d bytes", len(body))
		}
		if _, err := decodeAnything(body); err != nil {
			t.Error(err)
		}
		if _, err := decodeAnything(append(body, ' ')); !fault.Is(err, fault.BodyTooLarge) {
			t.Errorf("one byte more gives %v", err)
		}
	})
	t.Run("reads nesting at the limit", func(t *testing.T) {
		depth := maxDepth - 1 // beside the object
		body := `{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
		if _, err := decodeAnything([]byte(body)); err != nil {
			t.Error(err)
		}
	})
	t.Run("repeats little of a long name", func(t *testing.T) {
		long := strings.Repeat("\u202e", 3000)
		_, err := decodeAnything([]byte(`{"` + long + `":1,"` + long + `":1}`))
		if err == nil || utf8.RuneCountInString(err.Error()) > 150 || strings.Contains(err.Error(), "\u202e") {
			t.Errorf("the message is %v", err)
		}
	})
	t.Run("leaves the body as it was", func(t *testing.T) {
		body := []byte(`{"a":"\u0041","b":[1.50e1,{}]}`)
		before := bytes.Clone(body)
		if _, err := decodeAnything(body); err != nil || !bytes.Equal(body, before) {
			t.Errorf("the body is now %s, %v", body, err)
		}
	})
}

// TestSmallObjectsDoNotGrowABody is not parallel: it counts what the process allocates.
func TestSmallObjectsDoNotGrowABody(t *testing.T) {
	doc := loaded(t)
	filled := func(op *operation, begin, item, end string) []byte {
		n := (op.maxBody - len(begin) - len(end)) / len(item)
		return []byte(begin + strings.TrimSuffix(strings.Repeat(item, n), ",") + end)
	}
	names := strings.Builder{}
	for i := range 100_000 {
		fmt.Fprintf(&names, `"%d":0,`, i)
	}
	batch, group, catalog := doc.named(t, "trackBatch"), doc.named(t, "trackGroup"), doc.named(t, "previewCatalog")
	plans := strings.Repeat(`{"featureLimits":`+repeated(100, `{"a":1}`)+`},`, 1000)
	for name, c := range map[string]struct {
		op   *operation
		body []byte
	}{
		"too many events":          {batch, filled(batch, `{"events":[`, `{"a":1},`, `]}`)},
		"too many of a group":      {group, filled(group, `{"identity":"a","events":[`, `{"a":1},`, `]}`)},
		"events in another field":  {batch, filled(batch, `{"event":[`, `{"a":1},`, `]}`)},
		"objects in place of text": {batch, filled(batch, `{"events":[{"id":[`, `{"a":1},`, `]}]}`)},
		"arrays as properties":     {batch, filled(batch, `{"events":[{"properties":{"a":[`, `[],`, `]}}]}`)},
		"many names":               {batch, []byte(`{"events":[{` + names.String() + `"id":1}]}`)},
		"many properties":          {batch, []byte(`{"events":[{"properties":{` + names.String() + `"a":"b"}}]}`)},
		"plans of small objects":   {catalog, []byte(`{"catalog":{"plans":[` + plans + `{}]}}`)},
		"invalid features":         {catalog, filled(catalog, `{"catalog":{"features":[`, `{"a":1},`, `]}}`)},
		"a thousand large events":  {batch, []byte(`{"events":` + repeated(1000, `{"properties":{`+names.String()[:396]+`"x":0},`+names.String()[:396]+`"x":`+repeated(20, `{"a":1}`)+`}`) + `}`)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = c.op.validateBody(nil, c.body)
		runtime.ReadMemStats(&after)
		if took, most := after.TotalAlloc-before.TotalAlloc, uint64(8*len(c.body)); took > most || len(c.body) > c.op.maxBody {
			t.Errorf("%s: a body of %d bytes takes %d, want at most %d", name, len(c.body), took, most)
		}
	}
}

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]any{
		"0": int64(0), "-0": int64(0), "-0.0": int64(0), "0e999999999": int64(0), "0.000": int64(0),
		"1": int64(1), "1.0": int64(1), "1e3": int64(1000), "1E+3": int64(1000), "10e-1": int64(1), "1.50e1": int64(15),
		"-12": int64(-12), "100": int64(100), "1.23e2": int64(123),
		"9007199254740991": int64(1<<53 - 1), "9007199254740993": int64(1<<53 + 1),
		"9223372036854775807": int64(math.MaxInt64), "-9223372036854775808": int64(math.MinInt64),
		"9223372036854775808": number{whole: true}, "-9223372036854775809": number{whole: true, negative: true},
		"9999999999999999999": number{whole: true}, "10000000000000000000": number{whole: true},
		"1e18": int64(1e18), "1e19": number{whole: true}, "1e999999": number{whole: true}, "-1e999999999999": number{whole: true, negative: true},
		"1.5": number{}, "-1.5": number{negative: true}, "1e-1": number{}, "0.1": number{}, "1e-999999999": number{},
		"1" + strings.Repeat("0", 16000) + "e-16000":  int64(1),
		"0." + strings.Repeat("0", 15999) + "1e16000": int64(1),
		"1." + strings.Repeat("0", 16000):             int64(1),
		strings.Repeat("9", 16000):                    number{whole: true},
	} {
		if got := parseNumber([]byte(text)); got != want {
			t.Errorf("%.40s is %v, want %v", text, got, want)
		}
	}
}

func TestParseNumberIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,21})(\.[0-9]{1,21})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%s is not a number", text)
		}
		var want any
		switch {
		case exact.IsInt() && exact.Num().IsInt64():
			want = exact.Num().Int64()
		default:
			want = number{whole: exact.IsInt(), negative: exact.Sign() < 0}
		}
		if got := parseNumber([]byte(text)); got != want {
			t.Fatalf("%s is %v, want %v", text, got, want)
		}
	})
}

// FuzzDecode: what is accepted is JSON that the standard library reads the same
// way, without NUL, within the limits.
func FuzzDecode(f *testing.F) {
	for _, bad := range badBodies {
		f.Add([]byte(bad.body))
	}
	for _, seed := range []string{
		`{"id":"e1","identity":"u","feature":"f","quantity":1.0,"occurredAt":-0}`,
		`{"n":[9007199254740992,9999999999999999999,1e999999,1.5,0.0]}`, `{"appId":"app_1","Identity":"u"}`, `{"é😀":"\u00e9"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeAnything(body)
		if err != nil {
			if !fault.Is(err, fault.InvalidRequest) && !fault.Is(err, fault.BodyTooLarge) {
				t.Fatalf("%v is no refusal", err)
			}
			return
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		var want map[string]any
		if err := d.Decode(&want); err != nil {
			t.Fatalf("the standard library refuses it: %v", err)
		}
		if _, err := d.Token(); err != io.EOF {
			t.Fatalf("something follows: %v", err)
		}
		compareTrees(t, got, want, 0)
	})
}

func compareTrees(t *testing.T, got, want any, depth int) {
	t.Helper()
	if depth > maxDepth {
		t.Fatal("it is too deep")
	}
	switch want := want.(type) {
	case map[string]any:
		object := got.(input)
		if len(object) != len(want) {
			t.Fatalf("%v has other names than %v", object, want)
		}
		for name, value := range want {
			if !object.Has(name) || strings.Contains(name, "\x00") {
				t.Fatalf("the name %q", name)
			}
			compareTrees(t, object[name], value, depth+1)
		}
	case []any:
		list := got.([]any)
		if len(list) != len(want) {
			t.Fatalf("%v is not %v", list, want)
		}
		for i := range want {
			compareTrees(t, list[i], want[i], depth+1)
		}
	case json.Number:
		if whole, ok := got.(int64); ok {
			exact, _ := new(big.Rat).SetString(string(want))
			if exact == nil || exact.Cmp(new(big.Rat).SetInt64(whole)) != 0 {
				t.Fatalf("%s became %d", want, whole)
			}
		} else if _, ok := got.(number); !ok {
			t.Fatalf("%s became %T", want, got)
		}
	case string:
		if got != want || strings.Contains(want, "\x00") || !utf8.ValidString(want) {
			t.Fatalf("%q became %q", want, got)
		}
	default:
		if got != want {
			t.Fatal(fmt.Sprint(got, " is not ", want))
		}
	}
}
