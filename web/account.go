package web

import (
	"encoding/base64"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
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
	return v.done("/account", "Your name is saved.")
}

// changePassword asks for the old one, so it needs no fresh sign-in.
func (s *Site) changePassword(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	if err := f.check("password", credential.CheckChoice(f.raw("password"), v.user.Email, v.user.Name)); err != nil {
		return answer{}, err
	}
	if f.ok() {
		_, right, err := v.checkPassword(v.user.Email, f.raw("current"))
		if err != nil {
			return answer{}, err
		}
		if !right {
			f.fail("current", "This is not your password. Type it again.")
		}
	}
	if !f.ok() {
		view, err := v.accountPage(page.Draft{Values: map[string]string{"name": v.user.Name}}, f.draft())
		return invalid(view), err
	}
	encoded, err := s.passwords.hash(v.context, f.raw("password"))
	if err != nil {
		return answer{}, err
	}
	if err := s.sessions.RenewToken(v.context); err != nil {
		return answer{}, err
	}
	v.prove()
	if err := v.person().ChangePassword(v.context, encoded, s.now(), v.bearer.token); err != nil {
		return answer{}, err
	}
	return v.done("/account", "Your password is changed. You are signed out everywhere else.")
}

func (s *Site) endSession(v *visit) (answer, error) {
	id, err := v.id("session", ids.Session)
	if err != nil {
		return answer{}, err
	}
	if err := v.person().EndSession(v.context, id); err != nil {
		return answer{}, err
	}
	return v.done("/account", "That session has ended.")
}

func (s *Site) endOtherSessions(v *visit) (answer, error) {
	if err := v.person().EndOtherSessions(v.context, v.bearer.token); err != nil {
		return answer{}, err
	}
	return v.done("/account", "All other sessions have ended.")
}

// factorSetup shows a seed, and seals it into the form.
func (v *visit) factorSetup(d page.Draft, seed credential.Seed) (templ.Component, error) {
	sealed, err := v.site.vault.Seal(seedPlace(v.user.ID), seed)
	if err != nil {
		return nil, err
	}
	return page.FactorSetupPage(page.FactorSetup{
		Draft: d, Frame: v.frame("Authenticator", ""), Seed: seed.Text(),
		Address: seed.Address("Purser", v.user.Email), Sealed: base64.StdEncoding.EncodeToString(sealed),
	}), nil
}
