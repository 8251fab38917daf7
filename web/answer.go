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

// answer is what a handler gives back. It is sent only after the session was
// kept, so a failing session store never lets a page out.
type answer struct {
	status   int
	view     templ.Component
	location string
	body     []byte
	header   http.Header
}

// show answers with a view.
func show(view templ.Component) answer { return answer{status: http.StatusOK, view: view} }

// invalid answers a form that cannot be taken: the same form, with its values and
// what is wrong with them.
func invalid(view templ.Component) answer {
	return answer{status: http.StatusUnprocessableEntity, view: view}
}

// conflict answers a form whose revision is stale: yours and theirs.
func conflict(view templ.Component) answer {
	return answer{status: http.StatusConflict, view: view}
}

// redirect sends the browser on with a GET.
func redirect(path string) answer {
	return answer{status: http.StatusSeeOther, location: path}
}

// download answers with a file for the disk.
func download(name, contentType string, body []byte) answer {
	return answer{status: http.StatusOK, body: body, header: http.Header{
		echo.HeaderContentType:        {contentType},
		echo.HeaderContentDisposition: {mime.FormatMediaType("attachment", map[string]string{"filename": name})},
	}}
}

// with adds a header.
func (a answer) with(name, value string) answer {
	header := a.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(name, value)
	a.header = header
	return a
}

// render makes the page whole, with the form token in each of its forms.
func (a answer) render(ctx context.Context, formToken string) (answer, error) {
	if a.view == nil {
		return a, nil
	}
	var body bytes.Buffer
	if err := a.view.Render(ctx, &body); err != nil {
		return a, fmt.Errorf("web: rendering a page: %w", err)
	}
	a.body = withFormToken(body.Bytes(), formToken)
	return a.with(echo.HeaderContentType, echo.MIMETextHTMLCharsetUTF8), nil
}

var postingForm = regexp.MustCompile(`<form\s[^>]*method="post"[^>]*>`)

// withFormToken puts the token into every form that posts. It is done here and not
// in the views, so that no form can be without it. Text of people is escaped, so
// a tag in the page is one of ours.
func withFormToken(body []byte, token string) []byte {
	if token == "" {
		return body
	}
	field := `<input type="hidden" name="` + formTokenField + `" value="` + html.EscapeString(token) + `">`
	return postingForm.ReplaceAll(body, []byte("$0"+field))
}

func (a answer) send(c echo.Context) error {
	header := c.Response().Header()
	for name, values := range a.header {
		header[name] = values
	}
	header.Set(echo.HeaderCacheControl, "no-store")
	if a.location != "" {
		return c.Redirect(a.status, a.location)
	}
	return c.Blob(a.status, header.Get(echo.HeaderContentType), a.body)
}
