package accounts

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"purser/ids"
	"purser/store/people"
	"purser/tenancy/vault"
	"purser/web/site"
)

// A sign-in whose password was right waits for the code in a sealed cookie. It is not
// stored: people have any number of them, and who only knows the password must not end
// those of the account's owner.

// codeTimeout is how long the second step may take after the password.
const codeTimeout = 10 * time.Minute

var awaitingPlace = vault.Place{Purpose: "awaiting code"}

// awaitingCookieName is the session cookie's name with a suffix.
func awaitingCookieName(req *site.Request) string { return req.Site.SessionCookie() + "-code" }

// requireCode asks for the second factor. It ends any earlier session in this browser: the
// password must not count for another user.
func requireCode(req *site.Request, account people.Account, next string) (site.Response, error) {
	if req.IsSignedIn() {
		if err := req.SignOut(); err != nil {
			return site.Response{}, err
		}
	}
	sealed, err := req.Site.Vault.Seal(awaitingPlace, fmt.Append(nil, account.UserID.Format(ids.User), " ", account.ChangedAt, " ", req.Site.Now()))
	if err != nil {
		return site.Response{}, err
	}
	setAwaiting(req, base64.RawURLEncoding.EncodeToString(sealed), int(codeTimeout/time.Second))
	return site.Redirect("/login/code?" + url.Values{"next": {next}}.Encode()), nil
}

// endAwaiting deletes the cookie of a sign-in that waits, also when another user signs in.
func endAwaiting(req *site.Request) {
	if _, err := req.HTTP().Cookie(awaitingCookieName(req)); err == nil {
		setAwaiting(req, "", -1)
	}
}

// setAwaiting sets the cookie, or deletes it with a negative age.
func setAwaiting(req *site.Request, value string, maxAge int) {
	req.SetCookie(&http.Cookie{
		Name: awaitingCookieName(req), Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: req.Site.HTTPS, SameSite: http.SameSiteLaxMode,
	})
}

// awaitingCode is the user whose password was right a short time ago and whose code is
// missing, and when that password was set.
func awaitingCode(req *site.Request) (user ids.ID, passwordAt int64, waiting bool) {
	cookie, err := req.HTTP().Cookie(awaitingCookieName(req))
	if err != nil {
		return user, 0, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return user, 0, false
	}
	content, err := req.Site.Vault.Open(awaitingPlace, sealed)
	if err != nil {
		return user, 0, false
	}
	var text string
	var at int64
	if _, err := fmt.Sscan(string(content), &text, &passwordAt, &at); err != nil {
		return user, 0, false
	}
	user, err = ids.Parse(ids.User, text)
	age := req.Site.Now() - at // below zero when a server whose clock is ahead took the password
	return user, passwordAt, err == nil && age >= -time.Second.Milliseconds() && age <= codeTimeout.Milliseconds()
}
