package accounts

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
	"purser/mail"
	"purser/store/people"
	"purser/tenancy"
	"purser/tenancy/credential"
	"purser/views/component"
	accountpage "purser/views/page/account"
	"purser/web/site"
)

// loginFailed is the one message for every failed sign-in, so that it does not reveal
// who has an account.
const loginFailed = "Wrong email or password."

func (s *Pages) loginPage(req *site.Request) (site.Response, error) {
	if req.IsSignedIn() {
		return goOn(req, req.User.ID, site.LocalPath(req.Query("next")))
	}
	setUp, err := s.isSetUp(req)
	return site.Show(accountpage.LoginPage(accountpage.Login{Next: site.LocalPath(req.Query("next")), SignedOut: req.Query("left") != "", WasReset: req.Query("reset") != "", Repeat: req.Query(site.Repeat) != "", NotSetUp: !setUp})), err
}

func (s *Pages) login(req *site.Request) (site.Response, error) {
	f := req.Form
	next := site.LocalPath(f.Raw("next"))
	account, right, err := s.checkPassword(req, f.Text("email"), f.Raw("password"))
	if err != nil {
		return site.Response{}, err
	}
	if !right {
		f.Fail("", loginFailed)
		return site.Invalid(accountpage.LoginPage(accountpage.Login{Draft: f.Draft("email"), Next: next})), nil
	}
	if account.FactorAt != 0 {
		return requireCode(req, account, next)
	}
	return s.finishLogin(req, account.UserID, account.ChangedAt, 0, next)
}

// checkPassword counts the attempt, then compares. An email without an account costs the
// same reads and the same hash as one with.
func (s *Pages) checkPassword(req *site.Request, typed, password string) (account people.Account, right bool, err error) {
	email, err := tenancy.ParseEmail(typed)
	if err != nil {
		email = strings.ToLower(typed) // no account has it, but the attempt is counted
	}
	p := proof{step: "password"}
	if !hasDevice(req) { // before the account is read: only a device would not count
		if err := s.attemptFromNetwork(req, p); err != nil {
			return account, false, err
		}
		p.counted = true
	}
	err = req.Site.Lookups.Read(req.Context, site.Network(req.Bearer.Address), func(ctx context.Context) error {
		account, err = req.Site.Store.Auth().Account(ctx, email)
		return err
	})
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return account, false, err
	}
	from := deviceOf(req, account.UserID, account.ChangedAt, 0)
	p.user, p.known = account.UserID, from != ""
	if !p.known {
		from = site.Network(req.Bearer.Address).String()
		p.address = credential.AddressSubject(email, account.ChangedAt, req.Site.Now())
	}
	p.subject = credential.PasswordSubject(email, account.ChangedAt, from)
	right, err = s.provePassword(req, p, &account, password)
	return account, right, err
}

// confirmPassword checks the signed-in user's password. Attempts are counted per
// session: others cannot use them up, and a stolen session is limited.
func (s *Pages) confirmPassword(req *site.Request, password string) (account people.Account, right bool, err error) {
	account, err = req.Site.Store.Auth().Account(req.Context, req.User.Email)
	if err != nil {
		return account, false, err
	}
	right, err = s.provePassword(req, sessionProof(req, "password"), &account, password)
	return account, right, err
}

// sessionProof is an attempt within the session. Each step has its own count: the right
// password must not clear wrong codes. Nor must a new password, which renews the session's
// token: counts are by the form token, which stays.
func sessionProof(req *site.Request, step string) proof {
	return proof{step: "session " + step, user: req.User.ID, known: true, subject: credential.SessionSubject(req.FormToken(), step)}
}

// checkCounted enters the queue of password checks, counts the attempt and compares. An
// attempt refused by a full queue is not counted for the account: nothing was checked.
func (s *Pages) checkCounted(req *site.Request, p proof, password, encoded string) (right, outdated bool, err error) {
	if err := s.attemptFromNetwork(req, p); err != nil {
		return false, false, err
	}
	leave, err := s.passwords.enter(req.Context, p.knownUser())
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
func (s *Pages) provePassword(req *site.Request, p proof, account *people.Account, password string) (right bool, err error) {
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
	case account.Expired(req.Site.Now()):
		s.logRefusal(req, p, "temporary password expired")
		return false, nil
	}
	if outdated {
		encoded, err := s.passwords.hash(req.Context, password, p.knownUser())
		if err != nil {
			return false, err
		}
		if err := req.Site.Store.User(account.UserID).RehashPassword(req.Context, account.Encoded, encoded); err != nil {
			return false, err
		}
		account.Encoded = encoded
	}
	return true, clearAttempts(req, p)
}

// finishLogin signs in and redirects. A sign-in whose password or authenticator was
// replaced meanwhile opens no session, and is logged as refused. FactorAt is when the
// authenticator was added whose code was entered; zero for a sign-in by password alone.
func (s *Pages) finishLogin(req *site.Request, user ids.ID, passwordAt, factorAt int64, next string) (site.Response, error) {
	if err := noticeSignIn(req, user, passwordAt, factorAt); err != nil {
		return site.Response{}, err
	}
	if err := signInOnDevice(req, user, passwordAt, factorAt); err != nil {
		return site.Response{}, err
	}
	factors := "password"
	if factorAt != 0 {
		factors = "password and code"
	}
	req.Bearer.AfterSave = func(saved bool) {
		if !saved {
			s.logRefusal(req, proof{step: "session", user: user}, "password or authenticator was replaced meanwhile")
			return
		}
		req.LogAccount("signed in", user, "factors", factors)
	}
	return goOn(req, user, next)
}

