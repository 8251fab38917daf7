package web

import (
	"net/http"
	"time"

	"purser/views/component"
)

// themeLifetime is how long a browser keeps the chosen theme.
const themeLifetime = 365 * 24 * time.Hour

// chooseTheme keeps the chosen theme in the browser and returns to the page. The system's
// theme deletes the cookie.
func (s *Site) chooseTheme(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	cookie := &http.Cookie{
		Name: component.ThemeCookie, Value: component.ParseTheme(f.text("theme")), Path: "/", MaxAge: int(themeLifetime.Seconds()),
		HttpOnly: true, Secure: s.overHTTPS(req.http()), SameSite: http.SameSiteLaxMode,
	}
	if cookie.Value == "" {
		cookie.MaxAge = -1
	}
	req.setCookie(cookie)
	return redirect(req.returnPath()), nil
}
