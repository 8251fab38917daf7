package engine

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"purser/payments/sandbox/persist"
)

func TestUnstorableReferencesOfAnOldDocumentAreNotIndexed(t *testing.T) {
	t.Parallel()
	for reference, want := range map[string]string{"order 1": "order 1", "a\x00b": "", strings.Repeat("x", 3000): ""} {
		document, err := json.Marshal(map[string]any{
			"Version": 1, "Sessions": map[string]any{"cs_1": map[string]any{"ID": "cs_1", "Nth": 1, "Reference": reference}},
			"Prices": map[string]any{"price_1": map[string]any{"ID": "price_1", "Nth": 2, "LookupKey": reference}},
		})
		if err != nil {
			t.Fatal(err)
		}
		a, err := OpenStored(persist.Session{Legacy: document}, Wanted(), BaseURLs{})
		if err != nil {
			t.Fatal(err)
		}
		change, err := a.Change(Env{})
		if err != nil || len(change.Rows) != 2 {
			t.Fatalf("%d rows, %v", len(change.Rows), err)
		}
		for _, row := range change.Rows {
			if row.Alias != want {
				t.Errorf("%s has an alias of %d bytes, want %q", row.Key, len(row.Alias), want)
			}
		}
	}
}
