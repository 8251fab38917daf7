package httpd

import (
	"time"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/ids"
)

// Request is what the shell knows of one request. Handlers fill in the middle part.
type Request struct {
	ID ids.ID

	// App and Key are logged; zero while no key was read.
	App, Key ids.ID
	// Anonymous marks a sender that is not known yet: the connection of a refused request
	// is closed rather than its body awaited.
	Anonymous bool
	// Done is called once the response was sent.
	Done func()

	// Status, Fault, Message and Took describe the response.
	Status  int
	Fault   fault.Code // of a refusal
	Message string     // of a refusal, as it was sent
	Took    time.Duration
}

const requestKey = "request" // in echo's context

// RequestOf returns the request's record. Outside the shell it is an empty one.
func RequestOf(ec echo.Context) *Request {
	r, found := ec.Get(requestKey).(*Request)
	if !found {
		r = &Request{}
	}
	return r
}

const requestIDHeader = "X-Request-Id"

func requestID(ec echo.Context) string { return ec.Response().Header().Get(requestIDHeader) }
