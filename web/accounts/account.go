package accounts

import (
	"encoding/base64"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
	"purser/mail"
	"purser/store/people"
	"purser/tenancy"
	"purser/tenancy/credential"
	"purser/tenancy/vault"
	"purser/views/component"
	accountpage "purser/views/page/account"
	"purser/web/site"
)

func (s *Pages) account(req *site.Request) (site.Response, error) {
	view, err := accountPage(req, component.Draft{Values: map[string]string{"name": req.User.Name}}, component.Draft{})
	return site.Show(view), err
}

func accountPage(req *site.Request, rename, password component.Draft) (templ.Component, error) {
	sessions, current, err := req.UserStore().Sessions(req.Context, req.Bearer.Token, req.Site.Now())
	if err != nil {
		return nil, err
	}
	factor, err := req.UserStore().Factor(req.Context)
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return nil, err
	}
	a := accountpage.Account{
		Frame: req.Frame("Your account", ""), Rename: rename, Password: password,
		HasFactor: err == nil, CodesLeft: factor.CodesLeft,
	}
	if a.Mail, err = mailChoices(req); err != nil {
		return nil, err
	}
	for _, org := range req.Orgs {
		if req.RequiresFactor(org) {
			a.RequiredBy = append(a.RequiredBy, org.Name)
		}
	}
	for _, session := range sessions {
		a.Sessions = append(a.Sessions, accountpage.OpenSession{
			ID: session.ID.Format(ids.Session), Agent: session.Agent, Address: session.Address,
			SeenAt: session.SeenAt, Since: session.CreatedAt, Current: session.ID == current,
		})
	}
	return accountpage.AccountPage(a), nil
}

func (s *Pages) renameAccount(req *site.Request) (site.Response, error) {
	f := req.Form
	name, err := tenancy.ParseName(f.Text("name"))
	f.Check("name", err)
	if !f.OK() {
		view, err := accountPage(req, f.Draft("name"), component.Draft{})
		return site.Invalid(view), err
	}
	if err := req.UserStore().Rename(req.Context, name, req.Actor()); err != nil {
		return site.Response{}, err
	}
	return req.Done("/account", "Name saved.")
}

// passwordPage is the only page that a session with a temporary password may open.
func (s *Pages) passwordPage(req *site.Request) (site.Response, error) {
	return site.Show(passwordForm(req, component.Draft{})), nil
}

func passwordForm(req *site.Request, d component.Draft) templ.Component {
	return accountpage.PasswordPage(accountpage.Password{Draft: d, Frame: req.Frame("Password", ""), Temporary: req.MustChange})
}

// changePassword requires the current password, so it needs no reauthentication.
func (s *Pages) changePassword(req *site.Request) (site.Response, error) {
	f := req.Form
	f.Check("password", checkChoice(req, f.Raw("password"), req.User, req.Orgs))
	if f.OK() && f.Raw("password") == f.Raw("current") {
		f.Fail("password", "This is your current password. Choose a different one.")
	}
	var account people.Account
	if f.OK() {
		var right bool
		var err error
		if account, right, err = s.confirmPassword(req, f.Raw("current")); err != nil {
			return site.Response{}, err
		}
		if !right {
			f.Fail("current", "Wrong password.")
		}
	}
	if !f.OK() && req.MustChange {
		return site.Invalid(passwordForm(req, f.Draft())), nil
	}
	if !f.OK() {
		view, err := accountPage(req, component.Draft{Values: map[string]string{"name": req.User.Name}}, f.Draft())
		return site.Invalid(view), err
	}
	encoded, err := s.passwords.hash(req.Context, f.Raw("password"), req.User.ID)
	if err != nil {
		return site.Response{}, err
	}
	mails, err := req.SealMails(mail.Security, mail.PasswordLetter(req.Where()), 0, req.User.Email)
	if err != nil {
		return site.Response{}, err
	}
	// Before the session token is renewed: a session ended by a reset must stay ended.
	by := req.Actor()
	if err := req.UserStore().ChangePassword(req.Context, account.Encoded, encoded, req.Bearer.Token, by, mails...); err != nil {
		return site.Response{}, err
	}
	device := deviceOf(req, req.User.ID, account.ChangedAt, account.FactorAt)
	if err := rememberDevice(req, req.User.ID, device, by.At, account.FactorAt); err != nil {
		return site.Response{}, err
	}
	if err := req.RenewSession(); err != nil {
		return site.Response{}, err
	}
	if account.FactorAt == 0 { // with one, /confirm asks for a code too
		req.MarkReauthenticated()
	}
	req.LogAccount("password changed", req.User.ID)
	if req.MustChange {
		return req.Done("/o", "Password changed.")
	}
	return req.Done("/account", "Password changed. You are signed out everywhere else.")
}

func (s *Pages) endSession(req *site.Request, id ids.ID) (site.Response, error) {
	if err := req.UserStore().EndSession(req.Context, id); err != nil {
		return site.Response{}, err
	}
	req.LogAccount("session ended", req.User.ID, "session", id.Format(ids.Session))
	return req.Done("/account", "Session ended.")
}

func (s *Pages) endOtherSessions(req *site.Request) (site.Response, error) {
	if err := req.UserStore().EndOtherSessions(req.Context, req.Bearer.Token); err != nil {
		return site.Response{}, err
	}
	req.LogAccount("all other sessions ended", req.User.ID)
	return req.Done("/account", "All other sessions ended.")
}

// factorSetup shows a seed and seals it into the form.
func factorSetup(req *site.Request, d component.Draft, seed credential.Seed, next string) (templ.Component, error) {
	sealed, err := req.Site.Vault.Seal(vault.SeedOf(req.User.ID), seed)
	if err != nil {
		return nil, err
	}
	address := seed.Address("Purser", req.User.Email)
	picture, err := drawQR(address)
	if err != nil {
		return nil, err
	}
	setup := accountpage.FactorSetup{
		Draft: d, Frame: req.Frame("Authenticator", ""), Seed: seed.Text(), Address: address, Picture: picture,
		Sealed: base64.StdEncoding.EncodeToString(sealed), Next: next,
	}
	for _, org := range req.Orgs {
		if req.NeedsFactor(org) {
			setup.RequiredBy = append(setup.RequiredBy, org.Name)
		}
	}
	return accountpage.FactorSetupPage(setup), nil
}

// welcome redirects signed-in users to their organizations and shows others the start
// page.
func (s *Pages) welcome(req *site.Request) (site.Response, error) {
	if req.IsSignedIn() {
		start, err := startPage(req, req.User.ID)
		return site.Redirect(start), err
	}
	setUp, err := s.isSetUp(req)
	return site.Show(accountpage.Welcome(accountpage.Start{Server: s.Server, NotSetUp: !setUp})), err
}
