package httpd

import (
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// Header values shared by all responses, to save an allocation each. Dashboard pages
// replace the content security policy.
var (
	closeConnection = []string{"close"}
	noSniff         = []string{"nosniff"}
	noContent       = []string{"default-src 'none'; frame-ancestors 'none'"}
	noReferrer      = []string{"no-referrer"}
	strictTransport = []string{StrictTransport}
)

// StrictTransport is one year, the minimum for browsers' preload lists.
const StrictTransport = "max-age=31536000; includeSubDomains"

// setHeaders sets the security headers of every response, and Connection: close while
// the server drains.
func (s *Server) setHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		header := ec.Response().Header()
		header[echo.HeaderXContentTypeOptions] = noSniff
		header[echo.HeaderContentSecurityPolicy] = noContent
		header[echo.HeaderReferrerPolicy] = noReferrer
		if s.options.HTTPS || ec.Request().TLS != nil {
			header[echo.HeaderStrictTransportSecurity] = strictTransport
		}
		if s.draining.Load() {
			header[echo.HeaderConnection] = closeConnection
		}
		return next(ec)
	}
}

// traceID is the trace id of a W3C traceparent header, or "" if it is malformed. Later
// versions may append fields.
func traceID(header http.Header) string {
	values := header["Traceparent"]
	if len(values) != 1 {
		return ""
	}
	text := values[0]
	if len(text) < 55 || len(text) > 55 && (text[:2] == "00" || text[55] != '-') ||
		text[2] != '-' || text[35] != '-' || text[52] != '-' || text[:2] == "ff" {
		return ""
	}
	for _, part := range []string{text[:2], text[3:35], text[36:52], text[53:55]} {
		if _, err := hex.DecodeString(part); err != nil || strings.ToLower(part) != part {
			return ""
		}
	}
	if strings.Count(text[3:35], "0") == 32 || strings.Count(text[36:52], "0") == 16 {
		return ""
	}
	return text[3:35]
}
