package cashier

import (
	"context"
	"errors"
	"fmt"

	"purser/fault"
	"purser/ids"
	"purser/payments/stripe"
	"purser/store/payments"
	"purser/store/queue"
	"purser/tenancy"
	"purser/tenancy/vault"
)

// connectionPrefix is the prefix of connection ids in webhook URLs.
const connectionPrefix = "con"

// account is a connection of an application together with its Stripe client.
type account struct {
	payments.Connection
	// latest is the newest connection to the same account: Connection, unless the account
	// was replaced and connected again. Its key is used, and whatever is stored from now on
	// belongs to it.
	latest   payments.Connection
	scope    tenancy.Scope
	provider *stripe.Client
}

// job is a job about an object of this account.
func (a account) job(kind queue.JobKind, object string, dueAt int64) queue.Job {
	return queue.Job{Kind: kind, Object: object, Connection: a.latest.ID, DueAt: dueAt}
}

// clientKey identifies a cached client. Replacing the API key changes changedAt and so
// misses the cache.
type clientKey struct {
	connection ids.ID
	changedAt  int64
}

// account loads the application's current account. A test application without one is
// connected to the sandbox; a live one has to be connected in the dashboard.
func (c *Cashier) account(ctx context.Context, scope tenancy.Scope) (account, error) {
	connection, err := c.options.Store.PaymentAccounts(scope).Connection(ctx)
	if fault.Is(err, fault.PaymentsNotConfigured) {
		connection, err = c.connectSandbox(ctx, scope, err)
	}
	if err != nil {
		return account{}, err
	}
	provider, err := c.client(ctx, scope, connection)
	return account{Connection: connection, latest: connection, scope: scope, provider: provider}, err
}

// accountAt loads the account of a connection, replaced ones included: their objects
// exist only there. The zero id is the current connection.
func (c *Cashier) accountAt(ctx context.Context, scope tenancy.Scope, id ids.ID) (account, error) {
	if id.IsZero() {
		return c.account(ctx, scope)
	}
	accounts := c.options.Store.PaymentAccounts(scope)
	connection, err := accounts.ConnectionByID(ctx, id)
	if err != nil {
		return account{}, err
	}
	latest := connection
	if connection.ReplacedAt != 0 {
		if latest, err = c.latestConnection(ctx, scope, connection); err != nil {
			return account{}, err
		}
	}
	provider, err := c.client(ctx, scope, latest)
	return account{Connection: connection, latest: latest, scope: scope, provider: provider}, err
}

// accountOf is accountAt for records that may predate stored connection ids: then the
// connection is looked up by the provider object.
func (c *Cashier) accountOf(ctx context.Context, scope tenancy.Scope, id ids.ID, object string) (account, error) {
	if id.IsZero() && object != "" {
		found, err := c.options.Store.PaymentAccounts(scope).ConnectionOf(ctx, object)
		if err != nil && !errors.Is(err, payments.ErrUnknown) {
			return account{}, err
		}
		id = found
	}
	return c.accountAt(ctx, scope, id)
}

// checkAccount refuses an application that has no account, unless it can be connected to
// the sandbox.
func (c *Cashier) checkAccount(ctx context.Context, scope tenancy.Scope) error {
	_, err := c.options.Store.PaymentAccounts(scope).Connection(ctx)
	if fault.Is(err, fault.PaymentsNotConfigured) {
		return c.checkSandbox(ctx, scope, err)
	}
	return err
}

func (c *Cashier) checkSandbox(ctx context.Context, scope tenancy.Scope, notConfigured error) error {
	application, err := c.options.Store.Org(scope.OrgID).Application(ctx, scope.AppID)
	if err != nil {
		return err
	}
	if application.Live {
		return notConfigured
	}
	if c.options.Sandbox == nil {
		return errSandboxOff()
	}
	return nil
}

