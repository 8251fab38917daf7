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
	"purser/views/page"
)

// How long somebody who gave the password may take to find the authenticator.
const codeWithin = 10 * time.Minute

// One sentence for every way in which a sign-in fails, so that it tells nothing
// about who has an account.
const notThese = "Wrong email or password."

func (s *Site) loginPage(v *visit) (answer, error) {
	if v.isSignedIn() {
		return redirect("/o"), nil
	}
	founded, err := s.isFounded(v.context)
	return show(page.LoginPage(page.Login{Next: localPath(v.query("next")), SignedOut: v.query("left") != "", NotSetUp: !founded})), err
}

func (s *Site) login(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	next := localPath(f.raw("next"))
	account, right, err := v.checkPassword(f.text("email"), f.raw("password"))
	if err != nil {
		return answer{}, err
	}
	if !right {
		f.fail("", notThese)
		return invalid(page.LoginPage(page.Login{Draft: f.draft("email"), Next: next})), nil
	}
	if account.HasFactor {
		return v.askForCode(account.UserID, next)
	}
	return v.enter(account.UserID, "password", next)
}

// checkPassword counts the attempt, then compares. An address without an account costs
// the same reads and the same hash as one with.
func (v *visit) checkPassword(typed, password string) (account store.Account, right bool, err error) {
	email, err := tenancy.ParseEmail(typed)
	if err != nil {
		email = strings.ToLower(typed) // no account has it, and it is counted all the same
	}
	account, err = v.site.store.Auth().Account(v.context, email)
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return account, false, err
	}
	from := v.deviceOf(account.UserID)
	p := proof{step: "password", user: account.UserID, known: from != ""}
	if !p.known {
		from = siteOf(v.bearer.address).String()
		p.address = credential.AddressSubject(email, account.ChangedAt, v.site.now())
	}
	p.subject = credential.PasswordSubject(email, account.ChangedAt, from)
	right, err = v.provePassword(p, &account, password)
	return account, right, err
}

// confirmPassword compares the password of who is signed in. Attempts count for the
// session: strangers cannot use them up, and a stolen session cannot guess on.
func (v *visit) confirmPassword(password string) (account store.Account, right bool, err error) {
	account, err = v.site.store.Auth().Account(v.context, v.user.Email)
	if err != nil {
		return account, false, err
	}
	right, err = v.provePassword(v.sessionProof("password"), &account, password)
	return account, right, err
}

// sessionProof is an attempt within the session. Each step has a count of its own: the
// right password must not forget wrong codes.
func (v *visit) sessionProof(step string) proof {
	return proof{step: "session " + step, user: v.user.ID, known: true, subject: credential.SessionSubject(v.bearer.token, step)}
}

// checkCounted enters the queue of password checks, counts the attempt and compares. An
// attempt that finds the queue full is not counted by account: nothing was checked.
func (v *visit) checkCounted(p proof, password, encoded string) (right, outdated bool, err error) {
	if err := v.attemptFromNetwork(p); err != nil {
		return false, false, err
	}
	leave, err := v.site.passwords.enter(v.context, p.known)
	if err != nil {
		return false, false, err
	}
	defer leave()
	if err := v.countAttempt(p); err != nil {
		return false, false, err
	}
	return credential.Check(password, encoded)
}

// provePassword counts the attempt and compares. A temporary password that has expired
// is a wrong one. A hash that is replaced by a costlier one is replaced in account too.
func (v *visit) provePassword(p proof, account *store.Account, password string) (right bool, err error) {
	if account.UserID.IsZero() {
		account.Encoded = credential.Dummy
	}
	right, outdated, err := v.checkCounted(p, password, account.Encoded)
	switch {
	case err != nil:
		return false, err
	case !right || account.UserID.IsZero():
		v.refused(p, "wrong password")
		return false, nil
	case account.Expired(v.site.now()):
		v.refused(p, "temporary password expired")
		return false, nil
	}
	if outdated {
		encoded, err := v.site.passwords.hash(v.context, password, p.known)
		if err != nil {
			return false, err
		}
		if err := v.site.store.User(account.UserID).RehashPassword(v.context, account.Encoded, encoded); err != nil {
			return false, err
		}
		account.Encoded = encoded
	}
	return true, v.succeeded(p)
}

