package web

import (
	"crypto/rand"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/views/page"
)

// rotateKey makes the replacement and shows its secret, as createKey does. A key
// is replaced once, so a form that is sent again makes nothing.
func (s *Site) rotateKey(v *visit) (answer, error) {
	old, err := v.key()
	if err != nil {
		return answer{}, err
	}
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	overlap := choice(f, "overlap", keys.Overlaps()...)
	if !f.ok() {
		detail, err := v.keyDetail(old)
		detail.Problems = f.problems
		return invalid(page.APIKey(detail)), err
	}
	rotation := keys.Rotation{ID: ids.New(), By: v.user.ID, Overlap: overlap}
	rotated, err := v.tenant().RotateKey(v.context, old.ID, func(old keys.APIKey) (keys.Rotated, error) {
		return keys.Rotate(old, rotation, v.member.Permissions(), v.site.now(), rand.Reader)
	})
	if fault.Is(err, fault.APIKeyNotRotatable) {
		return v.notRotatable(old.ID, err)
	}
	if err != nil {
		return answer{}, err
	}
	return show(page.NewSecret(page.KeySecret{
		Frame: v.frame(rotated.New.Name, "keys"), Base: v.appPath("keys"), Key: rotated.New, Secret: rotated.Secret,
		Old: &rotated.Old, Overlap: overlap != keys.NoOverlap,
	})), nil
}

// notRotatable leads to the replacement, when that is why.
func (v *visit) notRotatable(id ids.ID, refusal error) (answer, error) {
	old, err := v.tenant().Key(v.context, id)
	if err != nil {
		return answer{}, err
	}
	if !old.ReplacedBy.IsZero() {
		return v.alreadyCreated(old.ReplacedBy)
	}
	return answer{}, refusal
}

// revokeKey stops a key. In a live application its name has to be typed: some
// server may depend on it.
func (s *Site) revokeKey(v *visit) (answer, error) {
	key, err := v.key()
	if err != nil {
		return answer{}, err
	}
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	if v.app.Live && f.text("confirm") != key.Name {
		detail, err := v.keyDetail(key)
		detail.TypedBad = "The name doesn't match. Enter it exactly as shown."
		return invalid(page.APIKey(detail)), err
	}
	if _, err := v.tenant().RevokeKey(v.context, key.ID, v.site.now()); err != nil {
		return answer{}, err
	}
	return v.done(v.appPath("keys"), "Key "+key.Masked()+" revoked.")
}
