package site

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
