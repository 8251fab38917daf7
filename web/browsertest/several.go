package browsertest

import (
	"runtime"
	"testing"
)

// Tabs are several tabs of one window, for a test with many parts. Opening a tab
// takes longer than most looks at a page, so the parts use them in turn.
type Tabs struct {
	free chan *Tab
}

// Several opens tabs beside this one until there are as many as processors. This one is
// among them: it is used through Take from now on.
func (t *Tab) Several(tb testing.TB) Tabs {
	tb.Helper()
	tabs := Tabs{free: make(chan *Tab, runtime.GOMAXPROCS(0))}
	tabs.free <- t
	for range cap(tabs.free) - 1 {
		tabs.free <- t.Beside(tb, t.screen)
	}
	return tabs
}

// Take lends a tab to a part of the test, which fails with it.
func (s Tabs) Take(tb testing.TB) *Tab {
	tb.Helper()
	shared := <-s.free
	tb.Cleanup(func() { s.free <- shared })
	t := *shared
	t.tb = tb
	tb.Cleanup(t.reportMistakes)
	return &t
}
