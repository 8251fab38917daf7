package web

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
)

const wrongCode = "Wrong or already used code. Wait for the next one and try again."

// checkCode counts the attempt, then checks a TOTP or recovery code. Each is accepted
// once.
func (s *Site) checkCode(req *request, p proof, code string) (right bool, err error) {
	if err := s.admitAttempt(req, p); err != nil {
		return false, err
	}
	person := req.site.store.User(p.user)
	factor, err := person.Factor(req.context)
	if err != nil {
		return false, err
	}
	if recovery := credential.ParseRecoveryCode(code); recovery != "" {
		// A recovery code must work even if the seed cannot be unsealed.
		if right, err = person.UseRecoveryCode(req.context, recovery.Hash()); right {
			req.logAccount("recovery code used", p.user)
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

func checkStep(req *request, person people.User, user ids.ID, factor people.Factor, code string) (right bool, err error) {
	seed, err := req.site.vault.Open(seedPlace(user), factor.SealedSeed)
	if err != nil {
		return false, err
	}
	step, found := credential.Seed(seed).Step(code, factor.LastStep, req.site.now())
	if !found {
		return false, nil
	}
	return person.UseStep(req.context, step)
}

func seedPlace(user ids.ID) vault.Place { return vault.SeedOf(user) }

// factorPage shows a new seed. It is not stored yet: the form returns it, sealed for
// this user.
func (s *Site) factorPage(req *request) (response, error) {
	seed, err := credential.NewSeed(rand.Reader)
	if err != nil {
		return response{}, err
	}
	view, err := factorSetup(req, component.Draft{}, seed, localPath(req.query("next")))
	return show(view), err
}

func (s *Site) addFactor(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	sealed, err := base64.StdEncoding.DecodeString(f.raw("seed"))
	if err != nil {
		return response{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Start again from your account.")
	}
	seed, err := s.vault.Open(seedPlace(req.user.ID), sealed)
	if err != nil {
		return response{}, fault.Newf(fault.InvalidRequest, "This form has expired. Start again from your account.")
	}
	step, found := credential.Seed(seed).Step(f.text("code"), 0, s.now())
	if !found {
		f.fail("code", "Wrong code. Check that your device's clock is right, then enter the current code.")
		view, err := factorSetup(req, f.draft(), seed, localPath(f.raw("next")))
		return invalid(view), err
	}
	// The form may have been sealed with the previous key.
	if sealed, err = s.vault.Seal(seedPlace(req.user.ID), seed); err != nil {
		return response{}, err
	}
	codes, hashes, err := newRecoveryCodes()
	if err != nil {
		return response{}, err
	}
	mails, err := req.securityNotice(mail.FactorLetter("Two-factor was turned on for your Purser account.", req.where()))
	if err != nil {
		return response{}, err
	}
	err = req.userStore().AddFactor(req.context, people.Factor{SealedSeed: sealed, LastStep: step}, hashes, req.bearer.token, req.actor(), mails...)
	if err != nil {
		return response{}, err
	}
	req.logAccount("authenticator added", req.user.ID)
	return showRecoveryCodes(req, codes, localPath(f.raw("next")))
}

// replaceCodes creates new recovery codes and invalidates the old ones.
func (s *Site) replaceCodes(req *request) (response, error) {
	if _, err := req.userStore().Factor(req.context); err != nil {
		return response{}, err
	}
	codes, hashes, err := newRecoveryCodes()
	if err != nil {
		return response{}, err
	}
	mails, err := req.securityNotice(mail.FactorLetter("The recovery codes of your Purser account were replaced.", req.where()))
	if err != nil {
		return response{}, err
	}
	if err := req.userStore().ReplaceRecoveryCodes(req.context, hashes, req.actor(), mails...); err != nil {
		return response{}, err
	}
	req.logAccount("recovery codes replaced", req.user.ID)
	return showRecoveryCodes(req, codes, "/")
}

func (s *Site) removeFactor(req *request) (response, error) {
	mails, err := req.securityNotice(mail.FactorLetter("Two-factor was turned off for your Purser account.", req.where()))
	if err != nil {
		return response{}, err
	}
	if err := req.userStore().RemoveFactor(req.context, req.bearer.token, req.actor(), mails...); err != nil {
		return response{}, err
	}
	req.logAccount("authenticator removed", req.user.ID)
	return req.done("/account", "Two-factor is off.")
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
func showRecoveryCodes(req *request, codes []credential.Token, next string) (response, error) {
	if next == "/" {
		next = "/account"
	}
	var lines []string
	for _, code := range codes {
		lines = append(lines, string(code))
	}
	return show(accountpage.RecoveryCodesPage(accountpage.RecoveryCodes{Frame: req.frame("Recovery codes", ""), Codes: strings.Join(lines, "\n"), Next: next})), nil
}
