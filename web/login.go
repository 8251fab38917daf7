package web

import (
	"net/url"
	"strings"
	"time"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/tenancy/credential"
	"purser/views/component"
	accountpage "purser/views/page/account"
)

// codeTimeout is how long the second step may take after the password.
const codeTimeout = 10 * time.Minute

// loginFailed is the one message for every failed sign-in, so that it does not reveal
// who has an account.
const loginFailed = "Wrong email or password."

func (s *Site) loginPage(req *request) (response, error) {
	if req.isSignedIn() {
		return redirect("/o"), nil
	}
	setUp, err := s.isSetUp(req.context)
	return show(accountpage.LoginPage(accountpage.Login{Next: localPath(req.query("next")), SignedOut: req.query("left") != "", NotSetUp: !setUp})), err
}

func (s *Site) login(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	next := localPath(f.raw("next"))
	account, right, err := req.checkPassword(f.text("email"), f.raw("password"))
	if err != nil {
		return response{}, err
	}
	if !right {
		f.fail("", loginFailed)
		return invalid(accountpage.LoginPage(accountpage.Login{Draft: f.draft("email"), Next: next})), nil
	}
	if account.HasFactor {
		return req.requireCode(account.UserID, next)
	}
	return req.finishLogin(account.UserID, "password", next)
}

// checkPassword counts the attempt, then compares. An email without an account costs the
// same reads and the same hash as one with.
func (req *request) checkPassword(typed, password string) (account store.Account, right bool, err error) {
	email, err := tenancy.ParseEmail(typed)
	if err != nil {
		email = strings.ToLower(typed) // no account has it, but the attempt is counted
	}
	account, err = req.site.store.Auth().Account(req.context, email)
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return account, false, err
	}
	from := req.deviceOf(account.UserID)
	p := proof{step: "password", user: account.UserID, known: from != ""}
	if !p.known {
		from = siteOf(req.bearer.address).String()
		p.address = credential.AddressSubject(email, account.ChangedAt, req.site.now())
	}
	p.subject = credential.PasswordSubject(email, account.ChangedAt, from)
	right, err = req.provePassword(p, &account, password)
	return account, right, err
}

// confirmPassword checks the signed-in user's password. Attempts are counted per
// session: others cannot use them up, and a stolen session is limited.
func (req *request) confirmPassword(password string) (account store.Account, right bool, err error) {
	account, err = req.site.store.Auth().Account(req.context, req.user.Email)
	if err != nil {
		return account, false, err
	}
	right, err = req.provePassword(req.sessionProof("password"), &account, password)
	return account, right, err
}

// sessionProof is an attempt within the session. Each step has its own count: the right
// password must not clear wrong codes.
func (req *request) sessionProof(step string) proof {
	return proof{step: "session " + step, user: req.user.ID, known: true, subject: credential.SessionSubject(req.bearer.token, step)}
}

// checkCounted enters the queue of password checks, counts the attempt and compares. An
// attempt refused by a full queue is not counted for the account: nothing was checked.
func (req *request) checkCounted(p proof, password, encoded string) (right, outdated bool, err error) {
	if err := req.attemptFromNetwork(p); err != nil {
		return false, false, err
	}
	leave, err := req.site.passwords.enter(req.context, p.known)
	if err != nil {
		return false, false, err
	}
	defer leave()
	if err := req.countAttempt(p); err != nil {
		return false, false, err
	}
	return credential.Check(password, encoded)
}

// provePassword counts the attempt and compares. An expired temporary password counts as
// wrong. An outdated hash is replaced, in account too.
func (req *request) provePassword(p proof, account *store.Account, password string) (right bool, err error) {
	if account.UserID.IsZero() {
		account.Encoded = credential.Dummy
	}
	right, outdated, err := req.checkCounted(p, password, account.Encoded)
	switch {
	case err != nil:
		return false, err
	case !right || account.UserID.IsZero():
		req.logRefusal(p, "wrong password")
		return false, nil
	case account.Expired(req.site.now()):
		req.logRefusal(p, "temporary password expired")
		return false, nil
	}
	if outdated {
		encoded, err := req.site.passwords.hash(req.context, password, p.known)
		if err != nil {
			return false, err
		}
		if err := req.site.store.User(account.UserID).RehashPassword(req.context, account.Encoded, encoded); err != nil {
			return false, err
		}
		account.Encoded = encoded
	}
	return true, req.clearAttempts(p)
}

