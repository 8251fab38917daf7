package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Main runs the tests of a package and ends the browser that they have started.
//
//	func TestMain(m *testing.M) { os.Exit(browsertest.Main(m)) }
func Main(m *testing.M) int {
	defer running.stop()
	return m.Run()
}

// running is this process's browser. It starts with the first tab.
var running browser

type browser struct {
	starting sync.Once
	context  context.Context // of a tab that stays empty: the others open beside it
	err      error
	ends     []context.CancelFunc
}

// startLimit is for a machine that is busy with other tests.
const startLimit = 5 * time.Minute

func (b *browser) start() (context.Context, error) {
	b.starting.Do(func() {
		path, err := findChromium()
		if err != nil {
			b.err = err
			return
		}
		allocator, end := chromedp.NewExecAllocator(context.Background(), flags(path)...)
		b.ends = append(b.ends, end)
		b.context, end = chromedp.NewContext(allocator)
		b.ends = append(b.ends, end)
		// The browser would end with the context of the first call, so the limit
		// is not in it.
		late := time.AfterFunc(startLimit, end)
		defer late.Stop()
		if err := chromedp.Do(b.context); err != nil {
			b.err = fmt.Errorf("browsertest: starting %s: %w", path, err)
		}
	})
	return b.context, b.err
}

// stop ends the browser and removes its profile.
func (b *browser) stop() {
	if b.context != nil {
		if err := chromedp.Cancel(b.context); err != nil {
			fmt.Fprintln(os.Stderr, "browsertest: ending the browser:", err)
		}
	}
	for _, end := range b.ends {
		end()
	}
}

func findChromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("browsertest: these tests need Chromium: run make chromium, or install it with your package manager")
}

// flags keep the browser to itself: it calls nobody, and remembers nothing.
func flags(path string) []chromedp.ExecAllocatorOption {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true),
		// It would start a process for the next page in advance, at every page. The others
		// are what chromedp turns off by itself.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,SpareRendererForSitePerProcess"),
		// Anything but this machine is unreachable.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"),
	)
	if os.Geteuid() == 0 {
		// Chromium's sandbox refuses to run as root.
		options = append(options, chromedp.NoSandbox)
	}
	return options
}
