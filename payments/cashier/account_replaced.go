package cashier

import (
	"cmp"
	"context"
	"errors"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/payments/stripe"
	"purser/store/payments"
	"purser/tenancy"
)

const (
	// retiredWindow is how long after its replacement an account's payments are still
	// followed: refunds and disputes come up to half a year after a payment.
	retiredWindow = int64(200 * 24 * time.Hour / time.Millisecond)
	// unauthorizedRetryDelay is the retry delay after the provider refuses the API
	// key. Only a person can replace it, and a new key makes all jobs due at once.
	unauthorizedRetryDelay = 6 * time.Hour
)

// errAccountRetired is returned for jobs of a replaced account that is no longer
// called.
var errAccountRetired = errors.New("cashier: the account was replaced and is retired")

// replacedConnection returns the connection whose key opens a replaced account. A
// sandbox account is retired at once: it does not serve applications that use Stripe,
// and it holds no real money.
func (c *Cashier) replacedConnection(ctx context.Context, scope tenancy.Scope, connection payments.Connection) (payments.Connection, error) {
	if connection.Mode == payments.SandboxConnection {
		return connection, errAccountRetired
	}
	if c.nowAt(connection.ClockOffset)-connection.ReplacedAt > retiredWindow {
		// A subscription bought just before the replacement may still be charged there.
		going, err := c.options.Store.PaymentAccounts(scope).SubscriptionsAt(ctx, connection.ID)
		if err != nil || going == 0 {
			return connection, cmp.Or(err, errAccountRetired)
		}
	}
	current, err := c.options.Store.PaymentAccounts(scope).Connection(ctx)
	if err != nil {
		return connection, err
	}
	// The account was connected again: its newer key is used.
	if current.Mode == connection.Mode && current.AccountID == connection.AccountID {
		return current, nil
	}
	return connection, nil
}

// rotateFormerKey stores a new key for a replaced account. Without it refunds and
// disputes of payments there could not be read while the current account is in use.
func (c *Cashier) rotateFormerKey(ctx context.Context, scope tenancy.Scope, accountID string, a Account) (Connected, error) {
	offset, err := c.options.Store.App(scope).ClockOffset(ctx)
	if err != nil {
		return Connected{}, err
	}
	renewed, err := c.options.Store.PaymentAccounts(scope).By(a.By).RenewFormer(ctx, accountID, func(former *payments.Connection) error {
		return c.seal(scope, former, a.APIKey, a.WebhookSecret)
	}, c.nowAt(offset))
	if errors.Is(err, payments.ErrUnknown) {
		return Connected{}, fault.New(fault.ProviderInUse)
	}
	if err != nil {
		return Connected{}, err
	}
	c.Wake(scope)
	return c.connected(renewed), nil
}

// alertOnUnauthorized raises an alert when the provider refuses the account's key. It
// returns err.
func (c *Cashier) alertOnUnauthorized(ctx context.Context, acct account, err error) error {
	if !stripe.Is(err, stripe.Unauthorized) {
		return err
	}
	// The key is part of the id: another key that is refused raises another alert.
	alert := billing.Alert{Kind: billing.KeyRefused, ObjectID: acct.AccountID + " …" + acct.KeyLastFour}
	c.options.Log.Warn("API key refused by the payment provider", "account", acct.AccountID, "replaced", acct.ReplacedAt != 0,
		"app", acct.scope.AppID.Format(ids.Application))
	again := acct.ReplacedAt == 0 // a replaced account may be closed for good
	return errors.Join(err, c.options.Store.Payments(acct.scope).Raise(ctx, alert, again, c.nowAt(acct.ClockOffset)))
}
