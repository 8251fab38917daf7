package accounts

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	"purser/tenancy/vault"
	"purser/web/site"
)

// sealCookie sets a cookie that only this server can read: the fields, sealed for the place.
func sealCookie(req *site.Request, name string, place vault.Place, lifetime time.Duration, fields ...any) error {
	sealed, err := req.Site.Vault.Seal(place, fmt.Appendln(nil, fields...))
	if err != nil {
		return err
	}
	setCookie(req, name, base64.RawURLEncoding.EncodeToString(sealed), int(lifetime/time.Second))
	return nil
}

// scanCookie reads the fields of a sealed cookie, and reports whether the request has one
// with all of them.
func scanCookie(req *site.Request, name string, place vault.Place, fields ...any) bool {
	cookie, err := req.HTTP().Cookie(name)
	if err != nil {
		return false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return false
	}
	content, err := req.Site.Vault.Open(place, sealed)
	if err != nil {
		return false
	}
	_, err = fmt.Sscan(string(content), fields...)
	return err == nil // else of an earlier version
}

// setCookie sets a cookie, or deletes it with a negative age.
func setCookie(req *site.Request, name, value string, maxAge int) {
	req.SetCookie(&http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: req.Site.HTTPS, SameSite: http.SameSiteLaxMode,
	})
}
