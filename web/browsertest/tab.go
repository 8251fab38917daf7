package browsertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// Screen is what a person looks at.
type Screen struct {
	Name   string
	Width  int64
	Height int64
	Dark   bool
}

// The screens that every page has to look right on.
var (
	Desktop     = Screen{Name: "desktop", Width: 1280, Height: 900}
	DesktopDark = Screen{Name: "desktop-dark", Width: 1280, Height: 900, Dark: true}
	Phone       = Screen{Name: "phone", Width: 390, Height: 844}
	PhoneDark   = Screen{Name: "phone-dark", Width: 390, Height: 844, Dark: true}

	// Narrow is where pages may not scroll sideways yet: a desktop that is zoomed in
	// four times.
	Narrow = Screen{Name: "narrow", Width: 320, Height: 568}
)

// Screens are all of them.
var Screens = []Screen{Desktop, DesktopDark, Phone, PhoneDark}

// Tab is a tab with cookies of its own. It belongs to one test; afterwards another test
// may get the same tab, emptied.
type Tab struct {
	tb       testing.TB
	handle   *handle
	context  context.Context
	screen   Screen
	mistakes *mistakes
	headers  map[string]any // of the reply that brought the page

	scriptless bool // no promise is kept in its pages
}

// stepLimit is for one step: past it, what the test waits for does not come, however
// busy the machine is. The longest step has axe read a page with a thousand elements.
const stepLimit = 5 * time.Minute

// Open opens an empty tab on the screen. Open it after what it visits is served: then
// it leaves its page before the server ends.
func Open(tb testing.TB, screen Screen) *Tab {
	tb.Helper()
	first, err := running.start()
	if err != nil {
		tb.Fatal(err)
	}
	h, err := running.windows.take(first)
	if err != nil {
		tb.Fatal(err)
	}
	return h.lend(tb, screen)
}

// lend gives the tab to a test, on the screen.
func (h *handle) lend(tb testing.TB, screen Screen) *Tab {
	tb.Helper()
	tb.Cleanup(func() { h.window.pool.put(tb, h) })
	t := &Tab{tb: tb, handle: h, context: h.context, screen: screen, mistakes: h.mistakes}
	t.Mistakes() // of the test before, as it left its page
	t.mistakes.allowNone()
	t.show(screen)
	tb.Cleanup(func() { t.reportMistakes() })
	return t
}

// On shows the page on one screen after the other, without loading it again: what a
// page looks like is up to its style alone. Then it is on its own screen again.
func (t *Tab) On(screens []Screen, look func(Screen)) {
	t.tb.Helper()
	for _, screen := range screens {
		t.show(screen)
		t.loadFonts() // of what only this screen shows
		look(screen)
	}
	t.show(t.screen)
}

func (t *Tab) show(screen Screen) {
	t.tb.Helper()
	if t.handle.shown == screen {
		return
	}
	t.handle.shown = screen
	t.do("be on "+screen.Name, chromedp.EmulateViewport(screen.Width, screen.Height), colours(screen.Dark))
}

func colours(dark bool) chromedp.Action[chromedp.Void] {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: scheme},
				// Nothing is half-way when a picture is taken.
				{Name: "prefers-reduced-motion", Value: "reduce"},
			},
		})
		return err
	})
}

