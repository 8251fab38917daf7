package site

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

// ExampleLanguage is the language that the address names, or the one chosen before. remember
// adds the cookie when the address names one.
func (req *Request) ExampleLanguage() (language docs.Language, remember func(Response) Response) {
	chosen := req.Query("language")
	if cookie, err := req.HTTP().Cookie(languageCookie); chosen == "" && err == nil {
		chosen = cookie.Value
	}
	language = docs.FindLanguage(chosen)
	return language, func(r Response) Response {
		if req.Query("language") != language.Key {
			return r
		}
		cookie := http.Cookie{Name: languageCookie, Value: language.Key, Path: "/", MaxAge: languageCookieMaxAge,
			HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: req.Site.HTTPS}
		return r.with(echo.HeaderSetCookie, cookie.String())
	}
}
