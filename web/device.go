package web

import (
	"encoding/base64"
	"net/http"
	"time"

	"purser/ids"
	"purser/tenancy/vault"
)

// deviceLasts is how long a browser is known after a sign-in.
const deviceLasts = 365 * 24 * time.Hour

// A device is a browser in which an account has signed in completely. Its attempts are
// counted apart from those of strangers, so that guesses from elsewhere never keep the
// account's owner out. The cookie proves nothing else: it opens no session and takes the
// place of no password or code.

// deviceCookieName is the session cookie's name with an ending.
func (s *Site) deviceCookieName() string { return s.sessions.Cookie.Name + "-device" }

func devicePlace(user ids.ID) vault.Place { return vault.Place{Purpose: "device", Row: user} }

// deviceOf is the id of this browser if the user has signed in with it before, and empty
// otherwise. The cookie is sealed for one user: it counts for no other account.
func (v *visit) deviceOf(user ids.ID) string {
	cookie, err := v.request().Cookie(v.site.deviceCookieName())
	if err != nil || user.IsZero() {
		return ""
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return ""
	}
	id, err := v.site.vault.Open(devicePlace(user), sealed)
	if err != nil {
		return ""
	}
	return string(id)
}

// signInHere signs in and makes this browser known, so that later attempts from it are
// counted apart.
func (v *visit) signInHere(user ids.ID) error {
	if err := v.signIn(user); err != nil {
		return err
	}
	return v.rememberDevice(user)
}

// rememberDevice makes this browser a device of the user.
func (v *visit) rememberDevice(user ids.ID) error {
	id := v.deviceOf(user)
	if id == "" {
		id = ids.New().String()
	}
	sealed, err := v.site.vault.Seal(devicePlace(user), []byte(id))
	if err != nil {
		return err
	}
	v.echo.SetCookie(&http.Cookie{
		Name: v.site.deviceCookieName(), Value: base64.RawURLEncoding.EncodeToString(sealed), Path: "/",
		MaxAge: int(deviceLasts / time.Second), HttpOnly: true, Secure: v.site.https, SameSite: http.SameSiteLaxMode,
	})
	return nil
}
