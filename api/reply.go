package api

import (
	"io"
	"net/http"
)

// reply is a successful response: a body, or a stream of JSON.
type reply struct {
	status int
	body   any
	stream func(begin func() io.Writer) error
}

func ok(body any) reply      { return reply{status: http.StatusOK, body: body} }
func created(body any) reply { return reply{status: http.StatusCreated, body: body} }

func okOr(body any, err error) (reply, error)      { return ok(body), err }
func createdOr(body any, err error) (reply, error) { return created(body), err }

// createdOnce is 201 for something new, and 200 for a repeated request.
func createdOnce(body any, duplicate bool, err error) (reply, error) {
	if duplicate {
		return okOr(body, err)
	}
	return createdOr(body, err)
}
