package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
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
	windows  windows
	home     string // where it writes whatever belongs to a user
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
		// Chromium's sandbox refuses to run as root.
		b.err = b.run(path, os.Geteuid() != 0)
	})
	return b.context, b.err
}

// run starts the program in its sandbox if it is told to and there can be one: in a
// chroot and in many containers an ordinary user can make none. The pages are our own,
// so the tests do without.
func (b *browser) run(path string, sandboxed bool) (err error) {
	if b.home, err = os.MkdirTemp("", "browsertest"); err != nil {
		return err
	}
	if err = b.launch(path, sandboxed); err == nil || !sandboxed {
		return err
	}
	b.close()
	if without := b.launch(path, false); without != nil {
		return errors.Join(err, fmt.Errorf("and without a sandbox: %w", without))
	}
	return nil
}

// launch starts the program and waits until it answers.
func (b *browser) launch(path string, sandboxed bool) error {
	allocator, end := chromedp.NewExecAllocator(context.Background(), append(flags(path, b.home), chromedp.Flag("no-sandbox", !sandboxed))...)
	b.ends = append(b.ends, end)
	b.context, end = chromedp.NewContext(allocator)
	b.ends = append(b.ends, end)
	// The browser would end with the context of the first call, so the limit
	// is not in it.
	late := time.AfterFunc(startLimit, end)
	defer late.Stop()
	if err := chromedp.Do(b.context); err != nil {
		return fmt.Errorf("browsertest: starting %s: %w", path, err)
	}
	return nil
}

// stop ends the browser and removes its profile.
func (b *browser) stop() {
	if b.context != nil {
		if err := chromedp.Cancel(b.context); err != nil {
			fmt.Fprintln(os.Stderr, "browsertest: ending the browser:", err)
		}
	}
	b.close()
	if b.home != "" {
		if err := os.RemoveAll(b.home); err != nil {
			fmt.Fprintln(os.Stderr, "browsertest: removing the browser's folder:", err)
		}
	}
}

func (b *browser) close() {
	for _, end := range slices.Backward(b.ends) {
		end()
	}
	b.ends = nil
}

// findChromium prefers the headless shell, which has no windows to draw.
func findChromium() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("browsertest: these tests need Chromium: run make chromium, or install it with your package manager")
}

// flags keep the browser to itself: it calls no other machine, and keeps nothing. Its
// crash handler does not start where the user's own folder cannot be written.
func flags(path, home string) []chromedp.ExecAllocatorOption {
	return append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "LC_ALL=C.UTF-8"),
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true),
		// The headless shell would fit letters to whole pixels, which makes text wider.
		chromedp.Flag("font-render-hinting", "none"),
		// Each document runs its scripts once, so what an optimizing compiler makes of them
		// is thrown away with it.
		chromedp.Flag("js-flags", "--no-opt --no-maglev"),
		// The first two are what chromedp turns off by itself. The third would start a
		// process for the next page in advance, at every page. The last two would start one
		// for the suggestions of the address bar, in every window.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,SpareRendererForSitePerProcess,WebUIOmniboxPopup,WebUIOmniboxAimPopup"),
		// Anything but this machine is unreachable.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"),
	)
}
