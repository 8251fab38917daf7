package httpd

import "github.com/labstack/echo/v4"

const (
	// maxBodies is how many bytes of request bodies may be in flight outside /v1, where
	// the body is read before the sender is authenticated. In /v1 the key comes first
	// and requests in flight are bounded.
	maxBodies = 32 << 20
	// unknownBody is the weight of a body without Content-Length.
	unknownBody = 64 << 10
	// largestBody is the largest body that a handler outside /v1 reads.
	largestBody = 256 << 10
	// smallestBody is the least weight of a body: a short body that is sent slowly holds
	// a connection too.
	smallestBody = 16 << 10
)

// bodyBytes converts a number of bodies into the bound in bytes; 0 is the default. One
// network may use half of it, and half fits the largest body.
func bodyBytes(bodies int) int64 {
	if bodies == 0 {
		return maxBodies
	}
	return max(2*largestBody, min(int64(bodies)*smallestBody, maxBodies))
}

// limitBodies refuses bodies beyond the bound before they are read. The bound is shared
// among networks, so one that sends slowly does not block the others.
func (s *Server) limitBodies(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		r := ec.Request()
		if r.ContentLength == 0 || isAPIPath(r.URL.Path) {
			return next(ec)
		}
		weight := int64(unknownBody)
		if r.ContentLength > 0 {
			weight = min(max(r.ContentLength, smallestBody), largestBody)
		}
		network := s.options.NetworkOf(r)
		if err := s.bodies.Enter(network, weight); err != nil {
			ec.Response().Header()[echo.HeaderConnection] = closeConnection // the body stays unread
			return err
		}
		defer s.bodies.Leave(network, weight)
		return next(ec)
	}
}
