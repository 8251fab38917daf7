package site

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"purser/httpd"
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
}

// Show responds with a view.
func Show(view templ.Component) Response { return Response{status: http.StatusOK, view: view} }

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
	header.Set(echo.HeaderCacheControl, "no-store")
	if r.stream != nil {
		return httpd.Stream(c, r.stream)
	}
	if r.location != "" {
		return c.Redirect(r.status, r.location)
	}
	return c.Blob(r.status, header.Get(echo.HeaderContentType), r.body)
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
