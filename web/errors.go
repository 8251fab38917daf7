package web

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/views/page"
)

// RenderError answers a person with a page in place of the one that failed. The
// composition root calls it from echo's error handler for paths outside /v1;
// the cause stays in the log, where the request id finds it.
func (s *Site) RenderError(c echo.Context, status int, requestID string) error {
	s.setHeaders(c)
	failure := explain(status)
	failure.RequestID = requestID
	reply, err := answer{status: failure.Status, view: page.Error(failure)}.render(c.Request().Context(), "")
	if err != nil {
		return err
	}
	return reply.send(c)
}

// statusOf is what each kind of refusal is to a person.
var statusOf = map[fault.Kind]int{
	fault.Invalid:       http.StatusUnprocessableEntity,
	fault.Forbidden:     http.StatusForbidden,
	fault.NotFound:      http.StatusNotFound,
	fault.Conflict:      http.StatusConflict,
	fault.TooLarge:      http.StatusRequestEntityTooLarge,
	fault.Unprocessable: http.StatusUnprocessableEntity,
	fault.Limited:       http.StatusTooManyRequests,
}

// explain answers a refusal with a page. What was not found is told in one way,
// whoever's it is. An error that is no refusal comes back: it is ours.
func (v *visit) explain(err error) (answer, error) {
	var refusal *fault.Fault
	if !errors.As(err, &refusal) {
		return answer{}, err
	}
	status, known := statusOf[refusal.Kind()]
	if !known {
		return answer{}, err
	}
	failure := explain(status)
	failure.RequestID = v.requestID()
	if status != http.StatusNotFound {
		failure.Advice = refusal.Message
	}
	reply := answer{status: status, view: page.Error(failure)}
	if status == http.StatusTooManyRequests {
		later := waiting{seconds: 1}
		errors.As(err, &later)
		reply = reply.with("Retry-After", strconv.FormatInt(later.seconds, 10))
	}
	return reply, nil
}

// explain says what happened and what to do now.
func explain(status int) page.Failure {
	switch status {
	case http.StatusNotFound:
		return page.Failure{
			Status: status,
			Title:  "Page not found",
			Advice: "Check the address, or go to the home page.",
		}
	case http.StatusForbidden:
		return page.Failure{
			Status: status,
			Title:  "You don't have access",
			Advice: "Ask an owner or admin of the organization for access.",
		}
	case http.StatusConflict:
		return page.Failure{
			Status: status,
			Title:  "This can't be done right now",
			Advice: "Something changed in the meantime. Reload the page and try again.",
		}
	case http.StatusMethodNotAllowed:
		return page.Failure{
			Status: status,
			Title:  "Something went wrong",
			Advice: "This page doesn't support that request. Open it from the home page.",
		}
	case http.StatusTooManyRequests:
		return page.Failure{
			Status: status,
			Title:  "Too many requests",
			Advice: "Your request wasn't processed. Wait a moment, then try again.",
		}
	case http.StatusServiceUnavailable:
		return page.Failure{
			Status: status,
			Title:  "Purser isn't ready",
			Advice: "It's starting, stopping or waiting for its database. Try again in a moment.",
		}
	}
	if status >= 400 && status < 500 {
		return page.Failure{
			Status: status,
			Title:  "Your request couldn't be processed",
			Advice: "Go back and try again, or go to the home page.",
		}
	}
	return page.Failure{
		Status: max(status, http.StatusInternalServerError),
		Title:  "Something went wrong on our end",
		Advice: "Try again in a moment. If it keeps failing, send the request ID to the operator of this server.",
	}
}
