package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// Nothing inline, nothing from elsewhere. The two foreign form targets are
// where a hosted checkout and a billing portal live: browsers apply form-action
// also to the redirect that follows a form.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"form-action 'self' https://checkout.stripe.com https://billing.stripe.com; frame-ancestors 'none'; base-uri 'none'"

// One year, the least that browsers' preload lists take.
const strictTransportSecurity = "max-age=31536000; includeSubDomains"

// protect puts the security headers on whatever the handler answers.
func (s *Site) protect(next echo.HandlerFunc) echo.HandlerFunc {
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
	if s.overHTTPS(c.Request()) {
		header.Set(echo.HeaderStrictTransportSecurity, strictTransportSecurity)
	}
}

// overHTTPS believes the configuration and the connection, never a forwarded
// header, which anybody can send.
func (s *Site) overHTTPS(r *http.Request) bool {
	return s.https || r.TLS != nil
}
