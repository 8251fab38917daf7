package browsertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The keys that lead through a page, for Press.
const (
	KeyTab   = kb.Tab
	KeyEnter = kb.Enter
	KeyUp    = kb.ArrowUp
)

// Beside opens another tab in the same window: it has the same cookies.
func (t *Tab) Beside(tb testing.TB, screen Screen) *Tab {
	tb.Helper()
	h, err := t.handle.window.take()
	if err != nil {
		tb.Fatal(err)
	}
	return h.lend(tb, screen)
}

// Header is a header of the reply that brought the page.
func (t *Tab) Header(name string) string {
	for key, value := range t.headers {
		if http.CanonicalHeaderKey(key) == http.CanonicalHeaderKey(name) {
			return fmt.Sprint(value)
		}
	}
	return ""
}

// Reload is the browser's own button. What a form has brought is asked for again,
// as after a yes to the browser's question.
func (t *Tab) Reload() int {
	t.tb.Helper()
	return t.load("reload", chromedp.Reload())
}

// Back is the browser's own button. What a form has brought and must not be kept,
// the browser has forgotten: then it shows a page of its own.
func (t *Tab) Back() {
	t.tb.Helper()
	t.do("go back", travel(-1))
}

// Forward is the browser's own button.
func (t *Tab) Forward() {
	t.tb.Helper()
	t.do("go forward", travel(+1))
}

// travel goes along the history. A page that the browser has kept as it was does
// not load, so there is no such event to wait for.
func travel(by int64) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		history, err := chromedp.NavigationEntries()(ctx, target)
		if err != nil {
			return err
		}
		to := history.CurrentIndex + by
		if to < 0 || to >= int64(len(history.Entries)) {
			return errors.New("the history ends here")
		}
		if _, err := cdp.Call(ctx, target, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: history.Entries[to].ID}); err != nil {
			return err
		}
		for {
			history, err = chromedp.NavigationEntries()(ctx, target)
			state, notYet := chromedp.Evaluate[string]("document.readyState")(ctx, target)
			if err == nil && notYet == nil && history.CurrentIndex == to && state == "complete" {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pollPause):
			}
		}
	})
}

// Source is the whole document as it is now, what is hidden included.
func (t *Tab) Source() string {
	t.tb.Helper()
	return t.Evaluate(`document.documentElement.outerHTML`)
}

// Fetch is the server's response to a request with the cookies of this window. Links
// relative to the page are fine.
func (t *Tab) Fetch(address string) string {
	t.tb.Helper()
	return read(t, "fetch "+address, chromedp.Evaluate[string](fmt.Sprintf("fetch(%q).then((reply) => reply.text())", address), chromedp.EvalAwaitPromise))
}

// maxTabs is how many presses of the Tab key any of our pages takes from one end
// to the other, and more.
const maxTabs = 200

// TabTo goes to an element with the Tab key alone.
func (t *Tab) TabTo(selector string) {
	t.tb.Helper()
	for range maxTabs {
		if read(t, "find the focus", chromedp.Evaluate[bool](focused(selector))) {
			return
		}
		t.Press(KeyTab)
	}
	t.tb.Fatalf("%s: the Tab key does not lead to %s", t.Address(), selector)
}

// Enter presses Enter where the focus is, which leads to another document, and
// gives that one's status.
func (t *Tab) Enter() int {
	t.tb.Helper()
	return t.load("press Enter", chromedp.KeyEvent(KeyEnter))
}

// Until loads the page again until something matching is to be seen: for what
// happens on the server by itself.
func (t *Tab) Until(selector string) {
	t.tb.Helper()
	limited, end := context.WithTimeout(t.context, stepLimit)
	defer end()
	for t.Count(selector) == 0 {
		select {
		case <-limited.Done():
			t.fail("see "+selector+" after many reloads", limited.Err())
		case <-time.After(reloadPause):
			t.Reload()
		}
	}
}

const reloadPause = 100 * time.Millisecond
