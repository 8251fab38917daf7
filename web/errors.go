package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"purser/views/page"
)

// RenderError answers a person with a page in place of the one that failed. The
// composition root calls it from echo's error handler for paths outside /v1;
// the cause stays in the log, where the request id finds it.
func (s *Site) RenderError(c echo.Context, status int, requestID string) error {
	s.setHeaders(c)
	failure := explain(status)
	failure.RequestID = requestID
	return render(c, failure.Status, page.Error(failure))
}

// explain says what happened and what to do now.
func explain(status int) page.Failure {
	switch status {
	case http.StatusNotFound:
		return page.Failure{
			Status: status,
			Title:  "There is no page at this address",
			Advice: "Check the address for a typing mistake, or begin at the start page.",
		}
	case http.StatusMethodNotAllowed:
		return page.Failure{
			Status: status,
			Title:  "This page cannot be used like that",
			Advice: "It was asked for in a way that it does not take. Open it from the start page.",
		}
	case http.StatusTooManyRequests:
		return page.Failure{
			Status: status,
			Title:  "Too many requests",
			Advice: "The server has done nothing with this one. Wait a moment, then try again.",
		}
	case http.StatusServiceUnavailable:
		return page.Failure{
			Status: status,
			Title:  "The server is not ready",
			Advice: "It is starting, stopping, or waiting for its database. Try again in a moment.",
		}
	}
	if status >= 400 && status < 500 {
		return page.Failure{
			Status: status,
			Title:  "The server could not take this request",
			Advice: "Go back and try it another way, or begin at the start page.",
		}
	}
	return page.Failure{
		Status: max(status, http.StatusInternalServerError),
		Title:  "Something failed on our side",
		Advice: "Try again in a moment. If it fails again, give the request id to whoever runs this server.",
	}
}