// finishLogin signs in and redirects.
func (req *request) finishLogin(user ids.ID, factors, next string) (response, error) {
	if err := req.signInOnDevice(user); err != nil {
		return response{}, err
	}
	req.logAccount("signed in", user, "factors", factors)
	if next == "/" {
		next = "/o"
	}
	return redirect(next), nil
}

// logAccount logs an account event.
func (req *request) logAccount(event string, user ids.ID, more ...any) {
	req.site.log.Info(event, append([]any{"request", req.requestID(), "address", req.bearer.address, "user", user.Format(ids.User)}, more...)...)
}

// requireCode stores the user whose password was right and who still needs a second
// factor. It ends any earlier session in this browser: the password must not count for
// another user.
func (req *request) requireCode(user ids.ID, next string) (response, error) {
	if err := req.resetSession(); err != nil {
		return response{}, err
	}
	req.put(sessionAwaiting, user.Format(ids.User))
	req.markReauthenticated()
	return redirect("/login/code?" + url.Values{"next": {next}}.Encode()), nil
}

// pendingCodeUser is the user whose password was right within codeTimeout and whose code
// is missing.
func (req *request) pendingCodeUser() (user ids.ID, waiting bool) {
	m := req.site.sessions
	user, err := ids.Parse(ids.User, m.GetString(req.context, sessionAwaiting))
	age := req.site.now() - m.GetInt64(req.context, sessionReauthAt)
	return user, err == nil && age >= 0 && age <= codeTimeout.Milliseconds()
}

func (s *Site) codePage(req *request) (response, error) {
	if _, waiting := req.pendingCodeUser(); !waiting {
		return redirect("/login"), nil
	}
	return show(accountpage.SecondStepPage(accountpage.SecondStep{Next: localPath(req.query("next"))})), nil
}

func (s *Site) loginCode(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	user, waiting := req.pendingCodeUser()
	if !waiting {
		return redirect("/login"), nil
	}
	next := localPath(f.raw("next"))
	device := req.deviceOf(user)
	code := f.text("code")
	p := proof{step: "code", user: user, known: device != "", subject: credential.CodeSubject(user.Format(ids.User), device)}
	if credential.ParseRecoveryCode(code) != "" && !p.known {
		p.subject = credential.RecoverySubject(user.Format(ids.User), siteOf(req.bearer.address).String())
	}
	right, err := req.checkCode(p, code)
	if err != nil {
		return response{}, err
	}
	if !right {
		f.fail("code", wrongCode)
		return invalid(accountpage.SecondStepPage(accountpage.SecondStep{Draft: f.draft(), Next: next})), nil
	}
	return req.finishLogin(user, "password and code", next)
}

// confirmPage is the password confirmation.
func (s *Site) confirmPage(req *request) (response, error) {
	view, err := req.confirmForm(component.Draft{}, localPath(req.query("next")))
	return show(view), err
}

func (req *request) confirmForm(d component.Draft, next string) (templ.Component, error) {
	_, err := req.userStore().Factor(req.context)
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return nil, err
	}
	return accountpage.AgainPage(accountpage.Again{Draft: d, Frame: req.frame("Confirm", ""), Next: next, NeedsCode: err == nil}), nil
}

func (s *Site) confirm(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	next := localPath(f.raw("next"))
	account, right, err := req.confirmPassword(f.raw("password"))
	if err != nil {
		return response{}, err
	}
	if !right {
		f.fail("password", "Wrong password.")
	} else if account.HasFactor {
		if right, err = req.checkCode(req.sessionProof("code"), f.text("code")); err != nil {
			return response{}, err
		}
		if !right {
			f.fail("code", wrongCode)
		}
	}
	if !f.ok() {
		view, err := req.confirmForm(f.draft(), next)
		return invalid(view), err
	}
	if err := s.sessions.RenewToken(req.context); err != nil {
		return response{}, err
	}
	req.markReauthenticated()
	if next == "/" {
		next = "/o"
	}
	return redirect(next), nil
}

func (s *Site) logout(req *request) (response, error) {
	req.logAccount("signed out", req.user.ID)
	if err := req.signOut(); err != nil {
		return response{}, err
	}
	return redirect("/login?left=1"), nil
}
