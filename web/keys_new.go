package web

import (
	"crypto/rand"
	"crypto/sha256"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/tenancy"
	"purser/views/page"
)

const dayInMilliseconds = 24 * 60 * 60 * 1000

// newKey offers the preset that the link asks for, when the member may give it.
func (s *Site) newKey(v *visit) (answer, error) {
	preset, err := keys.ParsePreset(v.query("preset"))
	if err != nil || !preset.Permissions().Minus(v.member.Permissions()).IsEmpty() {
		preset = keys.Ingestion
	}
	return show(page.NewAPIKey(v.keyForm(ids.New(), v.query("from"), page.KeyValues{Preset: string(preset), Lifetime: "none"}))), nil
}

// cameFrom is the page to go back to, named by a word and never by an address. It is
// empty for who came from the list of keys.
func (v *visit) cameFrom(word string) string {
	if word != fromQuickstart {
		return ""
	}
	return v.appPath("quickstart")
}

// keyIDFor is the id of the key that a form creates. The form brings a number of
// its own, so that a form that is sent again finds its key; mixed with the
// application, it lets no browser choose the id of another application's key.
func keyIDFor(app, form ids.ID) ids.ID {
	sum := sha256.Sum256(append(app[:], form[:]...))
	id := form // its first bytes are the time, by which keys are listed
	id[7] = sum[0]
	copy(id[9:], sum[1:])
	return id
}

// createKey makes the key and shows its secret in this very reply, the only one
// that ever holds it. A form that is sent again finds the key made, and shows no
// secret.
func (s *Site) createKey(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	number, err := ids.Parse(ids.APIKey, f.raw("id"))
	if err != nil || number.IsZero() {
		return answer{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Open it again from the list of keys.")
	}
	id := keyIDFor(v.app.ID, number)
	spec, err := v.keySpec(f, id)
	if err != nil {
		return answer{}, err
	}
	if !f.ok() {
		form := v.keyForm(number, f.text("from"), page.KeyValues{
			Name: f.text("name"), Preset: f.text("preset"), Permissions: f.list("permissions"), Lifetime: f.text("lifetime"),
		})
		form.Problems = f.problems
		return invalid(page.NewAPIKey(form)), nil
	}
	key, secret, err := keys.New(spec, v.member.Permissions(), v.site.now(), rand.Reader)
	if err != nil {
		return answer{}, err
	}
	err = v.tenant().CreateKey(v.context, key)
	if fault.Is(err, fault.AlreadyExists) {
		return v.alreadyCreated(id)
	}
	if err != nil {
		return answer{}, err
	}
	return show(page.NewSecret(page.KeySecret{
		Frame: v.frame(key.Name, "keys"), Base: v.appPath("keys"), Key: key, Secret: secret, Back: v.cameFrom(f.text("from")),
	})), nil
}

// keySpec reads the form. Boxes that were ticked before another preset was chosen
// count for nothing.
func (v *visit) keySpec(f *form, id ids.ID) (spec keys.Spec, err error) {
	spec = keys.Spec{ID: id, App: v.app, CreatedBy: v.user.ID}
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
	for _, l := range page.Lifetimes() {
		lifetimes[l.Value] = l.Days
		values = append(values, l.Value)
	}
	if days := lifetimes[choice(f, "lifetime", values...)]; days > 0 {
		spec.ExpiresAt = v.site.now() + days*dayInMilliseconds
	}
	return spec, nil
}

func (v *visit) keyForm(id ids.ID, from string, values page.KeyValues) page.KeyForm {
	return page.KeyForm{
		Frame: v.frame("New API key", "keys"), Base: v.appPath("keys"), ID: id.Format(ids.APIKey),
		Maker: v.member.Permissions(), Values: values, From: from, Back: v.cameFrom(from),
	}
}

// alreadyCreated answers a form that was sent again.
func (v *visit) alreadyCreated(id ids.ID) (answer, error) {
	key, err := v.tenant().Key(v.context, id)
	if err != nil {
		return answer{}, err
	}
	return conflict(page.AlreadyCreated(page.KeyMadeBefore{
		Frame: v.frame(key.Name, "keys"), Base: v.appPath("keys"), Key: key,
	})), nil
}
