package docs

import (
	"encoding/xml"
	"strings"
	"testing"
)

func TestFlow(t *testing.T) {
	t.Parallel()
	drawn, err := flowSVG("Your server -> Purser: check <1>\nPurser -> Your server: allowed\nYour server -> Model: prompt")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`viewBox="0 0 720 196"`, `aria-label="Your server to Purser: check &lt;1&gt;. Purser to Your server: allowed`, ">check &lt;1&gt;</text>"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("there is no %s in\n%s", want, drawn)
		}
	}
	if strings.Contains(drawn, "style=") || strings.Count(drawn, `data-part="arrow"`) != 3 {
		t.Error(drawn)
	}
	if err := xml.Unmarshal([]byte(strings.Replace(drawn, "<div data-flow ", "<div ", 1)), new(struct{ XMLName xml.Name })); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"", "A -> B", "A: B", "A -> A: x", "A -> B: x\nnonsense"} {
		if _, err := flowSVG(wrong); err == nil {
			t.Errorf("%q is drawn", wrong)
		}
	}
}
