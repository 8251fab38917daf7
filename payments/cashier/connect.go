package cashier

import (
	"context"
	"strings"

	"purser/fault"
	"purser/ids"
	"purser/payments/stripe"
	"purser/store/payments"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// Account is what a person enters to connect a Stripe account.
type Account struct {
	APIKey string
	// WebhookSecret belongs to an endpoint that the person created in Stripe. When
	// empty, Connect creates the endpoint.
	WebhookSecret string
	By            audit.Actor // for the audit log
}

// Connected is a connection without its secrets, for display.
type Connected struct {
	Mode        payments.ConnectionMode
	Live        bool
	AccountID   string
	KeyLastFour string
	WebhookURL  string
	Webhooks    bool // whether webhooks can be verified; others are refused
	Former      bool // whether another account has replaced it
}

// Connection shows the application's current account. A test application has none
// before its first use.
func (c *Cashier) Connection(ctx context.Context, scope tenancy.Scope) (Connected, error) {
	connection, err := c.options.Store.PaymentAccounts(scope).Connection(ctx)
	if err != nil {
		return Connected{}, err
	}
	return c.connected(connection), nil
}

func (c *Cashier) connected(connection payments.Connection) Connected {
	return Connected{
		Mode: connection.Mode, Live: connection.Live, AccountID: connection.AccountID, KeyLastFour: connection.KeyLastFour,
		WebhookURL: c.webhookURL(connection.ID), Webhooks: connection.Mode == payments.SandboxConnection || len(connection.Secrets) > 0,
		Former: connection.ReplacedAt != 0,
	}
}

// secretOverlap is how long the previous webhook secret still verifies: the provider
// retries webhooks that were signed with it.
const secretOverlap = int64(24 * 60 * 60 * 1000)

// Connect makes a Stripe account the application's current one. The key's mode has to
// match the application's. While the current account is in use, the key of a replaced
// account is only rotated.
func (c *Cashier) Connect(ctx context.Context, scope tenancy.Scope, a Account) (Connected, error) {
	connected, err := c.connect(ctx, scope, a)
	return connected, publicError(err)
}

func (c *Cashier) connect(ctx context.Context, scope tenancy.Scope, a Account) (Connected, error) {
	application, err := c.options.Store.Org(scope.OrgID).Application(ctx, scope.AppID)
	if err != nil {
		return Connected{}, err
	}
	live, err := isLiveKey(a.APIKey)
	if err != nil {
		return Connected{}, err
	}
	switch {
	case live && !application.Live:
		return Connected{}, fault.Newf(fault.InvalidRequest, "This is a live key, but this is a test application. Use a key that starts with sk_test_ or rk_test_.")
	case !live && application.Live:
		return Connected{}, fault.Newf(fault.InvalidRequest, "This is a test key, but the application is live. Use a key that starts with sk_live_ or rk_live_.")
	}
	provider := stripe.New(stripe.Access{Key: a.APIKey, Transport: c.options.StripeTransport})
	accountID, err := provider.Account(ctx)
	if err != nil {
		return Connected{}, err
	}
	next, err := c.connectionTo(ctx, scope, accountID, live)
	if fault.Is(err, fault.ProviderInUse) {
		return c.rotateFormerKey(ctx, scope, accountID, a)
	}
	if err != nil {
		return Connected{}, err
	}
	secret := a.WebhookSecret
	if secret == "" && len(next.Secrets) == 0 {
		next.EndpointID, secret, err = c.makeEndpoint(ctx, provider, next.ID)
		if err != nil {
			return Connected{}, err
		}
	}
	if err := c.seal(scope, &next, a.APIKey, secret); err != nil {
		return Connected{}, err
	}
	offset, err := c.options.Store.App(scope).ClockOffset(ctx)
	if err != nil {
		return Connected{}, err
	}
	now := c.nowAt(offset)
	next.ChangedAt = now
	kept, err := c.options.Store.PaymentAccounts(scope).By(a.By).PutConnection(ctx, next, now)
	if err != nil {
		return Connected{}, err
	}
	c.Wake(scope)
	return c.connected(kept), nil
}

// isLiveKey reads the mode from the key's prefix.
func isLiveKey(key string) (bool, error) {
	for prefix, live := range map[string]bool{"sk_live_": true, "rk_live_": true, "sk_test_": false, "rk_test_": false} {
		if strings.HasPrefix(key, prefix) {
			return live, nil
		}
	}
	return false, fault.Newf(fault.InvalidRequest, "This is not a Stripe secret key. Secret keys start with sk_ or rk_.")
}

// connectionTo is the existing connection to the account, or a new one. It checks that
// the current connection may be replaced before anything is created at the provider.
func (c *Cashier) connectionTo(ctx context.Context, scope tenancy.Scope, accountID string, live bool) (payments.Connection, error) {
	current, err := c.options.Store.PaymentAccounts(scope).Connection(ctx)
	if err != nil && !fault.Is(err, fault.PaymentsNotConfigured) {
		return current, err
	}
	if err == nil && current.Mode == payments.StripeConnection && current.AccountID == accountID {
		return current, nil
	}
	if err == nil {
		uses, err := c.options.Store.PaymentAccounts(scope).UsesOfAccount(ctx, current)
		if err != nil {
			return current, err
		}
		if uses > 0 {
			return current, fault.New(fault.ProviderInUse)
		}
	}
	offset, err := c.options.Store.App(scope).ClockOffset(ctx)
	if err != nil {
		return current, err
	}
	// Stripe uses the real clock. Objects dated months ahead would expire too late there,
	// and look as if they had been requested after they were paid.
	if offset != 0 {
		return current, fault.Newf(fault.InvalidRequest, "This application's sandbox clock was advanced, so it can't switch to Stripe. Connect the account to a new application.")
	}
	now := c.realNow()
	return payments.Connection{
		ID: ids.New(), Mode: payments.StripeConnection, Live: live, AccountID: accountID, EventsAfter: now, CreatedAt: now,
	}, nil
}

// makeEndpoint creates the webhook endpoint. Stripe refuses a URL that it cannot
// reach, such as localhost; then the periodic jobs find all changes, only later.
func (c *Cashier) makeEndpoint(ctx context.Context, provider *stripe.Client, connection ids.ID) (id, secret string, err error) {
	url := c.webhookURL(connection)
	id, secret, err = provider.CreateEndpoint(ctx, "psr:"+connection.Format(connectionPrefix)+":endpoint", url, eventTypes)
	if stripe.Is(err, stripe.Refused) {
		c.options.Log.Warn("webhook endpoint refused by the payment provider", "url", url, "cause", err)
		return "", "", nil
	}
	return id, secret, err
}

// seal encrypts the secrets into the connection. A new webhook secret comes first, and
// the previous one stays valid for secretOverlap.
func (c *Cashier) seal(scope tenancy.Scope, connection *payments.Connection, key, secret string) (err error) {
	const shown = 4
	connection.KeyLastFour = key[max(0, len(key)-shown):]
	if connection.SealedKey, err = c.options.Vault.Seal(place(scope, connection.ID, keyPurpose), []byte(key)); err != nil {
		return err
	}
	if secret == "" {
		return nil
	}
	sealed, err := c.options.Vault.Seal(place(scope, connection.ID, secretPurpose), []byte(secret))
	if err != nil {
		return err
	}
	secrets := []payments.SealedSecret{{Sealed: sealed}}
	if len(connection.Secrets) > 0 {
		secrets = append(secrets, payments.SealedSecret{Sealed: connection.Secrets[0].Sealed, Until: c.realNow() + secretOverlap})
	}
	connection.Secrets = secrets
	return nil
}
