package api

import "net/http"

// reply is a successful response.
type reply struct {
	status int
	body   any
}

func ok(body any) reply      { return reply{http.StatusOK, body} }
func created(body any) reply { return reply{http.StatusCreated, body} }

func okOr(body any, err error) (reply, error)      { return ok(body), err }
func createdOr(body any, err error) (reply, error) { return created(body), err }
