package api

import (
	"cmp"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/store"
)

// remember keeps the request for the list that the application's people see. One
// whose key leads nowhere is nobody's. It costs a lock and a few counters, after
// the caller has the answer; writing it down is for later.
func (s *Server) remember(ec echo.Context, took time.Duration) {
	c, known := ec.Get(callKey).(*call)
	if !known || c.keyID.IsZero() {
		return
	}
	refused, _ := ec.Get(faultKey).(fault.Code)
	r := store.Request{
		ID: c.id, At: c.now - c.ahead, Method: c.route.method, Route: c.route.path, Status: ec.Response().Status,
		Code: refused, TookMicros: took.Microseconds(), KeyID: c.keyID,
	}
	if r.Failed() {
		r.Authenticated = r.Status != http.StatusUnauthorized && (c.admitted || s.knowsUsable(c))
		r.Identity, r.Feature = cmp.Or(c.body.Text("identity"), c.path["identity"]), c.body.Text("feature")
	}
	s.store.RecordRequest(c.scope, r)
}

// knowsUsable reports whether the call's key worked when it was last read, for requests
// that are refused before it is read again.
func (s *Server) knowsUsable(c *call) bool {
	cached, known := s.keys.Peek(c.keyName())
	return known && cached.Usable(c.now) == nil
}
