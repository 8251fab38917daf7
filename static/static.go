package static

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Prefix is where Handler must be mounted.
const Prefix = "/static/"

//go:embed app.css app.js favicon.ico htmx.min.js inter.woff2 jetbrains-mono.woff2 mark.svg robots.txt site.webmanifest touch-icon.png
var files embed.FS

// Named here and not asked of the machine: mime.TypeByExtension reads the
// system's tables, which differ from host to host.
var contentTypes = map[string]string{
	".css":         "text/css; charset=utf-8",
	".ico":         "image/x-icon",
	".js":          "text/javascript; charset=utf-8",
	".png":         "image/png",
	".svg":         "image/svg+xml",
	".txt":         "text/plain; charset=utf-8",
	".webmanifest": "application/manifest+json",
	".woff2":       "font/woff2",
}

// hashLength is in hex digits: 48 bits tell the versions of one file apart.
const hashLength = 12

type asset struct {
	content     []byte
	contentType string
	etag        string
}

var urls, assets = index()

// index names every file by its content. Stylesheets come last: they name fonts, and
// their own names depend on those.
func index() (map[string]string, map[string]asset) {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("static: " + err.Error())
	}
	urls := make(map[string]string, len(entries))
	assets := make(map[string]asset, len(entries))
	add := func(name string, content []byte) {
		sum := sha256.Sum256(content)
		hash := hex.EncodeToString(sum[:])[:hashLength]
		ext := path.Ext(name)
		url := Prefix + strings.TrimSuffix(name, ext) + "." + hash + ext
		urls[name] = url
		assets[url] = asset{content: content, contentType: contentTypes[ext], etag: `"` + hash + `"`}
	}
	var stylesheets []string
	for _, entry := range entries {
		if name := entry.Name(); path.Ext(name) == ".css" {
			stylesheets = append(stylesheets, name)
		} else {
			add(name, read(name))
		}
	}
	for _, name := range stylesheets {
		add(name, resolve(read(name), urls))
	}
	return urls, assets
}

func read(name string) []byte {
	content, err := files.ReadFile(name)
	if err != nil {
		panic("static: " + err.Error())
	}
	return content
}

// reference is another embedded file, as a stylesheet names it.
var reference = regexp.MustCompile(`url\("([a-z0-9.-]+)"\)`)

// resolve replaces the names of files in a stylesheet with their addresses, relative to
// its own.
func resolve(stylesheet []byte, urls map[string]string) []byte {
	return reference.ReplaceAllFunc(stylesheet, func(found []byte) []byte {
		name := string(reference.FindSubmatch(found)[1])
		url, known := urls[name]
		if !known {
			panic("static: a stylesheet names " + name + ", which is not embedded")
		}
		return []byte(`url("` + strings.TrimPrefix(url, Prefix) + `")`)
	})
}

// URL is the address of an embedded file, such as "/static/app.5f2c….css" for
// "app.css". It panics on a name that is not embedded: the names are literals
// in views, so the first render of such a view finds the mistake.
func URL(name string) string {
	url, found := urls[name]
	if !found {
		panic("static: no file is embedded as " + name)
	}
	return url
}

// Handler answers the addresses that URL gives.
func Handler() http.Handler {
	return http.HandlerFunc(serve)
}

func serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	found, known := assets[r.URL.Path]
	if !known {
		// Not cached: during a rolling deploy the next node may know it.
		header.Set("Cache-Control", "no-store")
		http.NotFound(w, r)
		return
	}
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Content-Type", found.contentType)
	header.Set("ETag", found.etag)
	ServeBytes(w, r, found.content)
}

// fixed are the addresses that browsers and crawlers ask for by themselves. The icons are
// drawn from mark.svg.
var fixed = map[string]string{
	"/favicon.ico":          "favicon.ico",
	"/apple-touch-icon.png": "touch-icon.png",
	"/robots.txt":           "robots.txt",
	"/site.webmanifest":     "site.webmanifest",
}

// FixedPaths lists the addresses outside Prefix that FixedHandler answers.
func FixedPaths() []string { return slices.Sorted(maps.Keys(fixed)) }

// FixedHandler answers FixedPaths. Their addresses stay when their content changes, so
// browsers ask again after a day.
func FixedHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found := assets[urls[fixed[r.URL.Path]]]
		header := w.Header()
		header.Set("Cache-Control", "public, max-age=86400")
		header.Set("Content-Type", found.contentType)
		header.Set("ETag", found.etag)
		ServeBytes(w, r, found.content)
	})
}
