package accounts

import (
	"encoding/base64"
	"net/http"
	"time"

	"purser/ids"
	"purser/tenancy/vault"
	"purser/web/site"
)

// deviceTTL is how long a browser stays a known device after a sign-in.
const deviceTTL = 365 * 24 * time.Hour

// A device is a browser in which an account has signed in completely. Its attempts are
// counted apart from those of other clients, so that guesses from elsewhere never lock the
// account's owner out. The cookie proves nothing else: it opens no session and takes the
// place of no password or code.

// deviceCookieName is the session cookie's name with a suffix.
func deviceCookieName(req *site.Request) string { return req.Site.SessionCookie() + "-device" }

func devicePlace(user ids.ID) vault.Place { return vault.Place{Purpose: "device", Row: user} }

// deviceOf is the device id of this browser for the user, or "". The cookie is sealed
// for one user and is not valid for another account.
func deviceOf(req *site.Request, user ids.ID) string {
	cookie, err := req.HTTP().Cookie(deviceCookieName(req))
	if err != nil || user.IsZero() {
		return ""
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return ""
	}
	id, err := req.Site.Vault.Open(devicePlace(user), sealed)
	if err != nil {
		return ""
	}
	return string(id)
}

// signInOnDevice signs in and makes this browser a known device, whose attempts are
// counted separately.
func signInOnDevice(req *site.Request, user ids.ID, passwordAt, factorAt int64) error {
	if err := req.SignIn(user, passwordAt, factorAt); err != nil {
		return err
	}
	return rememberDevice(req, user)
}

// rememberDevice sets the device cookie for the user.
func rememberDevice(req *site.Request, user ids.ID) error {
	id := deviceOf(req, user)
	if id == "" {
		id = ids.New().String()
	}
	sealed, err := req.Site.Vault.Seal(devicePlace(user), []byte(id))
	if err != nil {
		return err
	}
	req.SetCookie(&http.Cookie{
		Name: deviceCookieName(req), Value: base64.RawURLEncoding.EncodeToString(sealed), Path: "/",
		MaxAge: int(deviceTTL / time.Second), HttpOnly: true, Secure: req.Site.HTTPS, SameSite: http.SameSiteLaxMode,
	})
	return nil
}
