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

// Several opens as many tabs beside this one as there are tests at a time.
func (t *Tab) Several(tb testing.TB) Tabs {
	tb.Helper()
	tabs := Tabs{free: make(chan *Tab, runtime.GOMAXPROCS(0))}
	for range cap(tabs.free) {
		tabs.free <- t.Beside(tb, t.screen)
	}
	return tabs
}

// Take lends a tab to a part of the test, which is told of what goes wrong in it.
func (s Tabs) Take(tb testing.TB) *Tab {
	tb.Helper()
	shared := <-s.free
	tb.Cleanup(func() { s.free <- shared })
	t := *shared
	t.tb = tb
	tb.Cleanup(t.reportMistakes)
	return &t
}
