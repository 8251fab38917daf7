package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"purser/docs"
)

// languageCookie keeps the language of examples, for a year.
const (
	languageCookie       = "language"
	languageCookieMaxAge = 365 * 24 * 60 * 60
)

// exampleLanguage is the language that the address names, or the one chosen before. remember
// adds the cookie when the address names one.
func (req *request) exampleLanguage() (language docs.Language, remember func(response) response) {
	chosen := req.query("language")
	if cookie, err := req.http().Cookie(languageCookie); chosen == "" && err == nil {
		chosen = cookie.Value
	}
	language = docs.FindLanguage(chosen)
	return language, func(r response) response {
		if req.query("language") != language.Key {
			return r
		}
		cookie := http.Cookie{Name: languageCookie, Value: language.Key, Path: "/", MaxAge: languageCookieMaxAge,
			HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: req.site.https}
		return r.with(echo.HeaderSetCookie, cookie.String())
	}
}
