package developers

import (
	"crypto/rand"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	keyspage "purser/views/page/keys"
	"purser/web/site"
)

// rotateKey creates the replacement and shows its secret, as createKey does. A key is
// rotated once, so a resubmitted form creates nothing.
func (s *Pages) rotateKey(req *site.Request, old keys.APIKey) (site.Response, error) {
	f := req.Form
	overlap := site.Choice(f, "overlap", keys.Overlaps()...)
	if !f.OK() {
		detail, err := keyDetail(req, old)
		detail.Problems = f.Problems
		return site.Invalid(keyspage.APIKey(detail)), err
	}
	rotation := keys.Rotation{ID: ids.New(), By: req.User.ID, Overlap: overlap}
	mails, err := noticeKey(req, old)
	if err != nil {
		return site.Response{}, err
	}
	rotated, err := req.Tenant().RotateKey(req.Context, old.ID, func(old keys.APIKey) (keys.Rotated, error) {
		return keys.Rotate(old, rotation, req.Member.Permissions(), req.Site.Now(), rand.Reader)
	}, mails...)
	if fault.Is(err, fault.APIKeyNotRotatable) {
		return notRotatable(req, old.ID, err)
	}
	if err != nil {
		return site.Response{}, err
	}
	return site.ShowOnce(keyspage.NewSecret(keyspage.KeySecret{
		Frame: req.Frame(rotated.New.Name, "keys"), Base: req.AppPath("keys"), Key: rotated.New, Secret: rotated.Secret,
		Old: &rotated.Old, Overlap: overlap != keys.NoOverlap,
	})), nil
}

// notRotatable redirects to the existing replacement if that is the reason.
func notRotatable(req *site.Request, id ids.ID, refusal error) (site.Response, error) {
	old, err := req.Tenant().Key(req.Context, id)
	if err != nil {
		return site.Response{}, err
	}
	if !old.ReplacedBy.IsZero() {
		return alreadyCreated(req, old.ReplacedBy)
	}
	return site.Response{}, refusal
}

// revokeKey revokes a key. A live key's name must be typed: a server may depend on it.
func (s *Pages) revokeKey(req *site.Request, key keys.APIKey) (site.Response, error) {
	f := req.Form
	if req.App.Live && !f.Confirms("confirm", key.Name) {
		detail, err := keyDetail(req, key)
		f.Fail("confirm", "The name doesn't match. Enter it exactly as shown.")
		detail.Problems = f.Problems
		return site.Invalid(keyspage.APIKey(detail)), err
	}
	if _, err := req.Tenant().RevokeKey(req.Context, key.ID, req.Site.Now()); err != nil {
		return site.Response{}, err
	}
	return req.Done(req.AppPath("keys"), "Key "+key.Masked()+" revoked.")
}
