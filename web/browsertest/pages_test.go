package browsertest

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"purser/metering"
	"purser/payments/sandbox/pages"
	"purser/views/page"
	accountpage "purser/views/page/account"
	catalogpage "purser/views/page/catalog"
)

const moment = 1_794_648_660_123

var (
	clock = pages.Clock{Now: moment, Moved: true}
	total = pages.Amount{Minor: 129_000, Currency: "usd"}
	lines = []pages.Line{{
		Name: "Team plan", Quantity: 2, Interval: pages.Interval{Unit: "month", Count: 1}, Amount: total,
		From: moment, To: moment + 30*24*3600_000,
	}}
	cards = []pages.Card{{Number: "4242424242424242", Does: "Succeeds"}, {Number: "4000000000000002", Does: "Declined"}}
	banks = []pages.Card{{Number: "ok", Does: "Succeeds after three days"}}
)

// samplePages need no server behind them.
var samplePages = map[string]view{
	"gallery":           page.Gallery(page.GallerySample{}),
	"gallery-live":      page.Gallery(page.GallerySample{Live: true}),
	"welcome":           accountpage.Welcome(accountpage.Start{Server: accountpage.Server{Version: "1.2.3", Address: "http://127.0.0.1:8080", Program: "bin/purser"}, NotSetUp: true}),
	"credits":           catalogpage.Credits(catalogpage.List[metering.Credit]{Items: []metering.Credit{{Key: "tokens", Name: strings.Repeat("W", 40), Unit: "token"}}}),
	"error":             page.Error(page.Failure{Status: 404, Title: "Page not found", Advice: "Begin at the start page.", RequestID: "req_01h455vb4pex5vsknk084sn02q"}),
	"sandbox-checkout":  pages.CheckoutPage(pages.Checkout{Clock: clock, Seller: "Chat", State: "open", Subscribes: true, Lines: lines, Total: total, Expires: moment, Reason: "The card was declined.", Back: "/", Cards: cards, Banks: banks}),
	"sandbox-complete":  pages.CheckoutPage(pages.Checkout{Clock: clock, State: "complete", Lines: lines, Total: total}),
	"sandbox-invoice":   pages.InvoicePage(pages.Invoice{Clock: clock, Seller: "Chat", Back: "/", Number: "A-0001", State: "open", Made: moment, Lines: lines, Due: total, Cards: cards, Banks: banks}),
	"sandbox-challenge": pages.ChallengePage(pages.Challenge{Clock: clock, Amount: total, Last4: "3155"}),
	"sandbox-portal":    pages.PortalPage(pages.Portal{Clock: clock, Seller: "Chat", Last4: "4242", ChangesCard: true, Cards: cards, Back: "/", Invoices: []pages.InvoiceRow{{Number: "A-0002", State: "open", Made: moment, Total: total, URL: "/", TriedAt: moment}, {Number: "A-0001", State: "paid", Made: moment, Total: total, URL: "/"}}}),
}

// sampleScreens are those that the samples are checked on: each width and each theme
// once. The pages of a running server are checked on the other two.
var sampleScreens = []Screen{DesktopDark, Phone}

// betweenScreens have the least room for tables that are not cards: a tablet, and a
// desktop on which the sidebar just fits beside the page.
var betweenScreens = []Screen{{Name: "tablet", Width: 768, Height: 1024}, {Name: "small-desktop", Width: 1040, Height: 800}}

// lookOver checks each of the views on its screens, and on a screen so narrow that only
// the width counts.
func lookOver(t *testing.T, views map[string]view, screensOf func(name string) []Screen) {
	t.Helper()
	served := map[string]view{}
	for name, view := range views {
		served["/"+name] = view
	}
	address := serve(t, served)
	tabs := Open(t, Desktop).Several(t)
	for name := range views {
		t.Run(name+" holds up on every screen", func(t *testing.T) {
			t.Parallel()
			tab, screens, also := tabs.Take(t), screensOf(name), betweenScreens
			if slices.Contains(endless, name) {
				also = nil
			}
			tab.screen = screens[0] // each change of the screen draws the page again
			tab.show(tab.screen)
			tab.Visit(address + "/" + name)
			tab.CheckScreens(screens, func(screen Screen) {
				if screen.Width == Phone.Width || !slices.Contains(endless, name) {
					tab.CheckFrames()
				}
				if name == "gallery" && slices.Contains(screens, screen) {
					tab.report(tab.findings(contrastOptions))
				}
				if !slices.Contains(also, screen) {
					tab.Picture(name + "-" + screen.Name)
				}
			}, also...)
		})
	}
}

// screensOfSample are all four for the gallery, which has every component and the
// whole layout.
func screensOfSample(name string) []Screen {
	if name == "gallery" {
		return Screens
	}
	return sampleScreens
}

// endless are the views with the largest amounts side by side. There, and only there,
// a table scrolls inside of its frame on a desktop.
var endless = []string{"deposits", "events", "journal", "gallery", "gallery-live"}

func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	lookOver(t, samplePages, screensOfSample)
}

