package developers

import (
	"crypto/rand"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/mail"
	"purser/store/people"
	"purser/tenancy"
	keyspage "purser/views/page/keys"
	"purser/web/site"
)

const dayInMilliseconds = 24 * 60 * 60 * 1000

// newKey offers the preset of the link, if the member may grant it.
func (s *Pages) newKey(req *site.Request) (site.Response, error) {
	preset, err := keys.ParsePreset(req.Query("preset"))
	if err != nil || !preset.Permissions().Minus(req.Member.Permissions()).IsEmpty() {
		preset = keys.Ingestion
	}
	return site.Show(keyspage.NewAPIKey(keyForm(req, ids.New(), req.Query("from"), keyspage.KeyValues{Preset: string(preset), Lifetime: suggestedLifetime(preset)}))), nil
}

// suggestedLifetime is shorter for a key with full access. A key that never expires is
// chosen by hand.
func suggestedLifetime(preset keys.Preset) string {
	if preset == keys.Setup {
		return "90d"
	}
	return "365d"
}

// originPage is the page to return to, given as a keyword and never as a URL; "" for the
// list of keys.
func originPage(req *site.Request, word string) string {
	if word != fromQuickstart {
		return ""
	}
	return req.AppPath("quickstart")
}

// createKey creates the key and shows its secret in this response, the only one that
// contains it. A resubmitted form finds the existing key and shows no secret.
func (s *Pages) createKey(req *site.Request) (site.Response, error) {
	f := req.Form
	number, ok := site.ParseFormID(ids.APIKey, f.Raw("id"))
	if !ok {
		return site.Response{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Open it again from the list of keys.")
	}
	id := site.IDFor(req.App.ID, number)
	spec := keySpec(req, f, id)
	if !f.OK() {
		form := keyForm(req, number, f.Text("from"), keyspage.KeyValues{
			Name: f.Text("name"), Preset: f.Text("preset"), Permissions: f.List("permissions"), Lifetime: f.Text("lifetime"),
		})
		form.Problems = f.Problems
		return site.Invalid(keyspage.NewAPIKey(form)), nil
	}
	key, secret, err := keys.New(spec, req.Member.Permissions(), req.Site.Now(), rand.Reader)
	if err != nil {
		return site.Response{}, err
	}
	mails, err := noticeKey(req, key)
	if err != nil {
		return site.Response{}, err
	}
	err = req.Tenant().CreateKey(req.Context, key, mails...)
	if fault.Is(err, fault.AlreadyExists) {
		return alreadyCreated(req, id)
	}
	if err != nil {
		return site.Response{}, err
	}
	return site.ShowOnce(keyspage.NewSecret(keyspage.KeySecret{
		Frame: req.Frame(key.Name, "keys"), Base: req.AppPath("keys"), Key: key, Secret: secret, Back: originPage(req, f.Text("from")),
	})), nil
}

// keySpec parses the form. Permissions checked before another preset was chosen are
// ignored.
func keySpec(req *site.Request, f *site.Form, id ids.ID) keys.Spec {
	spec := keys.Spec{ID: id, App: req.App, CreatedBy: req.User.ID}
	var err error
	spec.Name, err = tenancy.ParseName(f.Text("name"))
	f.Check("name", err)
	spec.Preset = site.Choice(f, "preset", keys.Presets()...)
	if spec.Preset == keys.Custom {
		spec.Custom, err = tenancy.ParsePermissions(f.List("permissions"))
		f.Check("permissions", err)
		if spec.Custom.IsEmpty() {
			f.Fail("permissions", "Select at least one permission, or choose another access level.")
		}
	}
	lifetimes := map[string]int64{}
	var values []string
	for _, l := range keyspage.Lifetimes() {
		lifetimes[l.Value] = l.Days
		values = append(values, l.Value)
	}
	if days := lifetimes[site.Choice(f, "lifetime", values...)]; days > 0 {
		spec.ExpiresAt = req.Site.Now() + days*dayInMilliseconds
	}
	return spec
}

func keyForm(req *site.Request, id ids.ID, from string, values keyspage.KeyValues) keyspage.KeyForm {
	return keyspage.KeyForm{
		Frame: req.Frame("New API key", "keys"), Base: req.AppPath("keys"), ID: id.Format(ids.APIKey),
		Maker: req.Member.Permissions(), Values: values, From: from, Back: originPage(req, from),
	}
}

// alreadyCreated responds to a resubmitted form.
func alreadyCreated(req *site.Request, id ids.ID) (site.Response, error) {
	key, err := req.Tenant().Key(req.Context, id)
	if err != nil {
		return site.Response{}, err
	}
	return site.Conflict(keyspage.AlreadyCreated(keyspage.KeyMadeBefore{
		Frame: req.Frame(key.Name, "keys"), Base: req.AppPath("keys"), Key: key,
	})), nil
}

// noticeKey makes the notices of a new API key: to the member who creates it, and to the
// owners of the organization.
func noticeKey(req *site.Request, key keys.APIKey) ([]people.Mail, error) {
	if req.Site.Mail == nil {
		return nil, nil
	}
	roster, err := req.Organization().Roster(req.Context)
	if err != nil {
		return nil, err
	}
	to := []string{req.User.Email}
	for _, m := range roster {
		if m.Role == tenancy.Owner && m.UserID != req.User.ID && len(to) < maxKeyNotices {
			to = append(to, m.Email)
		}
	}
	letter := mail.KeyLetter(key.Name, req.App.Name, req.Org.Name, req.User.Email, req.Site.Server.Address+req.AppPath("keys"), req.Where())
	return req.LimitedNotices(letter, to...)
}

// maxKeyNotices is how many people are mailed about a new key at most.
const maxKeyNotices = 20
