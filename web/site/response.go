package site

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"purser/httpd"
	"purser/static"
	"purser/views/component"
)

// Response is the result of a handler. It is sent only after the session was saved, so a
// failing session store never sends a page.
type Response struct {
	status   int
	view     templ.Component
	location string
	body     []byte
	stream   func(begin func() io.Writer) error // in place of a body
	header   http.Header

	cacheable bool
	once      bool // never refused once it is rendered
}

// Show responds with a view.
func Show(view templ.Component) Response { return Response{status: http.StatusOK, view: view} }

// ShowOnce responds to a form with what it created and no other page shows, such as a key.
func ShowOnce(view templ.Component) Response {
	return Response{status: http.StatusOK, view: view, once: true}
}

// Invalid responds with the same form, its values and its validation errors.
func Invalid(view templ.Component) Response {
	return Response{status: http.StatusUnprocessableEntity, view: view}
}

// Conflict responds to a form with a stale revision, with both versions.
func Conflict(view templ.Component) Response {
	return Response{status: http.StatusConflict, view: view}
}

// Redirect responds with 303, so the browser continues with a GET.
func Redirect(path string) Response {
	return Response{status: http.StatusSeeOther, location: path}
}

// download responds with an attachment.
func download(name, contentType string, body []byte) Response {
	return Response{status: http.StatusOK, body: body, header: http.Header{
		echo.HeaderContentType:        {contentType},
		echo.HeaderContentDisposition: {mime.FormatMediaType("attachment", map[string]string{"filename": name})},
	}}
}

// with adds a header.
func (r Response) with(name, value string) Response {
	header := r.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(name, value)
	r.header = header
	return r
}

// render renders the whole view, with the session's token in its forms.
func (r Response) render(ctx context.Context, formToken string) (Response, error) {
	if r.view == nil {
		return r, nil
	}
	var body bytes.Buffer
	if err := r.view.Render(component.WithFormToken(ctx, formToken), &body); err != nil {
		return r, fmt.Errorf("web: rendering a page: %w", err)
	}
	r.body = body.Bytes()
	return r.with(echo.HeaderContentType, echo.MIMETextHTMLCharsetUTF8), nil
}

func (r Response) send(c echo.Context) error {
	header := c.Response().Header()
	for name, values := range r.header {
		header[name] = values
	}
	if r.cacheable && r.status == http.StatusOK && r.body != nil {
		return r.sendCacheable(c)
	}
	header.Set(echo.HeaderCacheControl, "no-store")
	if r.stream != nil {
		return httpd.Stream(c, r.stream)
	}
	if r.location != "" {
		return c.Redirect(r.status, r.location)
	}
	return c.Blob(r.status, header.Get(echo.HeaderContentType), r.body)
}

// maxAge is how long a public page is used without asking the server again.
const maxAge = 5 * time.Minute

// sendCacheable answers 304 to a browser that has the same page. Cookies choose the theme,
// the language of examples and the way back to the dashboard, so only the page of a
// visitor without any is public.
func (r Response) sendCacheable(c echo.Context) error {
	header := c.Response().Header()
	header.Add(echo.HeaderVary, "Cookie")
	header.Set(echo.HeaderCacheControl, fmt.Sprintf("public, max-age=%d", int(maxAge.Seconds())))
	if c.Request().Header.Get(echo.HeaderCookie) != "" || header.Get(echo.HeaderSetCookie) != "" {
		header.Set(echo.HeaderCacheControl, "private, no-cache")
	}
	sum := sha256.Sum256(r.body)
	header.Set("ETag", `"`+hex.EncodeToString(sum[:16])+`"`)
	static.ServeBytes(c.Response(), c.Request(), r.body)
	return nil
}

// Text responds with plain text.
func Text(contentType, body string) Response {
	return Response{status: http.StatusOK, body: []byte(body)}.with(echo.HeaderContentType, contentType)
}

// ShowStatus responds with a view and a status of its own.
func ShowStatus(status int, view templ.Component) Response {
	return Response{status: status, view: view}
}

// Stream responds with an attachment that is written while it is sent.
func Stream(name, contentType string, write func(begin func() io.Writer) error) Response {
	r := download(name, contentType, nil)
	r.stream = write
	return r
}
