package metering

import (
	"encoding/json"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

func TestPropertiesAreOneTextForOneMeaning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		values := rapid.MapOfN(rapid.StringMatching(`[A-Za-z0-9_-]{1,8}`), rapid.String(), 0, MaxProperties).Draw(r, "values")
		p := NewProperties(values)
		if (p == "") != (len(values) == 0) {
			r.Fatalf("%v is %q", values, p)
		}
		if p == "" {
			return
		}
		spaced, err := json.MarshalIndent(values, "", "  ")
		if err != nil {
			r.Fatal(err)
		}
		back, err := ParseProperties(string(spaced))
		if err != nil || back != p || !maps.Equal(back.Values(), NewProperties(back.Values()).Values()) || len(back.Names()) != len(values) {
			r.Fatalf("%v became %q and %q, %v", values, p, back, err)
		}
	})
}

func TestPropertiesThatAreNoTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`[]`, `{"a":1}`, `{"a":{}}`, `{`, `1`} {
		if p, err := ParseProperties(text); err == nil {
			t.Errorf("%s is read as %q", text, p)
		}
	}
}
