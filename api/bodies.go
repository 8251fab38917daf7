package api

import (
	"github.com/labstack/echo/v4"
)

const (
	// maxBodies is how many bytes of bodies may be under way at once outside of /v1,
	// where bodies are read before it is known who sends them. In /v1 the key comes
	// first, and requests in flight are bounded.
	maxBodies = 32 << 20
	// unknownBody counts for a body that does not say how long it is.
	unknownBody = 64 << 10
	// largestBody is the most that a handler reads here.
	largestBody = 256 << 10
	// smallestBody counts for any body: a short one that is sent slowly holds a
	// connection as well.
	smallestBody = 16 << 10
)

// bodyBytes is the bound for a number of bodies; 0 is the default. One network may
// have half of it, and that fits the largest body.
func bodyBytes(bodies int) int64 {
	if bodies == 0 {
		return maxBodies
	}
	return max(2*largestBody, min(int64(bodies)*smallestBody, maxBodies))
}

// limitBodies refuses bodies beyond the bound, before they are read. Networks
// share it, so one that sends its bodies slowly does not stop the others.
func (s *Server) limitBodies(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		r := ec.Request()
		if r.ContentLength == 0 || forPrograms(r.URL.Path) {
			return next(ec)
		}
		weight := int64(unknownBody)
		if r.ContentLength > 0 {
			weight = min(max(r.ContentLength, smallestBody), largestBody)
		}
		network := s.networkOf(r)
		if err := s.bodies.enter(network, weight); err != nil {
			ec.Response().Header()[echo.HeaderConnection] = closeConnection // the body stays unread
			return err
		}
		defer s.bodies.leave(network, weight)
		return next(ec)
	}
}
