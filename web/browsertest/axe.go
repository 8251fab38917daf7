package browsertest

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
)

//go:embed axe.min.js
var axe string

// finding is a rule that a page breaks, as axe tells it.
type finding struct {
	ID    string
	Help  string
	Nodes []struct {
		Target         []any
		FailureSummary string
	}
}

func (f finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f.ID, f.Help)
	for _, node := range f.Nodes {
		fmt.Fprintf(&b, "\n  %v\n    %s", node.Target, strings.ReplaceAll(node.FailureSummary, "\n", "\n    "))
	}
	return b.String()
}

// axe comes in through the debugger, since the pages' policy lets no other script
// in. The size of targets is part of WCAG 2.2, but axe asks for it only when told.
const runAxe = `(async () => {
	const results = await axe.run(document, {resultTypes: ["violations"], rules: {"target-size": {enabled: true}}});
	return results.violations;
})()`

// Check looks over the page as it is now: axe finds nothing, and nothing is wider
// than the screen.
func (t *Tab) Check() {
	t.tb.Helper()
	for _, found := range t.findings() {
		t.tb.Errorf("%s: %s", t.Address(), found)
	}
	for _, wide := range t.tooWide() {
		t.tb.Errorf("%s: wider than the screen: %s", t.Address(), wide)
	}
}

func (t *Tab) findings() []finding {
	t.tb.Helper()
	t.do("load axe", chromedp.Evaluate[chromedp.Void]("if (!window.axe) {"+axe+"}"))
	return read(t, "run axe", chromedp.Evaluate[[]finding](runAxe, chromedp.EvalAwaitPromise))
}

// overflowing names what makes the page scroll sideways: the elements that end
// past the screen and are not inside of something that scrolls by itself.
const overflowing = `(() => {
	const width = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth <= width) return [];
	const scrolls = (e) => e && e !== document.documentElement && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
	const wide = [...document.querySelectorAll("body *")]
		.filter((e) => e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement))
		.map((e) => e.tagName.toLowerCase() + (e.className ? "." + e.getAttribute("class") : "") + " ends at " + Math.round(e.getBoundingClientRect().right));
	return wide.length ? wide : ["the page, by something that is cut off elsewhere"];
})()`

func (t *Tab) tooWide() []string {
	t.tb.Helper()
	return read(t, "measure the page", chromedp.Evaluate[[]string](overflowing))
}
