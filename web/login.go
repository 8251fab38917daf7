package web

import (
	"net/url"
	"strings"
	"time"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
	"purser/mail"
	"purser/store/people"
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
	return show(accountpage.LoginPage(accountpage.Login{Next: localPath(req.query("next")), SignedOut: req.query("left") != "", WasReset: req.query("reset") != "", NotSetUp: !setUp})), err
}

func (s *Site) login(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	next := localPath(f.raw("next"))
	account, right, err := s.checkPassword(req, f.text("email"), f.raw("password"))
	if err != nil {
		return response{}, err
	}
	if !right {
		f.fail("", loginFailed)
		return invalid(accountpage.LoginPage(accountpage.Login{Draft: f.draft("email"), Next: next})), nil
	}
	if account.HasFactor {
		return requireCode(req, account.UserID, next)
	}
	return finishLogin(req, account.UserID, "password", next)
}

// checkPassword counts the attempt, then compares. An email without an account costs the
// same reads and the same hash as one with.
func (s *Site) checkPassword(req *request, typed, password string) (account people.Account, right bool, err error) {
	email, err := tenancy.ParseEmail(typed)
	if err != nil {
		email = strings.ToLower(typed) // no account has it, but the attempt is counted
	}
	account, err = req.site.store.Auth().Account(req.context, email)
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return account, false, err
	}
	from := deviceOf(req, account.UserID)
	p := proof{step: "password", user: account.UserID, known: from != ""}
	if !p.known {
		from = siteOf(req.bearer.address).String()
		p.address = credential.AddressSubject(email, account.ChangedAt, req.site.now())
	}
	p.subject = credential.PasswordSubject(email, account.ChangedAt, from)
	right, err = s.provePassword(req, p, &account, password)
	return account, right, err
}

// confirmPassword checks the signed-in user's password. Attempts are counted per
// session: others cannot use them up, and a stolen session is limited.
func (s *Site) confirmPassword(req *request, password string) (account people.Account, right bool, err error) {
	account, err = req.site.store.Auth().Account(req.context, req.user.Email)
	if err != nil {
		return account, false, err
	}
	right, err = s.provePassword(req, sessionProof(req, "password"), &account, password)
	return account, right, err
}

// sessionProof is an attempt within the session. Each step has its own count: the right
// password must not clear wrong codes.
func sessionProof(req *request, step string) proof {
	return proof{step: "session " + step, user: req.user.ID, known: true, subject: credential.SessionSubject(req.bearer.token, step)}
}

// checkCounted enters the queue of password checks, counts the attempt and compares. An
// attempt refused by a full queue is not counted for the account: nothing was checked.
func (s *Site) checkCounted(req *request, p proof, password, encoded string) (right, outdated bool, err error) {
	if err := s.attemptFromNetwork(req, p); err != nil {
		return false, false, err
	}
	leave, err := s.passwords.enter(req.context, p.known)
	if err != nil {
		return false, false, err
	}
	defer leave()
	if err := s.countAttempt(req, p); err != nil {
		return false, false, err
	}
	return credential.Check(password, encoded)
}

// provePassword counts the attempt and compares. An expired temporary password counts as
// wrong. An outdated hash is replaced, in account too.
func (s *Site) provePassword(req *request, p proof, account *people.Account, password string) (right bool, err error) {
	if account.UserID.IsZero() {
		account.Encoded = credential.Dummy
	}
	right, outdated, err := s.checkCounted(req, p, password, account.Encoded)
	switch {
	case err != nil:
		return false, err
	case !right || account.UserID.IsZero():
		s.logRefusal(req, p, "wrong password")
		return false, nil
	case account.Expired(req.site.now()):
		s.logRefusal(req, p, "temporary password expired")
		return false, nil
	}
	if outdated {
		encoded, err := s.passwords.hash(req.context, password, p.known)
		if err != nil {
			return false, err
		}
		if err := req.site.store.User(account.UserID).RehashPassword(req.context, account.Encoded, encoded); err != nil {
			return false, err
		}
		account.Encoded = encoded
	}
	return true, clearAttempts(req, p)
}

// finishLogin signs in and redirects.
func finishLogin(req *request, user ids.ID, factors, next string) (response, error) {
	if err := noticeSignIn(req, user); err != nil {
		return response{}, err
	}
	if err := signInOnDevice(req, user); err != nil {
		return response{}, err
	}
	req.logAccount("signed in", user, "factors", factors)
	if next == "/" {
		next = "/o"
	}
	return redirect(next), nil
}

// requireCode asks for the second factor.
func requireCode(req *request, user ids.ID, next string) (response, error) {
	if err := req.awaitCode(user); err != nil {
		return response{}, err
	}
	return redirect("/login/code?" + url.Values{"next": {next}}.Encode()), nil
}

func (s *Site) codePage(req *request) (response, error) {
	if _, waiting := req.awaitingCode(codeTimeout); !waiting {
		return redirect("/login"), nil
	}
	return show(accountpage.SecondStepPage(accountpage.SecondStep{Next: localPath(req.query("next"))})), nil
}

func (s *Site) loginCode(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	user, waiting := req.awaitingCode(codeTimeout)
	if !waiting {
		return redirect("/login"), nil
	}
	next := localPath(f.raw("next"))
	device := deviceOf(req, user)
	code := f.text("code")
	p := proof{step: "code", user: user, known: device != "", subject: credential.CodeSubject(user.Format(ids.User), device)}
	if credential.ParseRecoveryCode(code) != "" && !p.known {
		p.subject = credential.RecoverySubject(user.Format(ids.User), siteOf(req.bearer.address).String())
	}
	right, err := s.checkCode(req, p, code)
	if err != nil {
		return response{}, err
	}
	if !right {
		f.fail("code", wrongCode)
		return invalid(accountpage.SecondStepPage(accountpage.SecondStep{Draft: f.draft(), Next: next})), nil
	}
	return finishLogin(req, user, "password and code", next)
}

// confirmPage is the password confirmation.
func (s *Site) confirmPage(req *request) (response, error) {
	view, err := confirmForm(req, component.Draft{}, localPath(req.query("next")))
	return show(view), err
}

func confirmForm(req *request, d component.Draft, next string) (templ.Component, error) {
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
	account, right, err := s.confirmPassword(req, f.raw("password"))
	if err != nil {
		return response{}, err
	}
	if !right {
		f.fail("password", "Wrong password.")
	} else if account.HasFactor {
		if right, err = s.checkCode(req, sessionProof(req, "code"), f.text("code")); err != nil {
			return response{}, err
		}
		if !right {
			f.fail("code", wrongCode)
		}
	}
	if !f.ok() {
		view, err := confirmForm(req, f.draft(), next)
		return invalid(view), err
	}
	if err := req.renewSession(); err != nil {
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

// noticeSignIn makes the notice of a sign-in from a browser that the account has not used
// before. It is written together with the session.
func noticeSignIn(req *request, user ids.ID) error {
	if req.site.mail == nil || deviceOf(req, user) != "" {
		return nil
	}
	profile, err := req.site.store.User(user).Profile(req.context)
	if err != nil {
		return err
	}
	req.bearer.mails, err = req.sealMails(mail.Security, mail.SignInLetter(req.where()), 0, profile.Email)
	return err
}
