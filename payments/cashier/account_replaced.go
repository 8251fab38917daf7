package cashier

import (
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
	// retiredWindow is how long an account's payments are followed after its replacement, and
	// after the end of the last subscription there: refunds and disputes come up to half a
	// year after a payment, and the last one may have been shortly before the end.
	retiredWindow = int64(200 * 24 * time.Hour / time.Millisecond)
	// unauthorizedRetryDelay is the retry delay after the provider refuses the API
	// key. Only a person can replace it, and a new key makes all jobs due at once.
	unauthorizedRetryDelay = 6 * time.Hour
)

// errAccountRetired is returned for jobs of a replaced account that is no longer
// called.
var errAccountRetired = errors.New("cashier: the account was replaced and is retired")

// latestConnection returns the newest connection to the account of a replaced one. Its
// key is used, and whether the account is retired depends on it: an account that was
// connected again may sell now, and its earlier webhook endpoints still report that. A
// sandbox account is retired at once: it does not serve applications that use Stripe, and
// it holds no real money.
func (c *Cashier) latestConnection(ctx context.Context, scope tenancy.Scope, replaced payments.Connection) (payments.Connection, error) {
	if replaced.Mode == payments.SandboxConnection {
		return replaced, errAccountRetired
	}
	accounts := c.options.Store.PaymentAccounts(scope)
	latest, err := accounts.LatestConnection(ctx, replaced)
	if err != nil || latest.ReplacedAt == 0 || c.nowAt(latest.ClockOffset)-latest.ReplacedAt <= retiredWindow {
		return latest, err
	}
	// A subscription bought just before the replacement is charged there until it ends.
	charged, err := accounts.SubscriptionsAt(ctx, latest, c.nowAt(latest.ClockOffset)-retiredWindow)
	if err == nil && charged == 0 {
		err = errAccountRetired
	}
	return latest, err
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
	alert := billing.Alert{Kind: billing.KeyRefused, ObjectID: acct.AccountID + " …" + acct.latest.KeyLastFour}
	c.options.Log.Warn("API key refused by the payment provider", "account", acct.AccountID, "replaced", acct.latest.ReplacedAt != 0,
		"app", acct.scope.AppID.Format(ids.Application))
	again := acct.latest.ReplacedAt == 0 // a replaced account may be closed for good
	return errors.Join(err, c.options.Store.Payments(acct.scope).Raise(ctx, alert, again, c.nowAt(acct.ClockOffset)))
}
