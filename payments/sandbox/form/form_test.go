package form

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, query string) *Fields {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	fields, err := Parse(values)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

func wantProblem(t *testing.T, err error, code, param string) {
	t.Helper()
	var problem *Problem
	if !errors.As(err, &problem) || problem.Code != code || problem.Param != param {
		t.Errorf("the problem is %+v, want %s with %s", err, code, param)
	}
}

func TestFields(t *testing.T) {
	t.Run("reads values of every kind", func(t *testing.T) {
		f := parse(t, "name=Ada&count=-7&on=true&off=false&empty=")
		if f.Text("name") != "Ada" || *f.Int("count") != -7 || !*f.Bool("on") || *f.Bool("off") || *f.MaybeText("empty") != "" || *f.Int("empty") != 0 {
			t.Error("a value is wrong")
		}
		if f.Text("none") != "" || f.MaybeText("none") != nil || f.Int("none") != nil || f.Bool("none") != nil || f.Has("none") {
			t.Error("what was not sent is there")
		}
		if err := f.Problem(); err != nil {
			t.Error(err)
		}
	})

	t.Run("reads lists in the order of their numbers", func(t *testing.T) {
		f := parse(t, "items[10][price]=k&items[2][price]=c&items[0][price]=a&expand[]=x&expand[]=y&types[1]=b&types[0]=a")
		var prices []string
		for _, item := range f.List("items") {
			prices = append(prices, item.Text("price"))
		}
		if !slices.Equal(prices, []string{"a", "c", "k"}) || !slices.Equal(f.Texts("expand"), []string{"x", "y"}) || !slices.Equal(f.Texts("types"), []string{"a", "b"}) {
			t.Errorf("prices %v", prices)
		}
		if err := f.Problem(); err != nil {
			t.Error(err)
		}
	})

	t.Run("reads pairs, and tells none from empty", func(t *testing.T) {
		f := parse(t, "metadata[a]=1&metadata[b]=&cleared=")
		if got := f.Pairs("metadata"); !maps.Equal(got, map[string]string{"a": "1", "b": ""}) {
			t.Errorf("pairs %v", got)
		}
		if f.Pairs("none") != nil || f.Pairs("cleared") == nil {
			t.Error("none and empty are the same")
		}
	})

	t.Run("names an unknown field, at its depth", func(t *testing.T) {
		f := parse(t, "a[b][c]=1&a[b][d]=2")
		f.Group("a").Group("b").Text("c")
		wantProblem(t, f.Problem(), "parameter_unknown", "a[b][d]")
	})

	t.Run("names the first value of a wrong kind", func(t *testing.T) {
		for query, want := range map[string]struct {
			read func(*Fields)
			code string
		}{
			"x=1.5":  {func(f *Fields) { f.Int("x") }, "parameter_invalid_integer"},
			"x=yes":  {func(f *Fields) { f.Bool("x") }, "parameter_invalid_boolean"},
			"x=c":    {func(f *Fields) { f.OneOf("x", "a", "b") }, "parameter_invalid"},
			"x[y]=1": {func(f *Fields) { f.Text("x") }, "parameter_invalid_string"},
			"x=text": {func(f *Fields) { f.Group("x") }, "parameter_invalid"},
		} {
			f := parse(t, query)
			want.read(f)
			wantProblem(t, f.Problem(), want.code, "x")
		}
	})

	t.Run("accepts the fields that it ignores", func(t *testing.T) {
		f := parse(t, "a[b][c]=1&d=2")
		f.Ignore("a", "d", "none")
		if err := f.Problem(); err != nil {
			t.Error(err)
		}
	})

	t.Run("refuses names that make no tree", func(t *testing.T) {
		for _, query := range []string{"a=1&a[b]=2", "a[b=1", "[a]=1", "a=1&a=2", "a" + strings.Repeat("[b]", maxDepth) + "=1"} {
			values, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse(values); err == nil {
				t.Errorf("%s is taken", query)
			}
		}
		parse(t, "a"+strings.Repeat("[b]", maxDepth-1)+"=1")
	})
}

func FuzzParse(f *testing.F) {
	f.Add("a[b][]=1&a[b][]=2&c=3")
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		fields, err := Parse(values)
		if err != nil {
			return
		}
		// Read in every way: nothing may panic, and what was read is known.
		for name := range fields.children {
			fields.Text(name)
			fields.Int(name)
			fields.List(name)
			fields.Texts(name)
			fields.Pairs(name)
			fields.Ignore(name)
		}
		if err := fields.Problem(); err != nil && strings.Contains(err.Error(), "unknown") {
			t.Error(err)
		}
	})
}