func (c *Cashier) connectSandbox(ctx context.Context, scope tenancy.Scope, notConfigured error) (payments.Connection, error) {
	if err := c.checkSandbox(ctx, scope, notConfigured); err != nil {
		return payments.Connection{}, err
	}
	offset, err := c.options.Store.App(scope).ClockOffset(ctx)
	if err != nil {
		return payments.Connection{}, err
	}
	now := c.nowAt(offset)
	connection, err := c.options.Store.PaymentAccounts(scope).PutConnection(ctx, payments.Connection{
		ID: ids.New(), Mode: payments.SandboxConnection, AccountID: "sandbox", EventsAfter: now, CreatedAt: now, ChangedAt: now,
	}, now)
	connection.ClockOffset = offset
	return connection, err
}

// client returns the cached client of a connection. On a miss it also enqueues the
// connection's periodic jobs, which find lost webhooks.
func (c *Cashier) client(ctx context.Context, scope tenancy.Scope, connection payments.Connection) (*stripe.Client, error) {
	name := clientKey{connection.ID, connection.ChangedAt}
	if cached, found := c.clients.Get(name); found {
		return cached, nil
	}
	access, err := c.access(ctx, scope, connection)
	if err != nil {
		return nil, err
	}
	if !c.withoutPeriodicJobs {
		if err := c.options.Store.Queue(scope).Enqueue(ctx, periodicJobs(connection.ID, c.nowAt(connection.ClockOffset))...); err != nil {
			return nil, err
		}
	}
	made := stripe.New(access)
	c.clients.Add(name, made)
	return made, nil
}

func (c *Cashier) access(ctx context.Context, scope tenancy.Scope, connection payments.Connection) (stripe.Access, error) {
	if connection.Mode == payments.SandboxConnection {
		sandbox, err := c.sandboxAccount(ctx, scope, connection)
		return stripe.Access{Key: sandbox.Key, SandboxURL: sandbox.URL, Transport: c.options.SandboxTransport}, err
	}
	key, err := c.options.Vault.Open(place(scope, connection.ID, keyPurpose), connection.SealedKey)
	if err != nil {
		return stripe.Access{}, fmt.Errorf("cashier: the provider's API key cannot be opened: %w", err)
	}
	return stripe.Access{Key: string(key), Transport: c.options.StripeTransport}, nil
}

// errSandboxOff is returned for a test application when the server runs without a
// sandbox.
func errSandboxOff() error {
	return fault.Newf(fault.PaymentsNotConfigured, "The payments sandbox is turned off on this server. Connect a Stripe test account in the dashboard.")
}

func (c *Cashier) sandboxAccount(ctx context.Context, scope tenancy.Scope, connection payments.Connection) (Sandbox, error) {
	if c.options.Sandbox == nil {
		return Sandbox{}, errSandboxOff()
	}
	return c.options.Sandbox(ctx, scope.AppID, c.webhookURL(connection.ID), eventTypes)
}

// webhookSecrets are the secrets that a webhook of the connection may be signed with.
// A rotated secret stays valid until its Until.
func (c *Cashier) webhookSecrets(ctx context.Context, scope tenancy.Scope, connection payments.Connection) ([]string, error) {
	if connection.Mode == payments.SandboxConnection {
		sandbox, err := c.sandboxAccount(ctx, scope, connection)
		return []string{sandbox.WebhookSecret}, err
	}
	var secrets []string
	for _, s := range connection.Secrets {
		if s.Until != 0 && s.Until <= c.realNow() {
			continue
		}
		secret, err := c.options.Vault.Open(place(scope, connection.ID, secretPurpose), s.Sealed)
		if err != nil {
			return nil, fmt.Errorf("cashier: a webhook secret cannot be opened: %w", err)
		}
		secrets = append(secrets, string(secret))
	}
	return secrets, nil
}

// WebhookPath is where the provider sends webhooks; the connection's id follows.
const WebhookPath = "/webhooks/stripe/"

func (c *Cashier) webhookURL(connection ids.ID) string {
	return c.options.BaseURL + WebhookPath + connection.Format(connectionPrefix)
}

// Purposes under which the vault seals a connection's secrets.
const (
	keyPurpose    = "stripe api key"
	secretPurpose = "stripe webhook secret"
)

func place(scope tenancy.Scope, connection ids.ID, purpose string) vault.Place {
	return vault.Place{Purpose: purpose, Org: scope.OrgID, App: scope.AppID, Row: connection}
}
