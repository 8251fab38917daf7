package cashier

import (
	"cmp"
	"context"
	"errors"
	"time"

	"purser/billing"
	"purser/billing/stripe"
	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
)

const (
	// retiredWindow is how long after an account was replaced its payments are looked
	// after: money is given back or disputed up to half a year after it was paid.
	retiredWindow = int64(200 * 24 * time.Hour / time.Millisecond)
	// unauthorizedRetryDelay is between two tries with a key that the provider refuses. Only a
	// person can help, and their new key has everything tried at once.
	unauthorizedRetryDelay = int64(6 * time.Hour / time.Millisecond)
)

// errAccountRetired is for work at an account that is not talked to any more.
var errAccountRetired = errors.New("cashier: this account was replaced, and is let go of")

// replacedConnection gives the connection whose key opens an account that was replaced. A
// sandbox is let go of at once: it answers nobody who has an account of their own,
// and its money is play money.
func (c *Cashier) replacedConnection(ctx context.Context, scope tenancy.Scope, connection store.Connection) (store.Connection, error) {
	now, err := c.Now(ctx, scope)
	if err != nil {
		return connection, err
	}
	if connection.Mode == store.SandboxConnection {
		return connection, errAccountRetired
	}
	if now-connection.ReplacedAt > retiredWindow {
		// One whose page was paid at the last moment may still be charged there.
		going, err := c.options.Store.App(scope).SubscriptionsAt(ctx, connection.ID)
		if err != nil || going == 0 {
			return connection, cmp.Or(err, errAccountRetired)
		}
	}
	current, err := c.options.Store.App(scope).Connection(ctx)
	if err != nil {
		return connection, err
	}
	// An account that came back is the same account, and its new key is the better one.
	if current.Mode == connection.Mode && current.AccountID == connection.AccountID {
		return current, nil
	}
	return connection, nil
}

// rotateFormerKey has an account that was replaced talked to with another key. Refunds
// and disputes of what was paid there could not be heard of otherwise until the
// account that took its place is out of use.
func (c *Cashier) rotateFormerKey(ctx context.Context, scope tenancy.Scope, accountID string, a Account) (Connected, error) {
	now, err := c.Now(ctx, scope)
	if err != nil {
		return Connected{}, err
	}
	renewed, err := c.options.Store.App(scope).By(a.By).RenewFormer(ctx, accountID, func(former *store.Connection) error {
		return c.seal(scope, former, a.APIKey, a.WebhookSecret)
	}, now)
	if errors.Is(err, store.ErrUnknown) {
		return Connected{}, fault.New(fault.ProviderInUse)
	}
	if err != nil {
		return Connected{}, err
	}
	c.Notify(scope)
	return c.connected(renewed), nil
}

// alertOnUnauthorized has a person look when the account no longer takes its key. The error is
// given back.
func (c *Cashier) alertOnUnauthorized(ctx context.Context, with account, err error) error {
	if !stripe.Is(err, stripe.Unauthorized) {
		return err
	}
	now, clockErr := c.Now(ctx, with.scope)
	if clockErr != nil {
		return errors.Join(err, clockErr)
	}
	// Named by the key too: the next key that fails is another matter.
	alert := billing.Alert{Kind: billing.KeyRefused, ObjectID: with.AccountID + " …" + with.KeyLastFour}
	c.options.Log.Warn("cashier: the provider refuses the key of an account", "account", with.AccountID, "replaced", with.ReplacedAt != 0,
		"app", with.scope.AppID.Format(ids.Application))
	return errors.Join(err, c.options.Store.App(with.scope).Raise(ctx, alert, now))
}
