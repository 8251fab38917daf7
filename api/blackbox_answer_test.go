package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"purser/fault"
	"purser/ids"
)

var errorf = fmt.Errorf

// is fails unless the answer has the status.
func (a answer) is(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: got %d, want %d\n%s", a, a.status, status, a.body)
	}
	return a
}

// refused fails unless the answer is the refusal that the catalogue names.
func (a answer) refused(code fault.Code) answer {
	a.t.Helper()
	a.is(statuses[fault.New(code).Kind()])
	if got := a.text("error"); got != string(code) {
		a.t.Fatalf("%s: refused with %s, want %s\n%s", a, got, code, a.body)
	}
	return a
}

// object is the body with its numbers as they were written.
func (a answer) object() fields {
	a.t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	decoder.UseNumber()
	var object fields
	if err := decoder.Decode(&object); err != nil {
		a.t.Fatalf("%s: %v", a, err)
	}
	return object
}

func (a answer) text(name string) string {
	a.t.Helper()
	text, isText := a.object()[name].(string)
	if !isText {
		a.t.Fatalf("%s: %s is no text in %s", a, name, a.body)
	}
	return text
}

// has fails unless the body has exactly these fields with these values. A
// matcher stands for a value that isn't known before.
func (a answer) has(want fields) answer {
	a.t.Helper()
	if problem := differs(a.object(), want); problem != "" {
		a.t.Fatalf("%s: %s\n%s", a, problem, a.body)
	}
	return a
}

// shows fails unless these fields have these values; others may be there too.
func (a answer) shows(want fields) answer {
	a.t.Helper()
	object := a.object()
	for name := range object {
		if _, asked := want[name]; !asked {
			delete(object, name)
		}
	}
	if problem := differs(object, want); problem != "" {
		a.t.Fatalf("%s: %s\n%s", a, problem, a.body)
	}
	return a
}

// matcher says what is wrong with a value, or nothing.
type matcher func(value any) string

// idOf matches an id of a kind.
func idOf(prefix string) matcher {
	return func(value any) string {
		text, _ := value.(string)
		if _, err := ids.Parse(prefix, text); err != nil {
			return fmt.Sprintf("%v is no id of the kind %s", value, prefix)
		}
		return ""
	}
}

// recent matches a time in milliseconds that has just been.
func recent(n *node) matcher {
	return func(value any) string {
		number, _ := value.(json.Number)
		at, err := number.Int64()
		if age := n.clock.now() - at; err != nil || age < 0 || age > 600_000 { // minutes, for a busy machine
			return fmt.Sprintf("%v is no recent time", value)
		}
		return ""
	}
}

// differs compares a decoded value with the expected one and says where they differ.
func differs(got, want any) string {
	switch want := want.(type) {
	case matcher:
		return want(got)
	case fields:
		object, isObject := got.(fields)
		if !isObject {
			return fmt.Sprintf("%v is no object", got)
		}
		return differsIn(object, want)
	case []fields:
		list, isList := got.([]any)
		if !isList || len(list) != len(want) {
			return fmt.Sprintf("%v does not have %d items", got, len(want))
		}
		for i := range want {
			if problem := differs(list[i], want[i]); problem != "" {
				return fmt.Sprintf("[%d] %s", i, problem)
			}
		}
		return ""
	case int, int64:
		want = json.Number(fmt.Sprint(want))
		return differs(got, want)
	default:
		if !reflect.DeepEqual(got, want) {
			return fmt.Sprintf("is %v (%[1]T), want %v (%[2]T)", got, want)
		}
		return ""
	}
}

func differsIn(got, want fields) string {
	if has, should := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(has, should) {
		return fmt.Sprintf("has the fields %v, want %v", has, should)
	}
	for name := range want {
		if problem := differs(got[name], want[name]); problem != "" {
			return name + " " + problem
		}
	}
	return ""
}

func TestDiffers(t *testing.T) {
	t.Parallel()
	got := fields{"a": json.Number("1"), "b": nil, "c": []any{fields{"d": "x"}}}
	if problem := differs(got, fields{"a": 1, "b": nil, "c": []fields{{"d": "x"}}}); problem != "" {
		t.Errorf("equal objects differ: %s", problem)
	}
	for name, want := range map[string]fields{
		"a missing field":    {"a": 1, "b": nil},
		"a field too many":   {"a": 1, "b": nil, "c": []fields{{"d": "x"}}, "e": nil},
		"another number":     {"a": 2, "b": nil, "c": []fields{{"d": "x"}}},
		"another value":      {"a": 1, "b": nil, "c": []fields{{"d": "y"}}},
		"another length":     {"a": 1, "b": nil, "c": []fields{}},
		"a matcher that not": {"a": idOf("crd"), "b": nil, "c": []fields{{"d": "x"}}},
		"a number as text":   {"a": "1", "b": nil, "c": []fields{{"d": "x"}}},
		"zero for null":      {"a": 1, "b": 0, "c": []fields{{"d": "x"}}},
		"a huge number":      {"a": int64(math.MaxInt64), "b": nil, "c": []fields{{"d": "x"}}},
	} {
		if differs(got, want) == "" {
			t.Errorf("%s is not noticed", name)
		}
	}
}
