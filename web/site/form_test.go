package site

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"purser/fault"
)

func TestANameIsConfirmedAsPagesShowIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, typed string
		want        bool
	}{
		{"Shop", "Shop", true},
		{"Shop", " Shop ", true},
		{"Shop", "shop", false},
		{"Shop", "", false},
		{"Corner  Shop", "Corner Shop", true},
		{"Corner\u00a0Shop", "Corner Shop", true},
		{"Corner Shop", "Corner\u00a0 Shop", true},
		{"Corner\nShop", "Corner Shop", true},
		{"Corner Shop", "CornerShop", false},
		{"Sh\u200bop", "Shop", true},
		{"Shop", "Sh\u00adop\ufeff", true},
		{"Shop \u2764\ufe0f", "Shop \u2764", true},
		{"Sh\u200bop", `Sh\u{200b}op`, true},
		{`Sh\u{zz}op`, `Sh\u{zz}op`, true},
		{`Sh\u{zz}op`, "Shop", false},
		{"\u200b", "", false},
		{"\u200b", "\u200b", true},
		{"\u200b", `\u{200b}`, true},
		{"\u200b", "\u200c", false},
		{" ", "", false},
		{"", "", true},
	} {
		f := &Form{values: url.Values{"confirm": {c.typed}}}
		if f.Confirms("confirm", c.name) != c.want {
			t.Errorf("%q confirms %q: %t", c.typed, c.name, !c.want)
		}
	}
}

// A page that compares the text itself refuses names that can't be typed.
func TestNamesAreConfirmedInOneWay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "Text(\"confirm\")") {
			t.Errorf("%s compares the name itself", file)
		}
	}
}

func TestAnErrorThatIsNotOfAFormAnswersInPlaceOfIt(t *testing.T) {
	t.Parallel()
	lost := errors.New("the database is gone")
	for _, c := range []struct {
		name    string
		checked []error
		want    error // in place of the form
		shown   int   // problems
	}{
		{"nothing is wrong", []error{nil}, nil, 0},
		{"a value is refused", []error{fault.New(fault.InvalidRequest)}, nil, 1},
		{"the database fails", []error{lost, nil}, lost, 0},
		{"the first error counts", []error{lost, fault.New(fault.PathNotFound)}, lost, 0},
		{"a refusal hides no error", []error{fault.New(fault.InvalidRequest), lost}, lost, 1},
		{"something is missing", []error{fault.New(fault.PathNotFound)}, fault.New(fault.PathNotFound), 0},
		{"there were too many attempts", []error{fault.New(fault.RateLimited)}, fault.New(fault.RateLimited), 0},
	} {
		f := &Form{}
		for i, err := range c.checked {
			f.Check(strconv.Itoa(i), err)
		}
		if f.OK() != (c.want == nil && c.shown == 0) || len(f.Problems) != c.shown {
			t.Errorf("%s: OK is %t with %v", c.name, f.OK(), f.Problems)
		}
		if got := f.failed; (got == nil) != (c.want == nil) || got != nil && got.Error() != c.want.Error() {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
