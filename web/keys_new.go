package web

import (
	"crypto/rand"
	"crypto/sha256"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/mail"
	"purser/store/people"
	"purser/tenancy"
	keyspage "purser/views/page/keys"
)

const dayInMilliseconds = 24 * 60 * 60 * 1000

// newKey offers the preset of the link, if the member may grant it.
func (s *Site) newKey(req *request) (response, error) {
	preset, err := keys.ParsePreset(req.query("preset"))
	if err != nil || !preset.Permissions().Minus(req.member.Permissions()).IsEmpty() {
		preset = keys.Ingestion
	}
	return show(keyspage.NewAPIKey(keyForm(req, ids.New(), req.query("from"), keyspage.KeyValues{Preset: string(preset), Lifetime: "none"}))), nil
}

// originPage is the page to return to, given as a keyword and never as a URL; "" for the
// list of keys.
func originPage(req *request, word string) string {
	if word != fromQuickstart {
		return ""
	}
	return req.appPath("quickstart")
}

// keyIDFor derives the id of the key that a form creates. The form carries an id, so
// that a resubmitted form finds its key; mixed with the application's id, a browser
// cannot choose the id of another application's key.
func keyIDFor(app, form ids.ID) ids.ID {
	sum := sha256.Sum256(append(app[:], form[:]...))
	id := form // its first bytes are the time, by which keys are sorted
	id[7] = sum[0]
	copy(id[9:], sum[1:])
	return id
}

// createKey creates the key and shows its secret in this response, the only one that
// contains it. A resubmitted form finds the existing key and shows no secret.
func (s *Site) createKey(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	number, err := ids.Parse(ids.APIKey, f.raw("id"))
	if err != nil || number.IsZero() {
		return response{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Open it again from the list of keys.")
	}
	id := keyIDFor(req.app.ID, number)
	spec, err := keySpec(req, f, id)
	if err != nil {
		return response{}, err
	}
	if !f.ok() {
		form := keyForm(req, number, f.text("from"), keyspage.KeyValues{
			Name: f.text("name"), Preset: f.text("preset"), Permissions: f.list("permissions"), Lifetime: f.text("lifetime"),
		})
		form.Problems = f.problems
		return invalid(keyspage.NewAPIKey(form)), nil
	}
	key, secret, err := keys.New(spec, req.member.Permissions(), req.site.now(), rand.Reader)
	if err != nil {
		return response{}, err
	}
	mails, err := noticeKey(req, key)
	if err != nil {
		return response{}, err
	}
	err = req.tenant().CreateKey(req.context, key, mails...)
	if fault.Is(err, fault.AlreadyExists) {
		return alreadyCreated(req, id)
	}
	if err != nil {
		return response{}, err
	}
	return show(keyspage.NewSecret(keyspage.KeySecret{
		Frame: req.frame(key.Name, "keys"), Base: req.appPath("keys"), Key: key, Secret: secret, Back: originPage(req, f.text("from")),
	})), nil
}

// keySpec parses the form. Permissions checked before another preset was chosen are
// ignored.
func keySpec(req *request, f *form, id ids.ID) (spec keys.Spec, err error) {
	spec = keys.Spec{ID: id, App: req.app, CreatedBy: req.user.ID}
	spec.Name, err = tenancy.ParseName(f.text("name"))
	if err := f.check("name", err); err != nil {
		return spec, err
	}
	spec.Preset = choice(f, "preset", keys.Presets()...)
	if spec.Preset == keys.Custom {
		spec.Custom, err = tenancy.ParsePermissions(f.list("permissions"))
		if err := f.check("permissions", err); err != nil {
			return spec, err
		}
		if spec.Custom.IsEmpty() {
			f.fail("permissions", "Select at least one permission, or choose another access level.")
		}
	}
	lifetimes := map[string]int64{}
	var values []string
	for _, l := range keyspage.Lifetimes() {
		lifetimes[l.Value] = l.Days
		values = append(values, l.Value)
	}
	if days := lifetimes[choice(f, "lifetime", values...)]; days > 0 {
		spec.ExpiresAt = req.site.now() + days*dayInMilliseconds
	}
	return spec, nil
}

func keyForm(req *request, id ids.ID, from string, values keyspage.KeyValues) keyspage.KeyForm {
	return keyspage.KeyForm{
		Frame: req.frame("New API key", "keys"), Base: req.appPath("keys"), ID: id.Format(ids.APIKey),
		Maker: req.member.Permissions(), Values: values, From: from, Back: originPage(req, from),
	}
}

// alreadyCreated responds to a resubmitted form.
func alreadyCreated(req *request, id ids.ID) (response, error) {
	key, err := req.tenant().Key(req.context, id)
	if err != nil {
		return response{}, err
	}
	return conflict(keyspage.AlreadyCreated(keyspage.KeyMadeBefore{
		Frame: req.frame(key.Name, "keys"), Base: req.appPath("keys"), Key: key,
	})), nil
}

// noticeKey makes the notices of a new API key: to the member who creates it, and to the
// owners of the organization.
func noticeKey(req *request, key keys.APIKey) ([]people.Mail, error) {
	if req.site.mail == nil {
		return nil, nil
	}
	roster, err := req.organization().Roster(req.context)
	if err != nil {
		return nil, err
	}
	to := []string{req.user.Email}
	for _, m := range roster {
		if m.Role == tenancy.Owner && m.UserID != req.user.ID && len(to) < maxKeyNotices {
			to = append(to, m.Email)
		}
	}
	letter := mail.KeyLetter(key.Name, req.app.Name, req.org.Name, req.user.Email, req.site.server.Address+req.appPath("keys"), req.where())
	return req.sealMails(mail.Security, letter, 0, to...)
}

// maxKeyNotices is how many people hear of a new key at most.
const maxKeyNotices = 20
