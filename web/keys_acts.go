package web

import (
	"crypto/rand"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	keyspage "purser/views/page/keys"
)

// rotateKey creates the replacement and shows its secret, as createKey does. A key is
// rotated once, so a resubmitted form creates nothing.
func (s *Site) rotateKey(req *request) (response, error) {
	old, err := pathKey(req)
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	overlap := choice(f, "overlap", keys.Overlaps()...)
	if !f.ok() {
		detail, err := keyDetail(req, old)
		detail.Problems = f.problems
		return invalid(keyspage.APIKey(detail)), err
	}
	rotation := keys.Rotation{ID: ids.New(), By: req.user.ID, Overlap: overlap}
	mails, err := noticeKey(req, old)
	if err != nil {
		return response{}, err
	}
	rotated, err := req.tenant().RotateKey(req.context, old.ID, func(old keys.APIKey) (keys.Rotated, error) {
		return keys.Rotate(old, rotation, req.member.Permissions(), req.site.now(), rand.Reader)
	}, mails...)
	if fault.Is(err, fault.APIKeyNotRotatable) {
		return notRotatable(req, old.ID, err)
	}
	if err != nil {
		return response{}, err
	}
	return show(keyspage.NewSecret(keyspage.KeySecret{
		Frame: req.frame(rotated.New.Name, "keys"), Base: req.appPath("keys"), Key: rotated.New, Secret: rotated.Secret,
		Old: &rotated.Old, Overlap: overlap != keys.NoOverlap,
	})), nil
}

// notRotatable redirects to the existing replacement if that is the reason.
func notRotatable(req *request, id ids.ID, refusal error) (response, error) {
	old, err := req.tenant().Key(req.context, id)
	if err != nil {
		return response{}, err
	}
	if !old.ReplacedBy.IsZero() {
		return alreadyCreated(req, old.ReplacedBy)
	}
	return response{}, refusal
}

// revokeKey revokes a key. A live key's name must be typed: a server may depend on it.
func (s *Site) revokeKey(req *request) (response, error) {
	key, err := pathKey(req)
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	if req.app.Live && f.text("confirm") != key.Name {
		detail, err := keyDetail(req, key)
		detail.TypedBad = "The name doesn't match. Enter it exactly as shown."
		return invalid(keyspage.APIKey(detail)), err
	}
	if _, err := req.tenant().RevokeKey(req.context, key.ID, req.site.now()); err != nil {
		return response{}, err
	}
	return req.done(req.appPath("keys"), "Key "+key.Masked()+" revoked.")
}
