package web

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"purser/static"
	"purser/store"
	"purser/store/storetest"
	"purser/web/site"
)

const requestID = "req_01h455vb4pex5vsknk084sn02q"

// serveSite runs the site as the composition root does: errors outside the API
// end in RenderError. The route /broken fails inside.
func serveSite(t *testing.T, options Options) *httptest.Server {
	t.Helper()
	if options.Store == nil {
		options.Store = storetest.Open(t)
	}
	e := echo.New()
	site := New(options)
	site.Register(e)
	e.GET("/broken", func(echo.Context) error { return errors.New("password=hunter2") })
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		status := http.StatusInternalServerError
		var known *echo.HTTPError
		if errors.As(err, &known) {
			status = known.Code
		}
		if err := site.RenderError(c, status, requestID); err != nil {
			t.Errorf("rendering the error page: %v", err)
		}
	}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server
}

func ask(t *testing.T, server *httptest.Server, method, path string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func TestWelcome(t *testing.T) {
	t.Parallel()
	// A database of its own: accounts of other tests end the setup.
	empty, err := store.Open(t.Context(), storetest.FreshURL(t), store.Options{})
	noError(t, err)
	t.Cleanup(empty.Close)
	server := serveSite(t, Options{Options: site.Options{Store: empty, BaseURL: "https://purser.example/", Version: "1.2.3-<b>", Program: "bin/purser"}})
	response, body := ask(t, server, http.MethodGet, "/")
	// Commands are highlighted: their text is what is left without tags.
	text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, ""))

	t.Run("is a whole HTML document that no cache keeps", func(t *testing.T) {
		if response.StatusCode != http.StatusOK {
			t.Errorf("status %d", response.StatusCode)
		}
		if got := response.Header.Get("Content-Type"); got != "text/html; charset=UTF-8" {
			t.Errorf("Content-Type %q", got)
		}
		if got := response.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control %q", got)
		}
		if !strings.HasPrefix(body, "<!doctype html>") || !strings.HasSuffix(body, "</html>") {
			t.Errorf("not a whole document: %.40q … %q", body, body[max(0, len(body)-20):])
		}
	})

	t.Run("shows the server's address, version and program", func(t *testing.T) {
		for _, want := range []string{
			"bin/purser keys create --org Acme --app Chat --preset setup",
			"curl 'https://purser.example/v1/credits'",
			"curl 'https://purser.example/v1/deposits'",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing", want)
			}
		}
		for _, want := range []string{"<code>https://purser.example</code>", "<code>1.2.3-&lt;b&gt;</code>"} {
			if !strings.Contains(body, want) {
				t.Errorf("%q is missing", want)
			}
		}
	})

	t.Run("gives commands whose bodies are JSON", func(t *testing.T) {
		bodies := regexp.MustCompile(`(?s)--json '([^']*)'`).FindAllStringSubmatch(text, -1)
		if len(bodies) < 2 {
			t.Fatalf("%d commands with a body", len(bodies))
		}
		for _, found := range bodies {
			if !json.Valid([]byte(found[1])) {
				t.Errorf("not JSON: %s", found[1])
			}
		}
	})

	t.Run("copies from elements that are there, each id once", func(t *testing.T) {
		seen := map[string]int{}
		for _, found := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(body, -1) {
			seen[found[1]]++
		}
		for id, times := range seen {
			if times != 1 {
				t.Errorf("the id %q is there %d times", id, times)
			}
		}
		sources := regexp.MustCompile(` data-copy="([^"]+)"`).FindAllStringSubmatch(body, -1)
		if len(sources) == 0 {
			t.Fatal("there is no copy button")
		}
		for _, found := range sources {
			if seen[found[1]] == 0 {
				t.Errorf("a button copies %q, which is not there", found[1])
			}
		}
	})

	t.Run("loads only what this server serves", func(t *testing.T) {
		assets := regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`).FindAllStringSubmatch(body, -1)
		if len(assets) < 3 {
			t.Errorf("it loads %d files", len(assets))
		}
		for _, found := range assets {
			if asset, _ := ask(t, server, http.MethodGet, found[1]); asset.StatusCode != http.StatusOK {
				t.Errorf("%s answers %d", found[1], asset.StatusCode)
			}
		}
	})

	t.Run("answers HEAD without a body", func(t *testing.T) {
		head, nothing := ask(t, server, http.MethodHead, "/")
		if head.StatusCode != http.StatusOK || nothing != "" || head.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("status %d, %d bytes", head.StatusCode, len(nothing))
		}
	})
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	server := serveSite(t, Options{Options: site.Options{BaseURL: "http://127.0.0.1:8080"}})
	want := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; manifest-src 'self'; " +
			"form-action 'self' https://checkout.stripe.com https://billing.stripe.com; frame-ancestors 'none'; base-uri 'none'",
		"X-Content-Type-Options":     "nosniff",
		"Referrer-Policy":            "same-origin",
		"Cross-Origin-Opener-Policy": "same-origin",
		"Strict-Transport-Security":  "",
	}
	for _, path := range []string{"/", "/no/such/page", "/broken", static.URL("app.css"), "/static/", "/static/app.css"} {
		t.Run("protect "+path, func(t *testing.T) {
			response, _ := ask(t, server, http.MethodGet, path)
			for name, value := range want {
				if got := response.Header.Get(name); got != value {
					t.Errorf("%s is %q, want %q", name, got, value)
				}
			}
		})
	}

	t.Run("promise https when the public address is https", func(t *testing.T) {
		response, _ := ask(t, serveSite(t, Options{Options: site.Options{BaseURL: "https://purser.example"}}), http.MethodGet, "/")
		if got := response.Header.Get("Strict-Transport-Security"); got != "max-age=31536000; includeSubDomains" {
			t.Errorf("Strict-Transport-Security is %q", got)
		}
	})

	t.Run("promise https when the connection is https", func(t *testing.T) {
		site := New(Options{Options: site.Options{Store: storetest.Open(t)}})
		if !site.OverHTTPS(&http.Request{TLS: &tls.ConnectionState{}}) {
			t.Error("a TLS connection is not seen")
		}
		forged := &http.Request{Header: http.Header{"X-Forwarded-Proto": {"https"}}}
		if site.OverHTTPS(forged) {
			t.Error("a forwarded header is believed")
		}
	})
}

func TestNothingInline(t *testing.T) {
	t.Parallel()
	server := serveSite(t, Options{})
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|<script(?:\s+[^>]*)?>[^<]`)
	for _, path := range []string{"/", "/no/such/page"} {
		if _, body := ask(t, server, http.MethodGet, path); inline.MatchString(body) {
			t.Errorf("%s has something that the policy blocks: %q", path, inline.FindString(body))
		}
	}
}

func TestStatic(t *testing.T) {
	t.Parallel()
	server := serveSite(t, Options{})

	t.Run("is cached for ever under its hashed address", func(t *testing.T) {
		response, body := ask(t, server, http.MethodGet, static.URL("app.css"))
		if response.StatusCode != http.StatusOK || !strings.Contains(body, "@layer tokens") {
			t.Errorf("status %d, %d bytes", response.StatusCode, len(body))
		}
		if got := response.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("Cache-Control %q", got)
		}
	})

	t.Run("is never cached when it is not there", func(t *testing.T) {
		response, _ := ask(t, server, http.MethodGet, "/static/app.000000000000.css")
		if response.StatusCode != http.StatusNotFound || response.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("status %d, Cache-Control %q", response.StatusCode, response.Header.Get("Cache-Control"))
		}
	})
}
