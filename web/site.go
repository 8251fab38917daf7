package web

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"purser/static"
	"purser/views/page"
)

// Options is what the site says of the server that it is part of.
type Options struct {
	BaseURL string // the public address, such as "http://127.0.0.1:8080"
	Version string
	Program string // how people call the command here; "purser" when empty
}

// Site answers people.
type Site struct {
	server page.Server
	https  bool
}

// New makes the site. It opens nothing and needs no closing.
func New(options Options) *Site {
	program := options.Program
	if program == "" {
		program = "purser"
	}
	return &Site{
		server: page.Server{
			Version: options.Version,
			Address: strings.TrimRight(options.BaseURL, "/"),
			Program: program,
		},
		https: strings.HasPrefix(options.BaseURL, "https://"),
	}
}

// Register mounts the whole surface of the site.
func (s *Site) Register(e *echo.Echo) {
	get := func(path string, handler echo.HandlerFunc) {
		e.Match([]string{http.MethodGet, http.MethodHead}, path, handler, s.protect)
	}
	get("/", s.welcome)
	get(static.Prefix+"*", echo.WrapHandler(static.Handler()))
}

func (s *Site) welcome(c echo.Context) error {
	return render(c, http.StatusOK, page.Welcome(s.server))
}

// render sends a page that is already whole.
func render(c echo.Context, status int, view templ.Component) error {
	var body bytes.Buffer
	if err := view.Render(c.Request().Context(), &body); err != nil {
		return fmt.Errorf("web: rendering a page: %w", err)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.HTMLBlob(status, body.Bytes())
}
