package web

import (
	"encoding/base64"

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

func (s *Site) account(req *request) (response, error) {
	view, err := accountPage(req, component.Draft{Values: map[string]string{"name": req.user.Name}}, component.Draft{})
	return show(view), err
}

func accountPage(req *request, rename, password component.Draft) (templ.Component, error) {
	sessions, current, err := req.userStore().Sessions(req.context, req.bearer.token, req.site.now())
	if err != nil {
		return nil, err
	}
	factor, err := req.userStore().Factor(req.context)
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return nil, err
	}
	a := accountpage.Account{
		Frame: req.frame("Your account", ""), Rename: rename, Password: password,
		HasFactor: err == nil, CodesLeft: factor.CodesLeft,
	}
	if a.Mail, err = mailChoices(req); err != nil {
		return nil, err
	}
	for _, session := range sessions {
		a.Sessions = append(a.Sessions, accountpage.OpenSession{
			ID: session.ID.Format(ids.Session), Agent: session.Agent, Address: session.Address,
			SeenAt: session.SeenAt, Since: session.CreatedAt, Current: session.ID == current,
		})
	}
	return accountpage.AccountPage(a), nil
}

func (s *Site) renameAccount(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	name, err := tenancy.ParseName(f.text("name"))
	if err := f.check("name", err); err != nil {
		return response{}, err
	}
	if !f.ok() {
		view, err := accountPage(req, f.draft("name"), component.Draft{})
		return invalid(view), err
	}
	if err := req.userStore().Rename(req.context, name); err != nil {
		return response{}, err
	}
	return req.done("/account", "Name saved.")
}

// passwordPage is the only page that a session with a temporary password may open.
func (s *Site) passwordPage(req *request) (response, error) {
	return show(passwordForm(req, component.Draft{})), nil
}

func passwordForm(req *request, d component.Draft) templ.Component {
	return accountpage.PasswordPage(accountpage.Password{Draft: d, Frame: req.frame("Password", ""), Temporary: req.mustChange})
}

// changePassword requires the current password, so it needs no reauthentication.
func (s *Site) changePassword(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	if err := f.check("password", checkChoice(req, f.raw("password"), req.user)); err != nil {
		return response{}, err
	}
	if f.ok() && f.raw("password") == f.raw("current") {
		f.fail("password", "This is your current password. Choose a different one.")
	}
	var account people.Account
	if f.ok() {
		var right bool
		account, right, err = s.confirmPassword(req, f.raw("current"))
		if err != nil {
			return response{}, err
		}
		if !right {
			f.fail("current", "Wrong password.")
		}
	}
	if !f.ok() && req.mustChange {
		return invalid(passwordForm(req, f.draft())), nil
	}
	if !f.ok() {
		view, err := accountPage(req, component.Draft{Values: map[string]string{"name": req.user.Name}}, f.draft())
		return invalid(view), err
	}
	encoded, err := s.passwords.hash(req.context, f.raw("password"), true)
	if err != nil {
		return response{}, err
	}
	mails, err := req.securityNotice(mail.PasswordLetter(req.where()))
	if err != nil {
		return response{}, err
	}
	// Before the session token is renewed: a session ended by a reset must stay ended.
	if err := req.userStore().ChangePassword(req.context, account.Encoded, encoded, req.bearer.token, req.actor(), mails...); err != nil {
		return response{}, err
	}
	if err := req.renewSession(); err != nil {
		return response{}, err
	}
	req.markReauthenticated()
	req.logAccount("password changed", req.user.ID)
	if req.mustChange {
		return req.done("/o", "Password changed.")
	}
	return req.done("/account", "Password changed. You are signed out everywhere else.")
}

func (s *Site) endSession(req *request) (response, error) {
	id, err := req.id("session", ids.Session)
	if err != nil {
		return response{}, err
	}
	if err := req.userStore().EndSession(req.context, id); err != nil {
		return response{}, err
	}
	return req.done("/account", "Session ended.")
}

func (s *Site) endOtherSessions(req *request) (response, error) {
	if err := req.userStore().EndOtherSessions(req.context, req.bearer.token); err != nil {
		return response{}, err
	}
	return req.done("/account", "All other sessions ended.")
}

// factorSetup shows a seed and seals it into the form.
func factorSetup(req *request, d component.Draft, seed credential.Seed, next string) (templ.Component, error) {
	sealed, err := req.site.vault.Seal(seedPlace(req.user.ID), seed)
	if err != nil {
		return nil, err
	}
	address := seed.Address("Purser", req.user.Email)
	picture, err := drawQR(address)
	if err != nil {
		return nil, err
	}
	setup := accountpage.FactorSetup{
		Draft: d, Frame: req.frame("Authenticator", ""), Seed: seed.Text(), Address: address, Picture: picture,
		Sealed: base64.StdEncoding.EncodeToString(sealed), Next: next,
	}
	for _, org := range req.orgs {
		if req.needsFactor(org) {
			setup.RequiredBy = append(setup.RequiredBy, org.Name)
		}
	}
	return accountpage.FactorSetupPage(setup), nil
}

// welcome redirects signed-in users to their organizations and shows others the start
// page.
func (s *Site) welcome(req *request) (response, error) {
	if req.isSignedIn() {
		return redirect("/o"), nil
	}
	setUp, err := s.isSetUp(req.context)
	return show(accountpage.Welcome(accountpage.Start{Server: s.server, NotSetUp: !setUp})), err
}
