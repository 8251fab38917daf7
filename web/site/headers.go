package site

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"purser/httpd"
)

// No inline or external resources. The two external form targets are the hosted checkout
// and the billing portal: browsers apply form-action to the redirect after a form too.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; manifest-src 'self'; " +
	"form-action 'self' https://checkout.stripe.com https://billing.stripe.com; frame-ancestors 'none'; base-uri 'none'"

// Protect sets the security headers of every response.
func (s *Site) Protect(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		s.setHeaders(c)
		return next(c)
	}
}

func (s *Site) setHeaders(c echo.Context) {
	header := c.Response().Header()
	header.Set(echo.HeaderContentSecurityPolicy, contentSecurityPolicy)
	header.Set(echo.HeaderXContentTypeOptions, "nosniff")
	header.Set(echo.HeaderReferrerPolicy, "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	if s.OverHTTPS(c.Request()) {
		header.Set(echo.HeaderStrictTransportSecurity, httpd.StrictTransport)
	}
}

// OverHTTPS trusts the configuration and the connection, never a forwarded header, which
// any client can send.
func (s *Site) OverHTTPS(r *http.Request) bool {
	return s.HTTPS || r.TLS != nil
}
