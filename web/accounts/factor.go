package accounts

import (
	"crypto/rand"
	"encoding/base64"
	"strings"

	"purser/fault"
	"purser/ids"
	"purser/mail"
	"purser/store/people"
	"purser/tenancy/credential"
	"purser/tenancy/vault"
	"purser/views/component"
	accountpage "purser/views/page/account"
	"purser/web/site"
)

const wrongCode = "Wrong or already used code. Wait for the next one and try again."

// checkCode counts the attempt, then checks a TOTP or recovery code. Each is accepted
// once.
func (s *Pages) checkCode(req *site.Request, p proof, code string) (right bool, err error) {
	if err := s.admitAttempt(req, p); err != nil {
		return false, err
	}
	person := req.Site.Store.User(p.user)
	factor, err := person.Factor(req.Context)
	if err != nil {
		return false, err
	}
	if recovery := credential.ParseRecoveryCode(code); recovery != "" {
		// A recovery code must work even if the seed cannot be unsealed.
		if right, err = person.UseRecoveryCode(req.Context, recovery.Hash()); right {
			req.LogAccount("recovery code used", p.user)
		}
	} else {
		right, err = checkStep(req, person, p.user, factor, code)
	}
	if err != nil {
		return false, err
	}
	if !right {
		s.logRefusal(req, p, "wrong code")
		return false, nil
	}
	return true, clearAttempts(req, p)
}

func checkStep(req *site.Request, person people.User, user ids.ID, factor people.Factor, code string) (right bool, err error) {
	seed, err := req.Site.Vault.Open(vault.SeedOf(user), factor.SealedSeed)
	if err != nil {
		return false, err
	}
	step, found := credential.Seed(seed).Step(code, factor.LastStep, req.Site.Now())
	if !found {
		return false, nil
	}
	return person.UseStep(req.Context, step)
}

// factorPage shows a new seed. It is not stored yet: the form returns it, sealed for
// this user.
func (s *Pages) factorPage(req *site.Request) (site.Response, error) {
	seed, err := credential.NewSeed(rand.Reader)
	if err != nil {
		return site.Response{}, err
	}
	view, err := factorSetup(req, component.Draft{}, seed, site.LocalPath(req.Query("next")))
	return site.Show(view), err
}

func (s *Pages) addFactor(req *site.Request) (site.Response, error) {
	f := req.Form
	sealed, err := base64.StdEncoding.DecodeString(f.Raw("seed"))
	if err != nil {
		return site.Response{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Start again from your account.")
	}
	seed, err := s.Vault.Open(vault.SeedOf(req.User.ID), sealed)
	if err != nil {
		return site.Response{}, fault.Newf(fault.InvalidRequest, "This form has expired. Start again from your account.")
	}
	step, found := credential.Seed(seed).Step(f.Text("code"), 0, s.Now())
	if !found {
		f.Fail("code", "Wrong code. Check that your device's clock is right, then enter the current code.")
		view, err := factorSetup(req, f.Draft(), seed, site.LocalPath(f.Raw("next")))
		return site.Invalid(view), err
	}
	// The form may have been sealed with the previous key.
	if sealed, err = s.Vault.Seal(vault.SeedOf(req.User.ID), seed); err != nil {
		return site.Response{}, err
	}
	codes, hashes, err := newRecoveryCodes()
	if err != nil {
		return site.Response{}, err
	}
	mails, err := req.LimitedNotices(mail.FactorLetter("Two-factor was turned on for your Purser account.", req.Where()), req.User.Email)
	if err != nil {
		return site.Response{}, err
	}
	by := req.Actor()
	err = req.UserStore().AddFactor(req.Context, people.Factor{SealedSeed: sealed, LastStep: step}, hashes, req.Bearer.Token, by, mails...)
	if fault.Is(err, fault.AlreadyExists) { // such as by the same form, whose page with the codes was lost
		return req.Done("/account", "Two-factor is already on. If you don't have its recovery codes, generate new ones.")
	}
	if err != nil {
		return site.Response{}, err
	}
	if err := rememberDevice(req, req.User.ID, deviceOf(req, req.User.ID, req.PasswordAt, 0), req.PasswordAt, by.At); err != nil {
		return site.Response{}, err
	}
	req.LogAccount("authenticator added", req.User.ID)
	return showRecoveryCodes(req, codes, site.LocalPath(f.Raw("next")), false)
}

// replaceCodes creates new recovery codes and invalidates the old ones.
func (s *Pages) replaceCodes(req *site.Request) (site.Response, error) {
	if _, err := req.UserStore().Factor(req.Context); err != nil {
		return site.Response{}, err
	}
	codes, hashes, err := newRecoveryCodes()
	if err != nil {
		return site.Response{}, err
	}
	mails, err := req.LimitedNotices(mail.FactorLetter("The recovery codes of your Purser account were replaced.", req.Where()), req.User.Email)
	if err != nil {
		return site.Response{}, err
	}
	if err := req.UserStore().ReplaceRecoveryCodes(req.Context, hashes, req.Bearer.Token, req.Actor(), mails...); err != nil {
		return site.Response{}, err
	}
	req.LogAccount("recovery codes replaced", req.User.ID)
	return showRecoveryCodes(req, codes, "/", true)
}

func (s *Pages) removeFactor(req *site.Request) (site.Response, error) {
	mails, err := req.LimitedNotices(mail.FactorLetter("Two-factor was turned off for your Purser account.", req.Where()), req.User.Email)
	if err != nil {
		return site.Response{}, err
	}
	if err := req.UserStore().RemoveFactor(req.Context, req.Bearer.Token, req.Actor(), mails...); err != nil {
		return site.Response{}, err
	}
	req.LogAccount("authenticator removed", req.User.ID)
	return req.Done("/account", "Two-factor is off.")
}

func newRecoveryCodes() (codes []credential.Token, hashes []credential.Hash, err error) {
	codes, err = credential.NewRecoveryCodes(rand.Reader)
	for _, code := range codes {
		hashes = append(hashes, code.Hash())
	}
	return codes, hashes, err
}

// showRecoveryCodes responds with the codes directly: a redirect would require storing
// them.
func showRecoveryCodes(req *site.Request, codes []credential.Token, next string, replaced bool) (site.Response, error) {
	if next == "/" {
		next = "/account"
	}
	var lines []string
	for _, code := range codes {
		lines = append(lines, string(code))
	}
	return site.ShowOnce(accountpage.RecoveryCodesPage(accountpage.RecoveryCodes{
		Frame: req.Frame("Recovery codes", ""), Codes: strings.Join(lines, "\n"), Next: next, Replaced: replaced,
	})), nil
}
