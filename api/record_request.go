package api

import (
	"cmp"
	"net/http"

	"purser/store/reports"
)

// recordRequest counts the request for the application's request list, unless its key is
// unknown. It takes a lock and updates counters after the response was sent; they are
// flushed to the database later.
func (s *Server) recordRequest(c *call) {
	if c.keyID.IsZero() {
		return
	}
	r := reports.Request{
		ID: c.id, At: c.now - c.clockOffset, Method: c.route.method, Route: c.route.path, Status: c.record.Status,
		Code: c.record.Fault, TookMicros: c.record.Took.Microseconds(), KeyID: c.keyID,
		Identity: cmp.Or(c.body.Text("identity"), c.path["identity"]), Feature: c.body.Text("feature"), Message: c.record.Message,
	}
	if c.route.path == erasePath {
		r.Identity = "" // it would outlive the erasure
	}
	if r.Failed() {
		r.Authenticated = r.Status != http.StatusUnauthorized && (c.authenticated || s.isCachedUsable(c))
	}
	s.store.Stats().RecordRequest(c.scope, r)
}

// isCachedUsable reports whether the key was usable when last read, for requests refused
// before it is read again.
func (s *Server) isCachedUsable(c *call) bool {
	cached, known := s.keys.Peek(c.keyName())
	return known && cached.Usable(c.now) == nil
}