func TestDrawer(t *testing.T) {
	t.Parallel()
	address := serve(t, map[string]view{"/gallery": samplePages["gallery"]})

	t.Run("opens and closes by keyboard, without a script", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Phone)
		tab.WithoutScripts()
		tab.Visit(address + "/gallery")
		tab.WaitGone(".sidebar")
		tab.Focus(".topbar button")
		tab.Press(kb.Enter)
		tab.Wait(".sidebar .nav a")
		tab.Press(kb.Tab)
		tab.WaitFocus(".sidebar .brand")
		tab.Press(kb.Escape)
		tab.WaitGone(".sidebar")
	})

	t.Run("is accessible when it is open", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Phone)
		tab.Visit(address + "/gallery")
		tab.Click(".topbar button")
		tab.Wait(".sidebar .nav a")
		tab.Check()
		tab.Picture("drawer-phone")
	})

	t.Run("stands open beside the page where there is room", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Desktop)
		tab.Visit(address + "/gallery")
		tab.Wait(".sidebar .nav a")
		tab.WaitGone(".topbar button")
	})
}

func TestComponents(t *testing.T) {
	t.Parallel()
	address := serve(t, map[string]view{"/gallery": samplePages["gallery"], "/away": markup("<h1>Away</h1>")})

	t.Run("asks again in place, without a script", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Desktop)
		tab.WithoutScripts()
		tab.Visit(address + "/gallery")
		tab.WaitGone("#revoke form")
		tab.Focus("#revoke summary")
		tab.Press(kb.Enter)
		tab.Wait("#revoke form button")
	})

	t.Run("gives the focus to what went wrong, without a script", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Desktop)
		tab.WithoutScripts()
		tab.Visit(address + "/gallery")
		tab.WaitFocus("[autofocus]")
	})

	t.Run("filters a list while one types, under the policy", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Desktop)
		tab.Visit(address + "/gallery")
		tab.Evaluate(`window.sameDocument = true`)
		tab.WaitGone("#clear-filters")
		history := tab.Evaluate(`history.length`)
		tab.Fill("#field-q", "ad")
		tab.WaitGone("#results tr:nth-child(2)")
		tab.Wait("#clear-filters")
		if got := tab.Text("#results tbody th a"); got != "ada" {
			t.Errorf("the list shows %q", got)
		}
		if got := tab.Address(); !strings.Contains(got, "q=ad") {
			t.Errorf("the address %s does not say so", got)
		}
		if tab.Evaluate(`window.sameDocument`) != "true" {
			t.Error("the whole document was loaded again")
		}
		if got := tab.Evaluate(`history.length`); got != history {
			t.Errorf("the history has %s entries instead of %s", got, history)
		}
		tab.Visit(address + "/away")
		tab.Back()
		if got := tab.Count("#results tbody tr"); got != 1 || !strings.Contains(tab.Address(), "q=ad") {
			t.Errorf("Back leads to %s with %d rows", tab.Address(), got)
		}
	})

	t.Run("says that a list could not be filtered, until it is", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Desktop)
		tab.Allow(http.StatusServiceUnavailable)
		tab.Visit(address + "/gallery")
		tab.Fill("#field-q", "fails")
		tab.Wait("[role=alert] + #results")
		tab.Picture("filter-failed")
		tab.Fill("#field-q", "ad")
		tab.WaitGone("#results tr:nth-child(2)")
		tab.WaitGone("[role=alert] + #results")
	})

	t.Run("filters a list without a script", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Desktop)
		tab.WithoutScripts()
		tab.Visit(address + "/gallery")
		tab.Fill("#field-q", "ad")
		tab.Follow(".filters button")
		if got := tab.Count("#results tbody tr"); got != 1 {
			t.Errorf("the list has %d rows", got)
		}
	})

	t.Run("offers to copy where there is a clipboard", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Desktop)
		tab.Visit(address + "/gallery")
		tab.Wait("button[data-copy]")
	})

	t.Run("sends a form once, and again after Back", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Desktop)
		tab.Visit(address + "/gallery")
		sent := tab.Evaluate(`(() => {
			let sent = 0;
			addEventListener("submit", (event) => { if (!event.defaultPrevented) sent++; event.preventDefault(); });
			const form = document.querySelector("#revoke form");
			for (const input of form.querySelectorAll("input")) input.required = false;
			form.requestSubmit(); form.requestSubmit();
			const once = sent;
			dispatchEvent(new PageTransitionEvent("pageshow"));
			form.requestSubmit();
			return once + " " + sent;
		})()`)
		if sent != "1 2" {
			t.Errorf("a double click and one after Back send %s forms", sent)
		}
	})

	t.Run("forgets a secret when the page is left", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Desktop)
		tab.Visit(address + "/gallery")
		if tab.Count("[data-once]") != 1 {
			t.Fatal("there is no secret to forget")
		}
		tab.Evaluate(`dispatchEvent(new PageTransitionEvent("pagehide"))`)
		if tab.Count("[data-once]") != 0 {
			t.Error("the secret is still there")
		}
	})
}
