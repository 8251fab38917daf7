package api

import "github.com/labstack/echo/v4"

// setHeaders puts on every reply of the server what does not depend on the request.
func (s *Server) setHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		if s.draining.Load() {
			ec.Response().Header()[echo.HeaderConnection] = closeConnection
		}
		return next(ec)
	}
}

// Values that many replies share: a slice for each would be an allocation.
var closeConnection = []string{"close"}
