package accounts

import (
	"net/http"
	"time"

	"purser/views/component"
	"purser/web/site"
)

// themeLifetime is how long a browser keeps the chosen theme.
const themeLifetime = 365 * 24 * time.Hour

// chooseTheme keeps the chosen theme in the browser and returns to the page. The system's
// theme deletes the cookie.
func (s *Pages) chooseTheme(req *site.Request) (site.Response, error) {
	f := req.Form
	cookie := &http.Cookie{
		Name: component.ThemeCookie, Value: component.ParseTheme(f.Text("theme")), Path: "/", MaxAge: int(themeLifetime.Seconds()),
		HttpOnly: true, Secure: s.OverHTTPS(req.HTTP()), SameSite: http.SameSiteLaxMode,
	}
	if cookie.Value == "" {
		cookie.MaxAge = -1
	}
	req.SetCookie(cookie)
	return site.Redirect(req.ReturnPath()), nil
}
