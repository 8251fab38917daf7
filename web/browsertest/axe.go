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

// What axe is asked. The size of targets is part of WCAG 2.2, but axe asks for it
// only when told. It would fetch the stylesheets for rules that are not asked.
const (
	everyRule   = `{resultTypes: ["violations"], preload: false, rules: {"target-size": {enabled: true}}}`
	colourRules = `{resultTypes: ["violations"], preload: false, runOnly: ["color-contrast", "link-in-text-block"]}`
)

// Check looks over the page as it is now: axe finds nothing, nothing is wider than
// the screen, and all text is drawn with the embedded fonts.
func (t *Tab) Check() {
	t.tb.Helper()
	t.report(t.findings(everyRule))
	t.CheckWidth()
	t.CheckFonts()
}

// CheckThemes looks over the page as it is now, and its colours in the dark too: a
// theme changes nothing else.
func (t *Tab) CheckThemes() {
	t.tb.Helper()
	t.Check()
	t.do("turn the light off", colours(true))
	t.report(t.findings(colourRules))
	t.do("turn the light on", colours(false))
}

// CheckWidth holds that the page does not scroll sideways.
func (t *Tab) CheckWidth() {
	t.tb.Helper()
	for _, wide := range t.tooWide() {
		t.tb.Errorf("%s: wider than the screen: %s", t.Address(), wide)
	}
}

// CheckFrames holds that nothing has to be scrolled into sight inside of the frames
// either, where there is room.
func (t *Tab) CheckFrames() {
	t.tb.Helper()
	for _, wide := range read(t, "measure the frames", chromedp.Evaluate[[]string](scrolling)) {
		t.tb.Errorf("%s: wider than its frame: %s", t.Address(), wide)
	}
}

const scrolling = `[...document.querySelectorAll(".table-frame")]
	.filter((e) => e.scrollWidth > e.clientWidth)
	.map((e) => e.getAttribute("aria-label") + " is " + e.scrollWidth + " wide in " + e.clientWidth)`

func (t *Tab) report(found []finding) {
	t.tb.Helper()
	for _, f := range found {
		t.tb.Errorf("%s: %s", t.Address(), f)
	}
}

// findings is what axe has to say. It comes in through the debugger, since the
// pages' policy lets no other script in.
func (t *Tab) findings(asked string) []finding {
	t.tb.Helper()
	if !read(t, "look for axe", chromedp.Evaluate[bool]("Boolean(window.axe)")) {
		t.do("load axe", chromedp.Evaluate[chromedp.Void](axe))
	}
	return read(t, "run axe", chromedp.Evaluate[[]finding]("axe.run(document, "+asked+").then((results) => results.violations)", chromedp.EvalAwaitPromise))
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
