package web

import (
	"encoding/base64"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/tenancy/credential"
	"purser/views/page"
)

func (s *Site) account(v *visit) (answer, error) {
	view, err := v.accountPage(page.Draft{Values: map[string]string{"name": v.user.Name}}, page.Draft{})
	return show(view), err
}

func (v *visit) accountPage(rename, password page.Draft) (templ.Component, error) {
	sessions, current, err := v.person().Sessions(v.context, v.bearer.token, v.site.now())
	if err != nil {
		return nil, err
	}
	factor, err := v.person().Factor(v.context)
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return nil, err
	}
	a := page.Account{
		Frame: v.frame("Your account", ""), Rename: rename, Password: password,
		HasFactor: err == nil, CodesLeft: factor.CodesLeft,
	}
	for _, session := range sessions {
		a.Sessions = append(a.Sessions, page.OpenSession{
			ID: session.ID.Format(ids.Session), Agent: session.Agent, Address: session.Address,
			SeenAt: session.SeenAt, Since: session.CreatedAt, Current: session.ID == current,
		})
	}
	return page.AccountPage(a), nil
}

func (s *Site) renameAccount(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	name, err := tenancy.ParseName(f.text("name"))
	if err := f.check("name", err); err != nil {
		return answer{}, err
	}
	if !f.ok() {
		view, err := v.accountPage(f.draft("name"), page.Draft{})
		return invalid(view), err
	}
	if err := v.person().Rename(v.context, name); err != nil {
		return answer{}, err
	}
	return v.done("/account", "Name saved.")
}

// passwordPage is where a temporary password leads, and nowhere else.
func (s *Site) passwordPage(v *visit) (answer, error) {
	return show(v.passwordForm(page.Draft{})), nil
}

func (v *visit) passwordForm(d page.Draft) templ.Component {
	return page.PasswordPage(page.Password{Draft: d, Frame: v.frame("Password", ""), Temporary: v.mustChange})
}

// changePassword asks for the old one, so it needs no fresh sign-in.
func (s *Site) changePassword(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	if err := f.check("password", v.checkChoice(f.raw("password"), v.user)); err != nil {
		return answer{}, err
	}
	if f.ok() && f.raw("password") == f.raw("current") {
		f.fail("password", "This is your current password. Choose a different one.")
	}
	var account store.Account
	if f.ok() {
		var right bool
		account, right, err = v.confirmPassword(f.raw("current"))
		if err != nil {
			return answer{}, err
		}
		if !right {
			f.fail("current", "Wrong password.")
		}
	}
	if !f.ok() && v.mustChange {
		return invalid(v.passwordForm(f.draft())), nil
	}
	if !f.ok() {
		view, err := v.accountPage(page.Draft{Values: map[string]string{"name": v.user.Name}}, f.draft())
		return invalid(view), err
	}
	encoded, err := s.passwords.hash(v.context, f.raw("password"), true)
	if err != nil {
		return answer{}, err
	}
	// Before the session has a new token: a reset may have ended it, and it must stay ended.
	if err := v.person().ChangePassword(v.context, account.Encoded, encoded, v.bearer.token, v.actor()); err != nil {
		return answer{}, err
	}
	if err := s.sessions.RenewToken(v.context); err != nil {
		return answer{}, err
	}
	v.prove()
	v.logAccount("password changed", v.user.ID)
	if v.mustChange {
		return v.done("/o", "Password changed.")
	}
	return v.done("/account", "Password changed. You are signed out everywhere else.")
}

func (s *Site) endSession(v *visit) (answer, error) {
	id, err := v.id("session", ids.Session)
	if err != nil {
		return answer{}, err
	}
	if err := v.person().EndSession(v.context, id); err != nil {
		return answer{}, err
	}
	return v.done("/account", "Session ended.")
}

func (s *Site) endOtherSessions(v *visit) (answer, error) {
	if err := v.person().EndOtherSessions(v.context, v.bearer.token); err != nil {
		return answer{}, err
	}
	return v.done("/account", "All other sessions ended.")
}

// factorSetup shows a seed, and seals it into the form.
func (v *visit) factorSetup(d page.Draft, seed credential.Seed, next string) (templ.Component, error) {
	sealed, err := v.site.vault.Seal(seedPlace(v.user.ID), seed)
	if err != nil {
		return nil, err
	}
	address := seed.Address("Purser", v.user.Email)
	picture, err := drawQR(address)
	if err != nil {
		return nil, err
	}
	setup := page.FactorSetup{
		Draft: d, Frame: v.frame("Authenticator", ""), Seed: seed.Text(), Address: address, Picture: picture,
		Sealed: base64.StdEncoding.EncodeToString(sealed), Next: next,
	}
	for _, org := range v.orgs {
		if v.needsFactor(org) {
			setup.RequiredBy = append(setup.RequiredBy, org.Name)
		}
	}
	return page.FactorSetupPage(setup), nil
}
