package web

import (
	"crypto/rand"
	"encoding/base64"
	"strings"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy/credential"
	"purser/tenancy/vault"
	"purser/views/page"
)

const wrongCode = "Wrong or already used code. Wait for the next one and try again."

// checkCode counts the attempt, then takes a code of the authenticator or a
// recovery code. Either works once.
func (v *visit) checkCode(p proof, code string) (right bool, err error) {
	if err := v.attempt(p); err != nil {
		return false, err
	}
	person := v.site.store.User(p.user)
	factor, err := person.Factor(v.context)
	if err != nil {
		return false, err
	}
	if recovery := credential.ParseRecoveryCode(code); recovery != "" {
		// For this the seed need not be readable: such a code is for when all else is lost.
		if right, err = person.UseRecoveryCode(v.context, recovery.Hash()); right {
			v.logAccount("recovery code used", p.user)
		}
	} else {
		right, err = v.checkStep(person, p.user, factor, code)
	}
	if err != nil {
		return false, err
	}
	if !right {
		v.refused(p, "wrong code")
		return false, nil
	}
	return true, v.succeeded(p)
}

func (v *visit) checkStep(person store.User, user ids.ID, factor store.Factor, code string) (right bool, err error) {
	seed, err := v.site.vault.Open(seedPlace(user), factor.SealedSeed)
	if err != nil {
		return false, err
	}
	step, found := credential.Seed(seed).Step(code, factor.LastStep, v.site.now())
	if !found {
		return false, nil
	}
	return person.UseStep(v.context, step)
}

func seedPlace(user ids.ID) vault.Place { return vault.SeedOf(user) }

// factorPage shows a new seed. It is kept nowhere yet: the form carries it back,
// sealed for this person.
func (s *Site) factorPage(v *visit) (answer, error) {
	seed, err := credential.NewSeed(rand.Reader)
	if err != nil {
		return answer{}, err
	}
	view, err := v.factorSetup(page.Draft{}, seed, localPath(v.query("next")))
	return show(view), err
}

func (s *Site) addFactor(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	sealed, err := base64.StdEncoding.DecodeString(f.raw("seed"))
	if err != nil {
		return answer{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Start again from your account.")
	}
	seed, err := s.vault.Open(seedPlace(v.user.ID), sealed)
	if err != nil {
		return answer{}, fault.Newf(fault.InvalidRequest, "This form has expired. Start again from your account.")
	}
	step, found := credential.Seed(seed).Step(f.text("code"), 0, s.now())
	if !found {
		f.fail("code", "Wrong code. Check that your device's clock is right, then enter the current code.")
		view, err := v.factorSetup(f.draft(), seed, localPath(f.raw("next")))
		return invalid(view), err
	}
	// The form may be older than the key that is in use by now.
	if sealed, err = s.vault.Seal(seedPlace(v.user.ID), seed); err != nil {
		return answer{}, err
	}
	codes, hashes, err := newRecoveryCodes()
	if err != nil {
		return answer{}, err
	}
	err = v.person().AddFactor(v.context, store.Factor{SealedSeed: sealed, LastStep: step}, hashes, v.bearer.token, v.actor())
	if err != nil {
		return answer{}, err
	}
	v.logAccount("authenticator added", v.user.ID)
	return v.showRecoveryCodes(codes, localPath(f.raw("next")))
}

// replaceCodes makes new recovery codes; the old ones end.
func (s *Site) replaceCodes(v *visit) (answer, error) {
	if _, err := v.person().Factor(v.context); err != nil {
		return answer{}, err
	}
	codes, hashes, err := newRecoveryCodes()
	if err != nil {
		return answer{}, err
	}
	if err := v.person().ReplaceRecoveryCodes(v.context, hashes, v.actor()); err != nil {
		return answer{}, err
	}
	v.logAccount("recovery codes replaced", v.user.ID)
	return v.showRecoveryCodes(codes, "/")
}

func (s *Site) removeFactor(v *visit) (answer, error) {
	if err := v.person().RemoveFactor(v.context, v.bearer.token, v.actor()); err != nil {
		return answer{}, err
	}
	v.logAccount("authenticator removed", v.user.ID)
	return v.done("/account", "Two-factor is off.")
}

func newRecoveryCodes() (codes []credential.Token, hashes []credential.Hash, err error) {
	codes, err = credential.NewRecoveryCodes(rand.Reader)
	for _, code := range codes {
		hashes = append(hashes, code.Hash())
	}
	return codes, hashes, err
}

// showRecoveryCodes answers with the codes themselves: after a redirect somebody
// would have to keep them.
func (v *visit) showRecoveryCodes(codes []credential.Token, next string) (answer, error) {
	if next == "/" {
		next = "/account"
	}
	var lines []string
	for _, code := range codes {
		lines = append(lines, string(code))
	}
	return show(page.RecoveryCodesPage(page.RecoveryCodes{Frame: v.frame("Recovery codes", ""), Codes: strings.Join(lines, "\n"), Next: next})), nil
}