// WithoutScripts turns JavaScript off for the pages that come.
func (t *Tab) WithoutScripts() {
	t.tb.Helper()
	t.scriptless = true
	t.do("turn scripts off", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

// Visit opens the address, waits until it and its fonts are loaded, and gives its status.
func (t *Tab) Visit(url string) int {
	t.tb.Helper()
	return t.load("visit "+url, chromedp.Navigate(url))
}

// Follow clicks on what leads to another document, and gives that one's status.
func (t *Tab) Follow(selector string) int {
	t.tb.Helper()
	return t.load("follow "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// Click clicks on what stays in the page.
func (t *Tab) Click(selector string) {
	t.tb.Helper()
	t.do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// Fill puts a text into a field, in place of what is there. It comes at once, as from
// a password manager: for each pressed key the browser would draw the page.
func (t *Tab) Fill(selector, text string) {
	t.tb.Helper()
	t.focus("fill "+selector, selector, "e.select()")
	t.do("fill "+selector, insert(text))
}

func insert(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.InsertText, input.InsertTextParams{Text: text})
		return err
	})
}

// Choose picks an option of a list by its value.
func (t *Tab) Choose(selector, value string) {
	t.tb.Helper()
	t.do("choose "+value+" in "+selector, chromedp.SetValue(chromedp.CSS(selector), value))
}

// Focus gives the focus to an element, as the Tab key would in the end.
func (t *Tab) Focus(selector string) {
	t.tb.Helper()
	t.focus("focus "+selector, selector, "")
}

// focus gives the focus to an element, and runs a statement about it.
func (t *Tab) focus(step, selector, then string) {
	t.tb.Helper()
	if !of[bool](t, step, selector, "(e) => { e.focus(); "+then+"; return e === document.activeElement }") {
		t.fail(step, errors.New("it takes no focus"))
	}
}

// Press presses keys where the focus is, such as kb.Tab or kb.Escape.
func (t *Tab) Press(keys string) {
	t.tb.Helper()
	t.do(fmt.Sprintf("press %q", keys), chromedp.KeyEvent(keys))
}

// Wait waits until something matching is to be seen.
func (t *Tab) Wait(selector string) {
	t.tb.Helper()
	t.until("see "+selector, visible(selector), true)
}

// WaitGone waits until nothing matching is to be seen.
func (t *Tab) WaitGone(selector string) {
	t.tb.Helper()
	t.until("see no more "+selector, visible(selector), false)
}

// Text is what a person reads in the first element that matches.
func (t *Tab) Text(selector string) string {
	t.tb.Helper()
	return of[string](t, "read "+selector, selector, `(e) => e.getClientRects().length ? e.innerText : ""`)
}

// Value is what stands in a field.
func (t *Tab) Value(selector string) string {
	t.tb.Helper()
	return of[string](t, "read "+selector, selector, "(e) => e.value")
}

// Count is how many elements match, seen or not.
func (t *Tab) Count(selector string) int {
	t.tb.Helper()
	return read(t, "count "+selector, chromedp.Evaluate[int](fmt.Sprintf("document.querySelectorAll(%q).length", selector)))
}

// WaitFocus waits until the focus is on something that matches. A page gives it
// away when it is first drawn, which on a busy machine is after it is loaded.
func (t *Tab) WaitFocus(selector string) {
	t.tb.Helper()
	t.until("find the focus on "+selector, focused(selector), true)
}

// focused is the question whether the focus is on something that matches.
func focused(selector string) string {
	return fmt.Sprintf("document.activeElement.matches(%q)", selector)
}

// Evaluate gives the text that an expression has in the page.
func (t *Tab) Evaluate(expression string) string {
	t.tb.Helper()
	return read(t, "evaluate "+expression, chromedp.Evaluate[string]("String("+expression+")"))
}

// Address is where the tab is.
func (t *Tab) Address() string {
	t.tb.Helper()
	return read(t, "read the address", chromedp.Location())
}

// Title is the document's.
func (t *Tab) Title() string {
	t.tb.Helper()
	return read(t, "read the title", chromedp.Title())
}

// visible is the question whether something that matches is to be seen. What is
// inside of a closed <details> counts as hidden, too.
func visible(selector string) string {
	return fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true}))", selector)
}

// pollPause is between two looks at the page. The page is asked from outside:
// with scripts off it cannot tell by itself.
const pollPause = 20 * time.Millisecond

func (t *Tab) until(step, expression string, want bool) {
	t.tb.Helper()
	t.do(step, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for {
			if seen, err := chromedp.Evaluate[bool](expression)(ctx, target); err == nil && seen == want {
				return nil
			}
			// An error is a page that is just being left.
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pollPause):
			}
		}
	}))
}

// of returns what a function returns for the first element that matches, once there is one.
// Both are one evaluation: a part that the page loads again may be replaced between two.
func of[T any](t *Tab, step, selector, function string) T {
	t.tb.Helper()
	expression := fmt.Sprintf("(() => { const e = document.querySelector(%q); return e && {value: (%s)(e)} })()", selector, function)
	return read(t, step, func(ctx context.Context, target *chromedp.Target) (none T, err error) {
		for {
			found, err := chromedp.Evaluate[*struct{ Value T }](expression)(ctx, target)
			var thrown *chromedp.ExceptionError
			switch {
			case errors.As(err, &thrown):
				return none, err
			case err == nil && found != nil:
				return found.Value, nil
			}
			// Another error is a page that is just being left.
			select {
			case <-ctx.Done():
				return none, ctx.Err()
			case <-time.After(pollPause):
			}
		}
	})
}

func (t *Tab) do(step string, actions ...chromedp.Action[chromedp.Void]) {
	t.tb.Helper()
	read(t, step, chromedp.Steps(actions...))
}

func (t *Tab) load(step string, action chromedp.Action[chromedp.Void]) int {
	t.tb.Helper()
	limited, end := context.WithTimeout(t.context, stepLimit)
	defer end()
	response, err := chromedp.RunResponse(limited, action)
	if err != nil {
		t.fail(step, err)
	}
	t.headers = response.Headers
	t.loadFonts()
	return int(response.Status)
}

func read[T any](t *Tab, step string, action chromedp.Action[T]) T {
	t.tb.Helper()
	limited, end := context.WithTimeout(t.context, stepLimit)
	defer end()
	value, err := chromedp.Run(limited, action)
	if err != nil {
		t.fail(step, err)
	}
	return value
}

// fail says where the tab was when a step did not succeed.
func (t *Tab) fail(step string, err error) {
	t.tb.Helper()
	limited, end := context.WithTimeout(t.context, stepLimit)
	defer end()
	at, _ := chromedp.Run(limited, chromedp.Location())
	text, _ := chromedp.Run(limited, chromedp.Evaluate[string]("document.body.innerText.slice(0, 600)"))
	t.tb.Fatalf("cannot %s: %v\nat %s, which reads:\n%s", step, err, at, strings.Join(slices.Compact(strings.Split(text, "\n")), "\n"))
}
