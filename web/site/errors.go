package site

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/httpd"
	"purser/views/component"
	"purser/views/page"
)

// RenderError renders an error page. The composition root calls it from echo's error
// handler for paths outside /v1; the cause is only logged, with the request id.
func (s *Site) RenderError(c echo.Context, status int, requestID string) error {
	s.setHeaders(c)
	failure := failureOf(status)
	failure.RequestID = requestID
	ctx := component.WithTheme(c.Request().Context(), themeOf(c.Request()))
	reply, err := Response{status: failure.Status, view: page.Error(failure)}.render(ctx, "")
	if err != nil {
		return err
	}
	return reply.send(c)
}

// statusOf maps a kind of fault to the status of its page.
var statusOf = map[fault.Kind]int{
	fault.Invalid:       http.StatusUnprocessableEntity,
	fault.Forbidden:     http.StatusForbidden,
	fault.NotFound:      http.StatusNotFound,
	fault.Conflict:      http.StatusConflict,
	fault.TooLarge:      http.StatusRequestEntityTooLarge,
	fault.Unprocessable: http.StatusUnprocessableEntity,
	fault.Limited:       http.StatusTooManyRequests,
}

// errorResponse renders a fault as a page. Every 404 looks the same, whether the object
// exists in another tenant or not. An error that is not a fault is internal and is
// returned.
func (req *Request) errorResponse(err error) (Response, error) {
	refusal, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return Response{}, err
	}
	status, known := statusOf[refusal.Kind()]
	if !known {
		return Response{}, err
	}
	failure := failureOf(status)
	failure.RequestID = req.RequestID()
	if status != http.StatusNotFound {
		failure.Advice = refusal.Message
	}
	if req.IsSignedIn() {
		failure.Frame = req.Frame(failure.Title, "")
		if failure.Lead == "" {
			failure.Lead, failure.Href = req.wayBack()
		}
	}
	reply := Response{status: status, view: page.Error(failure)}
	if status == http.StatusTooManyRequests {
		reply = reply.with("Retry-After", strconv.Itoa(httpd.RetryAfter(err)))
	}
	return reply, nil
}

// wayBack leads to the start of where the user is.
func (req *Request) wayBack() (label, href string) {
	switch {
	case !req.App.ID.IsZero() && req.FirstPage(req.App) != "":
		return "Go to " + req.App.Name, req.AppPath()
	case !req.Org.ID.IsZero():
		return "Go to " + req.Org.Name, req.OrgPath()
	default:
		return "Go to your organizations", "/o"
	}
}

var failures = map[int]page.Failure{
	http.StatusNotFound:         {Title: "Page not found", Advice: "Check the address and try again."},
	http.StatusForbidden:        {Title: "You don't have access", Advice: "Ask an owner or admin of the organization for access."},
	http.StatusConflict:         {Title: "This can't be done right now", Advice: "Something changed in the meantime. Reload the page and try again."},
	http.StatusMethodNotAllowed: {Title: "Something went wrong", Advice: "This page doesn't support that request. Open it from the home page."},
	http.StatusTooManyRequests:  {Title: "Too many requests", Advice: "Your request wasn't processed. Wait a moment, then try again."},
	http.StatusServiceUnavailable: {
		Title: "Purser isn't ready", Advice: "It's starting, stopping or waiting for its database. Try again in a moment.",
	},
}

// failureOf is the title and advice for a status.
func failureOf(status int) page.Failure {
	f, known := failures[status]
	switch {
	case known:
	case status >= 400 && status < 500:
		f = page.Failure{Title: "Your request couldn't be processed", Advice: "Go back and try again."}
	default:
		status = max(status, http.StatusInternalServerError)
		f = page.Failure{
			Title:  "Something went wrong on our end",
			Advice: "Try again in a moment. If it keeps failing, send the request ID to the operator of this server.",
		}
	}
	f.Status = status
	return f
}

// TooMany refuses an attempt until the wait is over.
func TooMany(wait time.Duration) error {
	refusal := fault.Newf(fault.RateLimited, "Too many attempts. Try again in %s.", waitText(wait))
	return &httpd.WaitError{Fault: refusal, Wait: wait}
}

// waitText rounds a wait up to whole seconds, minutes or hours.
func waitText(wait time.Duration) string {
	up := func(unit time.Duration) int64 { return int64((wait + unit - 1) / unit) }
	switch {
	case wait >= 2*time.Hour:
		return component.Counted(up(time.Hour), "hour", "hours")
	case wait >= 2*time.Minute:
		return component.Counted(up(time.Minute), "minute", "minutes")
	default:
		return component.Counted(up(time.Second), "second", "seconds")
	}
}
