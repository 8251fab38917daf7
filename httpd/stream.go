package httpd

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// streamPatience is how long a client may take to read one part of a streamed response.
const streamPatience = 30 * time.Second

// cutError is the failure of a response that has begun: its connection is closed, so that
// the client doesn't take the part for the whole.
type cutError struct{ cause error }

func (e *cutError) Error() string { return "response cut off: " + e.cause.Error() }

func (e *cutError) Unwrap() error { return e.cause }

// lostError is the failure of a write to the client: it has hung up or stopped reading.
type lostError struct{ cause error }

func (e *lostError) Error() string { return "client lost: " + e.cause.Error() }

func (e *lostError) Unwrap() error { return e.cause }

// Stream sends a response of any length in parts. The producer calls begin once it can no
// longer refuse; an error before that is a response of its own.
func Stream(ec echo.Context, produce func(begin func() io.Writer) error) error {
	begun := false
	err := produce(func() io.Writer {
		begun = true
		ec.Response().Header().Set("Cache-Control", "no-store")
		ec.Response().WriteHeader(http.StatusOK)
		return partWriter{ec.Response(), http.NewResponseController(ec.Response())}
	})
	if err != nil && begun {
		return &cutError{err}
	}
	return err
}

// partWriter sends each part at once. A client that stops reading fails the next write.
type partWriter struct {
	to      io.Writer
	control *http.ResponseController
}

func (w partWriter) Write(part []byte) (int, error) {
	if err := w.control.SetWriteDeadline(time.Now().Add(streamPatience)); err != nil {
		return 0, err
	}
	n, err := w.to.Write(part)
	if err == nil {
		err = w.control.Flush()
	}
	if err != nil && !errors.Is(err, net.ErrClosed) { // which the server itself has closed
		err = &lostError{err}
	}
	return n, err
}
