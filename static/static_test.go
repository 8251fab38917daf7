package static

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"testing"
)

func get(t *testing.T, method, url string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, url, nil)
	for name, values := range header {
		request.Header[name] = values
	}
	recorder := httptest.NewRecorder()
	Handler().ServeHTTP(recorder, request)
	return recorder
}

func TestURL(t *testing.T) {
	t.Run("carries a hash of the content before the extension", func(t *testing.T) {
		if url := URL("app.css"); !regexp.MustCompile(`^/static/app\.[0-9a-f]{12}\.css$`).MatchString(url) {
			t.Errorf("app.css is at %s", url)
		}
	})

	t.Run("panics on a file that is not embedded", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		URL("missing.css")
	})
}

func TestHandler(t *testing.T) {
	for name, contentType := range map[string]string{
		"app.css":              "text/css; charset=utf-8",
		"app.js":               "text/javascript; charset=utf-8",
		"htmx.min.js":          "text/javascript; charset=utf-8",
		"inter.woff2":          "font/woff2",
		"jetbrains-mono.woff2": "font/woff2",
		"mark.svg":             "image/svg+xml",
	} {
		t.Run("serves "+name+" whole, typed and for ever", func(t *testing.T) {
			content, err := files.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if name == "app.css" {
				content = resolve(content, urls)
			}
			reply := get(t, http.MethodGet, URL(name), nil)
			if reply.Code != http.StatusOK || reply.Body.String() != string(content) {
				t.Errorf("status %d, %d bytes of %d", reply.Code, reply.Body.Len(), len(content))
			}
			if got := reply.Header().Get("Content-Type"); got != contentType {
				t.Errorf("Content-Type %q", got)
			}
			if got := reply.Header().Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
				t.Errorf("Cache-Control %q", got)
			}
		})
	}

	t.Run("gives every file a type", func(t *testing.T) {
		for url, found := range assets {
			if found.contentType == "" {
				t.Errorf("%s has none", url)
			}
		}
	})

	t.Run("answers 304 to a browser that has the file", func(t *testing.T) {
		etag := get(t, http.MethodGet, URL("app.css"), nil).Header().Get("ETag")
		reply := get(t, http.MethodGet, URL("app.css"), http.Header{"If-None-Match": {etag}})
		if reply.Code != http.StatusNotModified || reply.Body.Len() != 0 {
			t.Errorf("status %d, %d bytes", reply.Code, reply.Body.Len())
		}
	})

	t.Run("names in the stylesheet the fonts that it serves", func(t *testing.T) {
		sheet := get(t, http.MethodGet, URL("app.css"), nil).Body.String()
		named := regexp.MustCompile(`url\("([^"]*)"\)`).FindAllStringSubmatch(sheet, -1)
		if len(named) != 2 {
			t.Fatalf("it names %q", named)
		}
		for _, font := range named {
			if reply := get(t, http.MethodGet, Prefix+font[1], nil); reply.Code != http.StatusOK {
				t.Errorf("%s answers %d", font[1], reply.Code)
			}
		}
	})

	t.Run("serves fonts that load fast", func(t *testing.T) {
		const most = 120 << 10
		for url, found := range assets {
			if found.contentType == "font/woff2" && len(found.content) > most {
				t.Errorf("%s has %d bytes, more than %d", url, len(found.content), most)
			}
		}
	})

	for name, url := range map[string]string{
		"a folder":            "/static/",
		"a name, no hash":     "/static/app.css",
		"another hash":        "/static/app.000000000000.css",
		"a Go file":           "/static/static.go",
		"a way out":           "/static/../static.go",
		"nothing of the sort": "/static/none",
	} {
		t.Run("answers 404 to "+name, func(t *testing.T) {
			reply := get(t, http.MethodGet, url, nil)
			if reply.Code != http.StatusNotFound || reply.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("status %d, Cache-Control %q", reply.Code, reply.Header().Get("Cache-Control"))
			}
		})
	}
}

// TestContrast holds WCAG 2.2 AA: 4.5 to 1 for text, 3 to 1 for the edge of a
// control and for the ring of the focus.
func TestContrast(t *testing.T) {
	tokens := readTokens(t)
	type pair struct {
		front, back string
		least       float64
	}
	var pairs []pair
	for _, back := range []string{"bg", "surface", "sunken"} {
		for _, front := range []string{"text", "muted", "subtle", "accent-text"} {
			pairs = append(pairs, pair{front, back, 4.5})
		}
		pairs = append(pairs, pair{"edge", back, 3})
		for _, token := range []string{"keyword", "string", "number", "name", "function"} {
			pairs = append(pairs, pair{"code-" + token, back, 4.5})
		}
	}
	for _, tone := range []string{"ok", "warn", "danger", "live"} {
		pairs = append(pairs, pair{tone, tone + "-soft", 4.5}, pair{"text", tone + "-soft", 4.5})
	}
	pairs = append(pairs,
		pair{"on-accent", "accent", 4.5},
		pair{"accent-text", "accent-soft", 4.5},
		pair{"text", "accent-soft", 4.5},
		pair{"test", "test-strip", 4.5},
	)
	for _, p := range pairs {
		for i, scheme := range []string{"light", "dark"} {
			front, back := tokens[p.front], tokens[p.back]
			if front == nil || back == nil {
				t.Fatalf("%s or %s is not a token", p.front, p.back)
			}
			if got := contrast(front[i], back[i]); got < p.least {
				t.Errorf("%s on %s, %s: %.2f to 1, want %.1f", p.front, p.back, scheme, got, p.least)
			}
		}
	}
}

// readTokens gives the luminance of each colour token, light and dark.
func readTokens(t *testing.T) map[string][]float64 {
	t.Helper()
	css, err := files.ReadFile("app.css")
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string][]float64{}
	for _, m := range regexp.MustCompile(`--([a-z-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\);`).FindAllSubmatch(css, -1) {
		tokens[string(m[1])] = []float64{luminance(t, string(m[2])), luminance(t, string(m[3]))}
	}
	return tokens
}

// luminance is the relative luminance that WCAG defines for sRGB.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	weights := [3]float64{0.2126, 0.7152, 0.0722}
	sum := 0.0
	for i, weight := range weights {
		channel, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(fmt.Errorf("%s is not a colour: %w", hex, err))
		}
		c := float64(channel) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(a, b float64) float64 {
	return (max(a, b) + 0.05) / (min(a, b) + 0.05)
}
