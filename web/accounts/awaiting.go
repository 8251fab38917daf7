package accounts

import (
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
	if err := sealCookie(req, awaitingCookieName(req), awaitingPlace, codeTimeout, account.UserID.Format(ids.User), account.ChangedAt, req.Site.Now()); err != nil {
		return site.Response{}, err
	}
	return site.Redirect("/login/code?" + url.Values{"next": {next}}.Encode()), nil
}

// endAwaiting deletes the cookie of a sign-in that waits, also when another user signs in.
func endAwaiting(req *site.Request) {
	if _, err := req.HTTP().Cookie(awaitingCookieName(req)); err == nil {
		setCookie(req, awaitingCookieName(req), "", -1)
	}
}

// awaitingCode is the user whose password was right a short time ago and whose code is
// missing, and when that password was set.
func awaitingCode(req *site.Request) (user ids.ID, passwordAt int64, waiting bool) {
	var text string
	var at int64
	if !scanCookie(req, awaitingCookieName(req), awaitingPlace, &text, &passwordAt, &at) {
		return user, 0, false
	}
	user, err := ids.Parse(ids.User, text)
	age := req.Site.Now() - at // below zero when a server whose clock is ahead took the password
	return user, passwordAt, err == nil && age >= -time.Second.Milliseconds() && age <= codeTimeout.Milliseconds()
}
