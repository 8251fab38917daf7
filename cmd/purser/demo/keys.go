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

// ago and ahead are the distances of a key's creation and expiry from now.
const (
	ago   = 40 * 24 * time.Hour
	ahead = 5 * 24 * time.Hour
)

// makeKeys creates the keys that the demo itself uses. Their secrets are not shown:
// users create their own keys.
func (s *story) makeKeys(ctx context.Context) {
	_, full := s.makeKey(ctx, keys.Spec{Name: "Backend", Preset: keys.Setup}, s.Now())
	_, usage := s.makeKey(ctx, keys.Spec{Name: "Edge workers", Preset: keys.Ingestion}, s.Now())
	s.backend, s.edge = s.newBackend(full), s.newBackend(usage)
	s.readClock(ctx)
}

// makeOtherKeys creates a key in each of the other states.
func (s *story) makeOtherKeys(ctx context.Context) {
	now := s.Now()
	for _, spec := range []keys.Spec{
		{Name: "Data warehouse", Preset: keys.ReadOnly},
		{Name: "Contractor", Preset: keys.ReadOnly, ExpiresAt: now + ahead.Milliseconds()},
		{Name: "Checkout page", Preset: keys.Custom, Custom: tenancy.PermissionsOf(tenancy.PlansRead, tenancy.SubscriptionsRead, tenancy.SubscriptionsWrite)},
	} {
		s.makeKey(ctx, spec, now)
	}
	made := now - ago.Milliseconds()
	s.makeKey(ctx, keys.Spec{Name: "Load test", Preset: keys.Ingestion, ExpiresAt: made + ahead.Milliseconds()}, made)
	leaked, _ := s.makeKey(ctx, keys.Spec{Name: "Found in a repository", Preset: keys.Setup}, made)
	old, _ := s.makeKey(ctx, keys.Spec{Name: "Billing worker", Preset: keys.Setup}, made)
	s.do(func() error {
		_, err := s.actingAs(tenancy.Admin).RevokeKey(ctx, leaked.ID, now)
		return err
	})
	s.do(func() error {
		_, err := s.actingAs(tenancy.Admin).RotateKey(ctx, old.ID, func(old keys.APIKey) (keys.Rotated, error) {
			return keys.Rotate(old, keys.Rotation{ID: ids.New(), By: s.staff[tenancy.Admin].ID, Overlap: keys.OneWeek}, tenancy.Admin.Permissions(), now, rand.Reader)
		})
		return err
	})
}

func (s *story) makeKey(ctx context.Context, spec keys.Spec, now int64) (key keys.APIKey, secret keys.Secret) {
	s.do(func() (err error) {
		spec.ID, spec.App, spec.CreatedBy = ids.New(), s.app, s.staff[tenancy.Admin].ID
		if key, secret, err = keys.New(spec, tenancy.Admin.Permissions(), now, rand.Reader); err != nil {
			return err
		}
		return s.actingAs(tenancy.Admin).CreateKey(ctx, key)
	})
	return key, secret
}

// actingAs is the application with a member as the actor, as at the dashboard.
func (s *story) actingAs(r tenancy.Role) store.App { return s.Store.App(s.app.Scope()).By(s.actor(r)) }