// goOn leads a user who is signed in to the page that they came for, or to the start.
func goOn(req *site.Request, user ids.ID, next string) (site.Response, error) {
	if next != "/" {
		return site.Redirect(next), nil
	}
	start, err := startPage(req, user)
	return site.Redirect(start), err
}

// loginAgain leads to the sign-in, which keeps the page to go on with.
func loginAgain(next string) site.Response {
	if next == "/" {
		return site.Redirect("/login")
	}
	return site.Redirect("/login?" + url.Values{"next": {next}}.Encode())
}

// startPage is the overview of the only application in the user's only organization, or
// the closest list above it that the user may open. Archived ones do not count.
func startPage(req *site.Request, user ids.ID) (string, error) {
	account := req.Site.Store.User(user)
	around, err := account.PageContext(req.Context, "")
	if err != nil {
		return "", err
	}
	orgs := slices.DeleteFunc(around.Organizations, tenancy.Organization.IsArchived)
	if len(orgs) != 1 {
		return "/o", nil
	}
	if around, err = account.PageContext(req.Context, orgs[0].Slug); err != nil {
		return "", err
	}
	apps := slices.DeleteFunc(around.Applications, tenancy.Application.IsArchived)
	if len(apps) != 1 || !around.Member.Permissions().Has(tenancy.WalletsRead) {
		return site.PathOf([]string{"o", orgs[0].Slug}), nil
	}
	return site.PathOf([]string{"o", orgs[0].Slug, "a", apps[0].Slug}), nil
}

func (s *Pages) codePage(req *site.Request) (site.Response, error) {
	next := site.LocalPath(req.Query("next"))
	if _, _, waiting := awaitingCode(req); !waiting {
		return loginAgain(next), nil
	}
	return site.Show(accountpage.SecondStepPage(accountpage.SecondStep{Next: next})), nil
}

func (s *Pages) loginCode(req *site.Request) (site.Response, error) {
	f := req.Form
	next := site.LocalPath(f.Raw("next"))
	user, passwordAt, waiting := awaitingCode(req)
	if !waiting {
		return loginAgain(next), nil
	}
	account, err := req.Site.Store.User(user).PageContext(req.Context, "")
	if err != nil {
		return site.Response{}, err
	}
	if account.PasswordAt != passwordAt { // replaced since it was entered
		return loginAgain(next), nil
	}
	device := deviceOf(req, user, passwordAt, account.FactorAt)
	code := f.Text("code")
	p := proof{step: "code", user: user, known: device != "", subject: credential.CodeSubject(user.Format(ids.User), device)}
	if credential.ParseRecoveryCode(code) != "" && !p.known {
		p.subject = credential.RecoverySubject(user.Format(ids.User), site.Network(req.Bearer.Address).String())
	}
	right, err := s.checkCode(req, p, code)
	if err != nil {
		return site.Response{}, err
	}
	if !right {
		f.Fail("code", wrongCode)
		return site.Invalid(accountpage.SecondStepPage(accountpage.SecondStep{Draft: f.Draft(), Next: next})), nil
	}
	return s.finishLogin(req, user, passwordAt, account.FactorAt, next)
}

// confirmPage is the password confirmation.
func (s *Pages) confirmPage(req *site.Request) (site.Response, error) {
	view, err := confirmForm(req, component.Draft{}, site.LocalPath(req.Query("next")), req.Query(site.Repeat) != "")
	return site.Show(view), err
}

func confirmForm(req *site.Request, d component.Draft, next string, repeat bool) (templ.Component, error) {
	_, err := req.UserStore().Factor(req.Context)
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return nil, err
	}
	return accountpage.AgainPage(accountpage.Again{Draft: d, Frame: req.Frame("Confirm", ""), Next: next, Repeat: repeat, NeedsCode: err == nil}), nil
}

func (s *Pages) confirm(req *site.Request) (site.Response, error) {
	f := req.Form
	next, repeat := site.LocalPath(f.Raw("next")), f.Raw(site.Repeat) != ""
	account, right, err := s.confirmPassword(req, f.Raw("password"))
	if err != nil {
		return site.Response{}, err
	}
	if !right {
		f.Fail("password", "Wrong password.")
	} else if account.FactorAt != 0 {
		if right, err = s.checkCode(req, sessionProof(req, "code"), f.Text("code")); err != nil {
			return site.Response{}, err
		}
		if !right {
			f.Fail("code", wrongCode)
		}
	}
	if !f.OK() {
		view, err := confirmForm(req, f.Draft(), next, repeat)
		return site.Invalid(view), err
	}
	if err := req.RenewSession(); err != nil {
		return site.Response{}, err
	}
	req.MarkReauthenticated()
	if next == "/" {
		next = "/o"
	}
	if repeat {
		return req.Done(next, "You're confirmed. Nothing was changed yet: repeat the action.")
	}
	return site.Redirect(next), nil
}

func (s *Pages) logout(req *site.Request) (site.Response, error) {
	req.LogAccount("signed out", req.User.ID)
	if err := req.SignOut(); err != nil {
		return site.Response{}, err
	}
	return site.Redirect("/login?left=1"), nil
}

// noticeSignIn makes the notice of a sign-in from a browser that is not known. It is
// written together with the session.
func noticeSignIn(req *site.Request, user ids.ID, passwordAt, factorAt int64) error {
	if req.Site.Mail == nil || deviceOf(req, user, passwordAt, factorAt) != "" {
		return nil
	}
	profile, err := req.Site.Store.User(user).Profile(req.Context)
	if err != nil {
		return err
	}
	req.Bearer.Mails, err = req.SealMails(mail.Security, mail.SignInLetter(req.Where()), 0, profile.Email)
	return err
}
