package delivery

import (
	"context"
	"crypto/rand"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/notify"
	"purser/store/notifications"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/vault"
)

// Draft is a requested endpoint.
type Draft struct {
	ID          ids.ID // a new one when zero; a form that is sent twice creates one endpoint
	URL         string
	Types       []notify.Type
	Description string
	Live        bool  // the application's mode
	Now         int64 // by the application's clock
}

// Create stores an endpoint with a new secret, which is returned here and never again.
func (d *Dispatcher) Create(ctx context.Context, scope tenancy.Scope, by audit.Actor, draft Draft) (e notify.Endpoint, secret notify.Secret, err error) {
	if err := notify.CheckURL(draft.URL, draft.Live); err != nil {
		return e, secret, err
	}
	types, err := notify.CheckTypes(draft.Types)
	if err != nil {
		return e, secret, err
	}
	e = notify.Endpoint{
		ID: draft.ID, URL: draft.URL, Types: types, Description: draft.Description, Status: notify.Enabled, Revision: 1, CreatedAt: draft.Now,
	}
	if e.ID.IsZero() {
		e.ID = ids.New()
	}
	if secret, e.SealedSecret, err = d.newSecret(scope, e.ID); err != nil {
		return e, secret, err
	}
	return e, secret, d.app(scope, by).CreateEndpoint(ctx, e)
}

// Rotate replaces the secret of an endpoint of an expected revision, or of any if that is
// zero. Both secrets sign for the overlap.
func (d *Dispatcher) Rotate(ctx context.Context, scope tenancy.Scope, by audit.Actor, id ids.ID, expected int64, overlap time.Duration) (e notify.Endpoint, secret notify.Secret, err error) {
	secret, sealed, err := d.newSecret(scope, id)
	if err != nil {
		return e, secret, err
	}
	e, err = d.app(scope, by).RotateSecret(ctx, id, notifications.Rotation{
		ExpectedRevision: expected, SealedSecret: sealed, PreviousUntil: d.options.Now().Add(overlap).UnixMilli(),
	})
	return e, secret, err
}

// Test sends a notification of the type with example data to one endpoint.
func (d *Dispatcher) Test(ctx context.Context, scope tenancy.Scope, by audit.Actor, id ids.ID, kind notify.Type, now int64) (notify.Notification, error) {
	if !kind.Known() {
		return notify.Notification{}, fault.Newf(fault.InvalidRequest, "type: %q is no type of notification.", string(kind))
	}
	n := notify.New(kind, ids.ID{}, notify.Sample(kind), now)
	n.Test = true
	return n, d.app(scope, by).SendTest(ctx, id, n)
}

func (d *Dispatcher) app(scope tenancy.Scope, by audit.Actor) notifications.App {
	return d.options.Store.Notifications(scope).By(by)
}

func (d *Dispatcher) newSecret(scope tenancy.Scope, endpoint ids.ID) (secret notify.Secret, sealed []byte, err error) {
	if secret, err = notify.NewSecret(rand.Reader); err != nil {
		return secret, nil, err
	}
	sealed, err = d.options.Vault.Seal(placeOf(scope, endpoint), []byte(secret.Reveal()))
	return secret, sealed, err
}

// placeOf is where the secrets of an endpoint are sealed for.
func placeOf(scope tenancy.Scope, endpoint ids.ID) vault.Place {
	return vault.Place{Purpose: "webhook secret", Org: scope.OrgID, App: scope.AppID, Row: endpoint}
}

// Reseal seals the secrets of an application's endpoints with the current key. It
// returns how many endpoints changed and how many no key opens.
func (d *Dispatcher) Reseal(ctx context.Context, scope tenancy.Scope) (resealed, lost int, err error) {
	unreadable := map[ids.ID]bool{}
	resealed, err = d.options.Store.Notifications(scope).ResealEndpoints(ctx, func(e *notify.Endpoint) (changed bool) {
		for _, sealed := range []*[]byte{&e.SealedSecret, &e.SealedPrevious} {
			if len(*sealed) == 0 {
				continue
			}
			again, isNew, err := d.options.Vault.Rewrap(placeOf(scope, e.ID), *sealed)
			if err != nil {
				unreadable[e.ID] = true
				d.options.Log.Error("a stored secret cannot be opened", "purpose", "webhook secret", "endpoint", e.ID.Format(ids.WebhookEndpoint),
					"app", scope.AppID.Format(ids.Application), "cause", err)
				continue
			}
			*sealed, changed = again, changed || isNew
		}
		return changed
	})
	return resealed, len(unreadable), err
}
