package demo

import (
	"context"
	"crypto/rand"
	"time"

	"purser/ids"
	"purser/keys"
	"purser/store"
	"purser/tenancy"
)

// ago and ahead are how far from now a key of the demo was made or ends.
const (
	ago   = 40 * 24 * time.Hour
	ahead = 5 * 24 * time.Hour
)

// makeKeys makes the keys that the demo itself works with. Nobody is told their
// secrets: whoever wants to make requests makes a key of their own.
func (t *tale) makeKeys(ctx context.Context) (err error) {
	_, full, err := t.makeKey(ctx, keys.Spec{Name: "Backend", Preset: keys.Setup}, t.Now())
	if err != nil {
		return err
	}
	_, usage, err := t.makeKey(ctx, keys.Spec{Name: "Edge workers", Preset: keys.Ingestion}, t.Now())
	if err != nil {
		return err
	}
	t.backend, t.edge = t.newBackend(full), t.newBackend(usage)
	t.now, err = t.clock(ctx)
	return err
}

// makeOtherKeys makes a key in each of the other states.
func (t *tale) makeOtherKeys(ctx context.Context) error {
	now := t.Now()
	for _, spec := range []keys.Spec{
		{Name: "Data warehouse", Preset: keys.ReadOnly},
		{Name: "Contractor", Preset: keys.ReadOnly, ExpiresAt: now + ahead.Milliseconds()},
		{Name: "Checkout page", Preset: keys.Custom, Custom: tenancy.PermissionsOf(tenancy.PlansRead, tenancy.SubscriptionsRead, tenancy.SubscriptionsWrite)},
	} {
		if _, _, err := t.makeKey(ctx, spec, now); err != nil {
			return err
		}
	}
	made := now - ago.Milliseconds()
	if _, _, err := t.makeKey(ctx, keys.Spec{Name: "Load test", Preset: keys.Ingestion, ExpiresAt: made + ahead.Milliseconds()}, made); err != nil {
		return err
	}
	leaked, _, err := t.makeKey(ctx, keys.Spec{Name: "Found in a repository", Preset: keys.Setup}, made)
	if err != nil {
		return err
	}
	if _, err := t.as(tenancy.Admin).RevokeKey(ctx, leaked.ID, now); err != nil {
		return err
	}
	old, _, err := t.makeKey(ctx, keys.Spec{Name: "Billing worker", Preset: keys.Setup}, made)
	if err != nil {
		return err
	}
	_, err = t.as(tenancy.Admin).RotateKey(ctx, old.ID, func(old keys.APIKey) (keys.Rotated, error) {
		return keys.Rotate(old, keys.Rotation{ID: ids.New(), By: t.staff[tenancy.Admin].ID, Overlap: keys.OneWeek}, tenancy.Admin.Permissions(), now, rand.Reader)
	})
	return err
}

func (t *tale) makeKey(ctx context.Context, spec keys.Spec, now int64) (keys.APIKey, keys.Secret, error) {
	spec.ID, spec.App, spec.CreatedBy = ids.New(), t.app, t.staff[tenancy.Admin].ID
	key, secret, err := keys.New(spec, tenancy.Admin.Permissions(), now, rand.Reader)
	if err != nil {
		return key, secret, err
	}
	return key, secret, t.as(tenancy.Admin).CreateKey(ctx, key)
}

// as is the application in the hands of a member at the dashboard.
func (t *tale) as(r tenancy.Role) store.App { return t.Store.App(t.app.Scope()).By(t.actor(r)) }
