package browsertest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/chromedp/chromedp"
)

// mistakes are what the browser complained of in one tab.
type mistakes struct {
	mu      sync.Mutex
	allowed []string // parts of complaints that the test has asked for
	found   []string
	settled chan string
}

// settledMark is a message of our own. The browser tells of everything in one
// stream, so what came before the mark has been seen with it.
const settledMark = "browsertest: so far"

func watch(tab context.Context) *mistakes {
	m := &mistakes{settled: make(chan string, 1)}
	messages := chromedp.Console(tab)
	go func() {
		for message, err := range messages {
			if err != nil {
				return // the tab is closed
			}
			m.take(message)
		}
	}()
	return m
}

func (m *mistakes) take(message chromedp.ConsoleMessage) {
	if mark, isMark := strings.CutPrefix(message.Text, settledMark); isMark {
		m.settled <- mark
		return
	}
	switch message.Type {
	case chromedp.ConsoleLog, chromedp.ConsoleDebug, chromedp.ConsoleInfo:
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found = append(m.found, fmt.Sprintf("%s: %s (%s:%d)", message.Type, message.Text, message.URL, message.Line+1))
}

// Allow lets replies with this status pass, which the browser and htmx otherwise
// report as requests that failed.
func (t *Tab) Allow(status int) {
	t.mistakes.mu.Lock()
	defer t.mistakes.mu.Unlock()
	t.mistakes.allowed = append(t.mistakes.allowed, fmt.Sprintf("responded with a status of %d ", status), fmt.Sprintf("Response Status Error Code %d ", status))
}

// allowNone takes back what Allow has allowed.
func (m *mistakes) allowNone() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.allowed = nil
}

// Mistakes is what the browser has complained of so far. It forgets them.
func (t *Tab) Mistakes() []string {
	t.tb.Helper()
	t.do("settle the console", chromedp.Evaluate[chromedp.Void](fmt.Sprintf("console.debug(%q)", settledMark)))
	limited, end := context.WithTimeout(t.context, stepLimit)
	defer end()
	select {
	case <-t.mistakes.settled:
	case <-limited.Done():
		t.tb.Fatal("the browser does not report its console")
	}
	return t.mistakes.drain()
}

func (m *mistakes) drain() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var kept []string
	for _, mistake := range m.found {
		if !m.mayPass(mistake) {
			kept = append(kept, mistake)
		}
	}
	m.found = nil
	return kept
}

func (m *mistakes) mayPass(mistake string) bool {
	for _, part := range m.allowed {
		if strings.Contains(mistake, part) {
			return true
		}
	}
	return false
}

// reportMistakes fails the test for mistakes that it did not expect.
func (t *Tab) reportMistakes() {
	t.tb.Helper()
	for _, mistake := range t.Mistakes() {
		t.tb.Errorf("the browser complains: %s", mistake)
	}
}
