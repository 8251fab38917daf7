package browsertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// windows are those that no test uses at the moment.
type windows struct {
	mu   sync.Mutex
	idle []*window
}

// window is a browser context: its tabs share cookies, and no other tab has them. For
// each new one Chromium makes a profile and starts two processes, which takes longer
// than most tests, so windows are reused: their cookies are deleted between two tests.
// The pages keep nothing else in the browser.
type window struct {
	pool   *windows
	mu     sync.Mutex
	first  *handle
	idle   []*handle
	lent   int
	broken bool // a test failed in it: nothing is known about its state
}

// handle is a tab of a window, whichever test it belongs to.
type handle struct {
	window   *window
	context  context.Context
	close    context.CancelFunc
	mistakes *mistakes
	shown    Screen // the screen that it is on
}

// take returns an idle window, or a new one.
func (w *windows) take(first context.Context) (*handle, error) {
	w.mu.Lock()
	var found *window
	if last := len(w.idle) - 1; last >= 0 {
		found, w.idle = w.idle[last], w.idle[:last]
	}
	w.mu.Unlock()
	if found != nil {
		return found.take()
	}
	found = &window{pool: w}
	var err error
	if found.first, err = found.open(first, chromedp.WithNewBrowserContext()); err != nil {
		return nil, err
	}
	found.lent = 1
	return found.first, nil
}

// take returns an idle tab of the window, or a new one.
func (w *window) take() (*handle, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := len(w.idle) - 1; last >= 0 {
		h := w.idle[last]
		w.idle = w.idle[:last]
		w.lent++
		return h, nil
	}
	h, err := w.open(w.first.context)
	if err == nil {
		w.lent++
	}
	return h, err
}

// open opens a tab next to another one.
func (w *window) open(next context.Context, options ...chromedp.ContextOption) (*handle, error) {
	opened, end := chromedp.NewContext(next, options...)
	// The tab would close with the context of the first call, so the limit is not
	// in it.
	late := time.AfterFunc(stepLimit, end)
	defer late.Stop()
	if err := chromedp.Do(opened); err != nil {
		end()
		return nil, fmt.Errorf("browsertest: opening a tab: %w", err)
	}
	return &handle{window: w, context: opened, close: end, mistakes: watch(opened)}, nil
}

// put takes a tab back when its test has ended. The last tab of a window to come back
// makes the window free for other tests.
func (w *windows) put(tb testing.TB, h *handle) {
	tb.Helper()
	emptied := false
	if !tb.Failed() {
		if err := h.empty(); err != nil {
			tb.Logf("browsertest: a tab is not used again: %v", err)
		} else {
			emptied = true
		}
	}
	of := h.window
	of.mu.Lock()
	defer of.mu.Unlock()
	of.lent--
	of.broken = of.broken || !emptied
	of.idle = append(of.idle, h)
	if of.lent > 0 {
		return
	}
	if !of.broken {
		if err := h.forget(); err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.idle = append(w.idle, of)
			return
		}
	}
	for _, h := range slices.Backward(of.idle) {
		if h != of.first {
			h.close()
		}
	}
	of.first.close()
}

// empty leaves the page, so that its server can end, and turns scripts on.
func (h *handle) empty() error {
	limited, end := context.WithTimeout(h.context, stepLimit)
	defer end()
	_, err := chromedp.Run(limited, chromedp.Steps(
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})
			return err
		}),
		leave,
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, page.ResetNavigationHistory, cdp.Empty{})
			return err
		}),
	))
	return err
}

// leave has the page itself go to an empty one: for a navigation from outside Chromium
// would start another process.
func leave(ctx context.Context, target *chromedp.Target) (none chromedp.Void, err error) {
	for {
		at, err := chromedp.Evaluate[string](`(() => {
			if (location.href !== "about:blank") { location.replace("about:blank"); return "" }
			return document.readyState;
		})()`)(ctx, target)
		if err == nil && at == "complete" {
			return none, nil
		}
		// An error is a page that is just being left.
		select {
		case <-ctx.Done():
			return none, ctx.Err()
		case <-time.After(pollPause):
		}
	}
}

// forget deletes the cookies of the tab's window.
func (h *handle) forget() error {
	limited, end := context.WithTimeout(h.context, stepLimit)
	defer end()
	_, err := chromedp.Run(limited, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.ClearBrowserCookies, cdp.Empty{})
		return err
	}))
	return err
}

// SetCookie gives the window a cookie, as if the site at the address had set it.
func (t *Tab) SetCookie(address, name, value string) {
	t.tb.Helper()
	t.do("set the cookie "+name, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.SetCookie, network.SetCookieParams{URL: address, Name: name, Value: value, HTTPOnly: new(true), SameSite: network.CookieSameSiteLax})
		return err
	}))
}