// enter signs in with the given factors and goes on.
func (v *visit) enter(user ids.ID, factors, next string) (answer, error) {
	if err := v.signInHere(user); err != nil {
		return answer{}, err
	}
	v.logAccount("signed in", user, "factors", factors)
	if next == "/" {
		next = "/o"
	}
	return redirect(next), nil
}

// logAccount logs what happened to an account.
func (v *visit) logAccount(event string, user ids.ID, more ...any) {
	v.site.log.Info(event, append([]any{"request", v.requestID(), "address", v.bearer.address, "user", user.Format(ids.User)}, more...)...)
}

// askForCode remembers who has given the password. They are not signed in yet, and
// whoever was signed in here is not any more: this password must not pass for theirs.
func (v *visit) askForCode(user ids.ID, next string) (answer, error) {
	if err := v.forgetSession(); err != nil {
		return answer{}, err
	}
	v.put(sessionAwaiting, user.Format(ids.User))
	v.prove()
	return redirect("/login/code?" + url.Values{"next": {next}}.Encode()), nil
}

// awaited is who has given the password some minutes ago and still owes a code.
func (v *visit) awaited() (user ids.ID, waiting bool) {
	m := v.site.sessions
	user, err := ids.Parse(ids.User, m.GetString(v.context, sessionAwaiting))
	age := v.site.now() - m.GetInt64(v.context, sessionProvenAt)
	return user, err == nil && age >= 0 && age <= codeWithin.Milliseconds()
}

func (s *Site) codePage(v *visit) (answer, error) {
	if _, waiting := v.awaited(); !waiting {
		return redirect("/login"), nil
	}
	return show(page.SecondStepPage(page.SecondStep{Next: localPath(v.query("next"))})), nil
}

func (s *Site) loginCode(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	user, waiting := v.awaited()
	if !waiting {
		return redirect("/login"), nil
	}
	next := localPath(f.raw("next"))
	device := v.deviceOf(user)
	code := f.text("code")
	p := proof{step: "code", user: user, known: device != "", subject: credential.CodeSubject(user.Format(ids.User), device)}
	if credential.ParseRecoveryCode(code) != "" && !p.known {
		p.subject = credential.RecoverySubject(user.Format(ids.User), siteOf(v.bearer.address).String())
	}
	right, err := v.checkCode(p, code)
	if err != nil {
		return answer{}, err
	}
	if !right {
		f.fail("code", wrongCode)
		return invalid(page.SecondStepPage(page.SecondStep{Draft: f.draft(), Next: next})), nil
	}
	return v.enter(user, "password and code", next)
}

// confirmPage asks for the password again.
func (s *Site) confirmPage(v *visit) (answer, error) {
	view, err := v.again(page.Draft{}, localPath(v.query("next")))
	return show(view), err
}

func (v *visit) again(d page.Draft, next string) (templ.Component, error) {
	_, err := v.person().Factor(v.context)
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return nil, err
	}
	return page.AgainPage(page.Again{Draft: d, Frame: v.frame("Confirm", ""), Next: next, NeedsCode: err == nil}), nil
}

func (s *Site) confirm(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	next := localPath(f.raw("next"))
	account, right, err := v.confirmPassword(f.raw("password"))
	if err != nil {
		return answer{}, err
	}
	if !right {
		f.fail("password", "Wrong password.")
	} else if account.HasFactor {
		if right, err = v.checkCode(v.sessionProof("code"), f.text("code")); err != nil {
			return answer{}, err
		}
		if !right {
			f.fail("code", wrongCode)
		}
	}
	if !f.ok() {
		view, err := v.again(f.draft(), next)
		return invalid(view), err
	}
	if err := s.sessions.RenewToken(v.context); err != nil {
		return answer{}, err
	}
	v.prove()
	if next == "/" {
		next = "/o"
	}
	return redirect(next), nil
}

func (s *Site) logout(v *visit) (answer, error) {
	v.logAccount("signed out", v.user.ID)
	if err := v.signOut(); err != nil {
		return answer{}, err
	}
	return redirect("/login?left=1"), nil
}
