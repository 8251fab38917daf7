package browsertest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"purser/static"
	"purser/views/page"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// policy is as strict as the site's own.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

type view interface {
	Render(ctx context.Context, w io.Writer) error
}

// markup is a view of a few lines.
type markup string

func (m markup) Render(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Test</title><link rel="icon" href="`+static.URL("mark.svg")+`"></head><body><main>`+string(m)+`</main></body></html>`)
	return err
}

// serve answers the paths with the views, under the policy.
func serve(t *testing.T, views map[string]view) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, static.Prefix) {
			static.Handler().ServeHTTP(w, r)
			return
		}
		if r.URL.Path == "/favicon.ico" {
			// Chromium asks for it beside a page that names no icon, at some time after it.
			w.WriteHeader(http.StatusNoContent)
			return
		}
		found := views[r.URL.Path]
		if query := r.URL.Query().Get("q"); r.URL.Path == "/gallery" && query != "" {
			found = page.Gallery(page.GallerySample{Query: query})
			if query == "fails" {
				http.Error(w, "not now", http.StatusServiceUnavailable)
				return
			}
		}
		if found == nil {
			http.NotFound(w, r)
			return
		}
		var body bytes.Buffer
		if err := found.Render(r.Context(), &body); err != nil {
			t.Errorf("rendering %s: %v", r.URL.Path, err)
		}
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if _, err := body.WriteTo(w); err != nil {
			t.Logf("sending %s: %v", r.URL.Path, err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestBrowserStartsWhereNoSandboxCanBeMade(t *testing.T) {
	t.Parallel()
	real, err := findChromium()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "chromium")
	refusing := "#!/bin/sh\ncase \" $* \" in *' --no-sandbox '*) exec '" + real + "' \"$@\" ;; esac\necho 'No usable sandbox!' >&2\nexit 1\n"
	if err := os.WriteFile(program, []byte(refusing), 0o755); err != nil {
		t.Fatal(err)
	}
	var b browser
	t.Cleanup(b.stop)
	if err := b.run(program, true); err != nil {
		t.Fatal(err)
	}
}

// The tests of this one come one after the other, and have windows of their own, so that
// the second gets the tab of the first.
func TestATabComesBackAsIfNew(t *testing.T) {
	t.Parallel()
	first, err := running.start()
	if err != nil {
		t.Fatal(err)
	}
	var own windows
	address := serve(t, map[string]view{"/": markup("<h1>x</h1>")})
	var used *handle
	for _, part := range []struct {
		name string
		test func(t *testing.T, tab *Tab)
	}{
		{"one test leaves a cookie, a console error and no scripts", func(t *testing.T, tab *Tab) {
			tab.Visit(address)
			tab.SetCookie(address, "session", "hers")
			tab.Beside(t, Phone).Visit(address)
			tab.Allow(http.StatusNotFound)
			tab.Visit(address + "/none")
			tab.WithoutScripts()
		}},
		{"the next has the same tab, and none of that", func(t *testing.T, tab *Tab) {
			tab.Visit(address)
			if cookies := tab.cookies(); len(cookies) != 0 {
				t.Errorf("there are cookies: %v", cookies)
			}
			if history := tab.Evaluate(`history.length`); history != "2" {
				t.Errorf("the history has %s pages", history)
			}
			if wide := tab.Evaluate(`innerWidth`); wide != strconv.FormatInt(Desktop.Width, 10) {
				t.Errorf("it is %s wide", wide)
			}
			if ran := tab.Evaluate(`matchMedia("(scripting: enabled)").matches`); ran != "true" {
				t.Error("scripts are off")
			}
			tab.Visit(address + "/none")
			if found := tab.Mistakes(); len(found) != 1 {
				t.Errorf("the browser complains of %q", found)
			}
		}},
	} {
		h, err := own.take(first)
		if err != nil {
			t.Fatal(err)
		}
		if used != nil && h.window != used.window {
			t.Error("the window was not used again")
		}
		used = h
		t.Run(part.name, func(t *testing.T) { part.test(t, h.lend(t, Desktop)) })
	}
}

func (t *Tab) cookies() []*network.Cookie {
	t.tb.Helper()
	return read(t, "read the cookies", func(ctx context.Context, target *chromedp.Target) ([]*network.Cookie, error) {
		found, err := cdp.Call(ctx, target, network.GetCookies, network.GetCookiesParams{})
		return found.Cookies, err
	})
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for name, sample := range map[string]struct {
		page markup
		want string
	}{
		"a script that the policy forbids":  {`<h1>x</h1><script>1</script>`, "Content Security Policy"},
		"a style that the policy forbids":   {`<h1 style="color: red">x</h1>`, "Content Security Policy"},
		"an image that is not there":        {`<h1>x</h1><img alt="" src="/none.png">`, "404"},
		"a picture of a foreign machine":    {`<h1>x</h1><img alt="" src="http://example.com/x.png">`, "Content Security Policy"},
		"a stylesheet that cannot be found": {`<h1>x</h1><link rel="stylesheet" href="/none.css">`, "none.css"},
	} {
		t.Run("names "+name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, map[string]view{"/": sample.page})
			tab := Open(t, Desktop)
			tab.Visit(address)
			if found := strings.Join(tab.Mistakes(), "\n"); !strings.Contains(found, sample.want) {
				t.Errorf("found %q", found)
			}
		})
	}

	t.Run("names an error that a script throws", func(t *testing.T) {
		t.Parallel()
		address := serve(t, map[string]view{"/": markup("<h1>x</h1>")})
		tab := Open(t, Desktop)
		tab.Visit(address)
		tab.Evaluate(`setTimeout(() => { setTimeout(() => document.title = "Thrown"); throw new Error("on purpose") })`)
		tab.until("see that it was thrown", `document.title === "Thrown"`, true)
		if found := strings.Join(tab.Mistakes(), "\n"); !strings.Contains(found, "on purpose") {
			t.Errorf("found %q", found)
		}
	})

	t.Run("lets a status pass that the test expects", func(t *testing.T) {
		t.Parallel()
		address := serve(t, nil)
		tab := Open(t, Desktop)
		tab.Allow(http.StatusNotFound)
		if status := tab.Visit(address + "/none"); status != http.StatusNotFound {
			t.Errorf("status %d", status)
		}
		if found := tab.Mistakes(); len(found) > 0 {
			t.Errorf("found %q", found)
		}
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for rule, page := range map[string]markup{
		"label":       `<h1>x</h1><input>`,
		"button-name": `<h1>x</h1><button></button>`,
		"target-size": `<h1>x</h1>` + markup(strings.Repeat(`<input type="checkbox" aria-label="y">`, 3)),
	} {
		t.Run("finds what breaks the rule "+rule, func(t *testing.T) {
			t.Parallel()
			address := serve(t, map[string]view{"/": page})
			tab := Open(t, Desktop)
			tab.Visit(address)
			found := tab.findings(axeOptions)
			if !slices.ContainsFunc(found, func(f finding) bool { return f.ID == rule }) {
				t.Errorf("found only %v", found)
			}
		})
	}

	for name, c := range map[string]struct {
		page  markup
		style string // of the element x
		faint string // the only text that is; none if empty
	}{
		"grey on grey":                           {`<p id="x">here</p>`, `color: #777; background: #888`, "p has 1.26: here"},
		"grey on the grey around it":             {`<div id="x"><p>here</p></div>`, `color: #777; background: #888`, "p has 1.26: here"},
		"black on grey":                          {`<p id="x">here</p>`, `color: #000; background: #888`, ""},
		"a text of 4.6":                          {`<p id="x">here</p>`, `color: #757575; background: #fff`, ""},
		"a text of 4.4":                          {`<p id="x">here</p>`, `color: #787878; background: #fff`, "p has 4.42: here"},
		"a large text of 4.4":                    {`<p id="x">here</p>`, `color: #787878; background: #fff; font-size: 24px`, ""},
		"a large text of 2.3":                    {`<p id="x">here</p>`, `color: #aaa; background: #fff; font-size: 24px`, "p has 2.32: here"},
		"a bold text of 4.4":                     {`<p id="x">here</p>`, `color: #787878; background: #fff; font-size: 19px; font-weight: 700`, ""},
		"text that lets the background through":  {`<p id="x">here</p>`, `color: rgb(0 0 0 / 40%); background: #fff`, "p has 2.85: here"},
		"a background that lets another through": {`<p id="x">here</p>`, `color: #000; background: rgb(0 0 0 / 80%)`, "p has 1.66: here"},
		"a part that is faded":                   {`<div id="x"><p>here</p></div>`, `color: #000; background: #fff; opacity: 0.4`, "p has 2.85: here"},
		"what is typed":                          {`<input id="x" value="here" aria-label="y">`, `color: #777; background: #888`, "input has 1.26: here"},
		"a control that can't be used":           {`<button id="x" disabled>here</button>`, `color: #777; background: #888`, ""},
		"a text that is not to be seen":          {`<p id="x">here</p>`, `color: #777; background: #888; visibility: hidden`, ""},
	} {
		t.Run("measures the contrast of "+name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, map[string]view{"/": c.page})
			tab := Open(t, Desktop)
			tab.Visit(address)
			tab.Evaluate(`(document.body.style.background = "#fff", document.querySelector("#x").style.cssText = "` + c.style + `")`)
			if found := strings.Join(tab.faint(), "\n"); found != c.faint {
				t.Errorf("found %q", found)
			}
		})
	}

	t.Run("finds small targets on another screen", func(t *testing.T) {
		t.Parallel()
		address := serve(t, map[string]view{"/": markup(`<h1>x</h1>` + strings.Repeat(`<input type="checkbox" aria-label="y">`, 3))})
		tab := Open(t, Phone)
		tab.Visit(address)
		if found := tab.findings(appearanceOptions); len(found) != 1 || found[0].ID != "target-size" {
			t.Errorf("found %v", found)
		}
	})

	t.Run("finds what is wider than the screen", func(t *testing.T) {
		t.Parallel()
		address := serve(t, map[string]view{"/": markup(`<h1>x</h1><canvas width="500"></canvas>`)})
		tab := Open(t, Phone)
		tab.Visit(address)
		if wide := tab.tooWide(); len(wide) == 0 {
			t.Error("found nothing")
		}
	})
}

func TestScreens(t *testing.T) {
	t.Parallel()
	for _, screen := range Screens {
		t.Run("gives the page the width and the colours of "+screen.Name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, map[string]view{"/": markup("<h1>x</h1>")})
			tab := Open(t, screen)
			tab.Visit(address)
			if dark := tab.Evaluate(`matchMedia("(prefers-color-scheme: dark)").matches`); (dark == "true") != screen.Dark {
				t.Errorf("dark: %s", dark)
			}
			if wide := tab.Evaluate(`innerWidth`); wide != strconv.FormatInt(screen.Width, 10) {
				t.Errorf("%s wide", wide)
			}
		})
	}
}
