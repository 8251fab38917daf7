package web

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"mime"
	"net/http"
	"regexp"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// response is the result of a handler. It is sent only after the session was saved, so a
// failing session store never sends a page.
type response struct {
	status   int
	view     templ.Component
	location string
	body     []byte
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

// render renders the whole view and adds the form token to its forms.
func (r response) render(ctx context.Context, formToken string) (response, error) {
	if r.view == nil {
		return r, nil
	}
	var body bytes.Buffer
	if err := r.view.Render(ctx, &body); err != nil {
		return r, fmt.Errorf("web: rendering a page: %w", err)
	}
	r.body = withFormToken(body.Bytes(), formToken)
	return r.with(echo.HeaderContentType, echo.MIMETextHTMLCharsetUTF8), nil
}

var postingForm = regexp.MustCompile(`<form\s[^>]*method="post"[^>]*>`)

// withFormToken adds the token to every form that posts. It is done here and not in the
// views, so that no form can miss it. User text is escaped, so a matching tag is always
// the view's.
func withFormToken(body []byte, token string) []byte {
	if token == "" {
		return body
	}
	field := `<input type="hidden" name="` + formTokenField + `" value="` + html.EscapeString(token) + `">`
	return postingForm.ReplaceAll(body, []byte("$0"+field))
}

func (r response) send(c echo.Context) error {
	header := c.Response().Header()
	for name, values := range r.header {
		header[name] = values
	}
	header.Set(echo.HeaderCacheControl, "no-store")
	if r.location != "" {
		return c.Redirect(r.status, r.location)
	}
	return c.Blob(r.status, header.Get(echo.HeaderContentType), r.body)
}
