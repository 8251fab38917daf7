package browsertest

import (
	_ "embed"
	"fmt"
	"slices"
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

// axeOptions turn on the rule about the size of targets: WCAG 2.2 has it, axe has it off
// by default. CheckContrast takes the place of another. Without preload axe does not fetch
// the stylesheets again.
const axeOptions = `{resultTypes: ["violations"], preload: false, rules: {"target-size": {enabled: true}, "color-contrast": {enabled: false}}}`

// appearanceOptions select the rules that depend on the theme or on the width. The others
// read the document, which is the same on every screen.
const appearanceOptions = `{resultTypes: ["violations"], preload: false, runOnly: ["link-in-text-block", "scrollable-region-focusable", "target-size"]}`

// contrastOptions select axe's own rule of contrast, for the page that shows every
// component.
const contrastOptions = `{resultTypes: ["violations"], preload: false, runOnly: ["color-contrast"]}`

// Check checks the page on the current screen: axe finds no violation, all text stands
// out, nothing is wider than the screen, and all text is drawn with the embedded fonts.
// Most of the time is axe's.
func (t *Tab) Check() {
	t.tb.Helper()
	t.check(axeOptions)
}

// CheckAppearance checks a page that Check has checked on another screen, by the rules
// that depend on the screen.
func (t *Tab) CheckAppearance() {
	t.tb.Helper()
	t.check(appearanceOptions)
}

func (t *Tab) check(options string) {
	t.tb.Helper()
	t.loadFonts() // of what was loaded or opened since the page was
	t.report(t.findings(options))
	t.CheckContrast()
	t.CheckWidth()
	t.CheckFonts()
}

// CheckScreens shows the page on each of the screens: it is checked on the first by all
// rules, on the others by those that depend on the screen, and on a narrow screen by its
// width alone. extra, unless it is nil, follows the checks of each screen, and is all that
// happens on those that are also given.
func (t *Tab) CheckScreens(screens []Screen, extra func(Screen), also ...Screen) {
	t.tb.Helper()
	t.On(slices.Concat(screens, []Screen{Narrow}, also), func(screen Screen) {
		switch {
		case screen == screens[0]:
			t.Check()
		case screen == Narrow:
			t.CheckWidth()
			return
		case slices.Contains(screens, screen):
			t.CheckAppearance()
		}
		if extra != nil {
			extra(screen)
		}
	})
}

// CheckThemes checks the page on a desktop in the light theme and on a phone in the dark
// one: the contents are the same, so each width and each theme is checked once.
func (t *Tab) CheckThemes() {
	t.tb.Helper()
	t.CheckScreens([]Screen{Desktop, PhoneDark}, nil)
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

// findings are the violations that axe finds. It is loaded through the debugger, since
// the pages' policy forbids other scripts.
func (t *Tab) findings(options string) []finding {
	t.tb.Helper()
	if !read(t, "look for axe", chromedp.Evaluate[bool]("Boolean(window.axe)")) {
		t.do("load axe", chromedp.Evaluate[chromedp.Void](axe))
	}
	return read(t, "run axe", chromedp.Evaluate[[]finding]("axe.run(document, "+options+").then((results) => results.violations)", chromedp.EvalAwaitPromise))
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
