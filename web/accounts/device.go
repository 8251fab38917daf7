package accounts

import (
	"cmp"
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
// place of no password or code. It is bound to the password and the authenticator that
// signed in: a thief who knew an earlier password must not keep counts of their own.

// deviceCookieName is the session cookie's name with a suffix.
func deviceCookieName(req *site.Request) string { return req.Site.SessionCookie() + "-device" }

func devicePlace(user ids.ID) vault.Place { return vault.Place{Purpose: "device", Row: user} }

// hasDevice reports whether the browser sends a cookie that may be of a known device.
func hasDevice(req *site.Request) bool {
	_, err := req.HTTP().Cookie(deviceCookieName(req))
	return err == nil
}

// deviceOf is the device id of this browser for the user, or "". The cookie is sealed
// for one user and is not valid for another account, nor after the password was replaced.
// With factorAt, it is not valid if the authenticator was added later either.
func deviceOf(req *site.Request, user ids.ID, passwordAt, factorAt int64) (id string) {
	var password, factor int64
	if user.IsZero() || !scanCookie(req, deviceCookieName(req), devicePlace(user), &id, &password, &factor) {
		return ""
	}
	if password != passwordAt || factorAt != 0 && factor != factorAt {
		return ""
	}
	return id
}

// signInOnDevice signs in and makes this browser a known device, whose attempts are
// counted separately.
func signInOnDevice(req *site.Request, user ids.ID, passwordAt, factorAt int64) error {
	if err := req.SignIn(user, passwordAt, factorAt); err != nil {
		return err
	}
	endAwaiting(req)
	id := cmp.Or(deviceOf(req, user, passwordAt, factorAt), ids.New().String())
	return rememberDevice(req, user, id, passwordAt, factorAt)
}

// rememberDevice sets the device cookie for the user. Without an id it does nothing: only
// a sign-in makes a browser known.
func rememberDevice(req *site.Request, user ids.ID, id string, passwordAt, factorAt int64) error {
	if id == "" {
		return nil
	}
	return sealCookie(req, deviceCookieName(req), devicePlace(user), deviceTTL, id, passwordAt, factorAt)
}
