package site

import (
	"net/http"

	"purser/views/component"
)

// themeOf is the theme that the visitor's browser keeps.
func themeOf(r *http.Request) string {
	cookie, err := r.Cookie(component.ThemeCookie)
	if err != nil {
		return ""
	}
	return component.ParseTheme(cookie.Value)
}
