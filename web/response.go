package web

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

// response is the result of a handler. It is sent only after the session was saved, so a
// failing session store never sends a page.
type response struct {
	status   int
	view     templ.Component
	location string
	body     []byte
	stream   func(begin func() io.Writer) error // in place of a body
	header   http.Header
}

// show responds with a view.
func show(view templ.Component) response { return response{status: http.StatusOK, view: view} }

// invalid responds with the same form, its values and its validation errors.
func invalid(view templ.Component) response {
	return response{status: http.StatusUnprocessableEntity, view: view}
}

// conflict responds to a form with a stale revision, with both versions.
func conflict(view templ.Component) response {
	return response{status: http.StatusConflict, view: view}
}

// redirect responds with 303, so the browser continues with a GET.
func redirect(path string) response {
	return response{status: http.StatusSeeOther, location: path}
}

// download responds with an attachment.
func download(name, contentType string, body []byte) response {
	return response{status: http.StatusOK, body: body, header: http.Header{
		echo.HeaderContentType:        {contentType},
		echo.HeaderContentDisposition: {mime.FormatMediaType("attachment", map[string]string{"filename": name})},
	}}
}

// with adds a header.
func (r response) with(name, value string) response {
	header := r.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(name, value)
	r.header = header
	return r
}

// render renders the whole view, with the session's token in its forms.
func (r response) render(ctx context.Context, formToken string) (response, error) {
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

func (r response) send(c echo.Context) error {
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

// text responds with plain text.
func text(contentType, body string) response {
	return response{status: http.StatusOK, body: []byte(body)}.with(echo.HeaderContentType, contentType)
}

// showStatus responds with a view and a status of its own.
func showStatus(status int, view templ.Component) response {
	return response{status: status, view: view}
}

// stream responds with an attachment that is written while it is sent.
func stream(name, contentType string, write func(begin func() io.Writer) error) response {
	r := download(name, contentType, nil)
	r.stream = write
	return r
}
