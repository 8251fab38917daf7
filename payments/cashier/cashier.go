package cashier

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"purser/billing"
	"purser/ids"
	"purser/jobs"
	"purser/payments/stripe"
	"purser/store"
	"purser/tenancy"
	"purser/tenancy/turns"
	"purser/tenancy/vault"
)

const (
	// requestTimeout bounds a request with all its provider calls: the caller is
	// answered within 25 seconds even when the provider is down.
	requestTimeout = 20 * time.Second
	// leaseDuration is how long a lease lasts without renewal; its holder renews it
	// every leaseRenewInterval. It is shorter than leaseWait, so a request waits out
	// the lease of a node that died.
	leaseDuration      = 8 * time.Second
	leaseRenewInterval = leaseDuration / 4
	// leaseWait is how long a request waits for another operation on the same
	// identity.
	leaseWait = 10 * time.Second
	// cleanupTimeout bounds writes that happen after the request's own timeout.
	cleanupTimeout = 5 * time.Second
	// resumeDelay is when a retried operation is resumed by a job, unless it finished
	// before.
	resumeDelay = 30 * time.Second

	maxClients = 1000
	maxScopes  = 10_000
)

// Options are the dependencies of the cashier.
type Options struct {
	Store   *store.Store
	Vault   *vault.Vault
	BaseURL string // the public address of the server
	// Jobs runs the cashier's jobs. Nil for a queue of its own.
	Jobs *jobs.Queue

	// Sandbox registers the webhook URL with the application's sandbox account and
	// returns how to reach it. Nil when the server has no sandbox.
	Sandbox func(ctx context.Context, app ids.ID, webhookURL string, types []string) (Sandbox, error)
	// SandboxTransport and StripeTransport replace the default HTTP transport, for
	// example with a proxy. The sandbox may not be reachable at its public address.
	SandboxTransport http.RoundTripper
	StripeTransport  http.RoundTripper

	// ObserveWebhook is called for every event that was received; nil for no measurement.
	ObserveWebhook func(WebhookReceipt)

	Log *slog.Logger
	Now func() time.Time // the real clock; the database's when nil
}

// Sandbox is how to reach an application's account in the sandbox.
type Sandbox struct {
	URL           string
	Key           string
	WebhookSecret string
}

// Cashier calls the payment provider for every application. It is safe for concurrent
// use.
type Cashier struct {
	options       Options
	limits        limits
	clients       *lru.Cache[clientKey, *stripe.Client]
	scopes        *lru.Cache[ids.ID, tenancy.Scope] // by connection
	turns         *turns.Turns[string]
	jobs          *jobs.Queue
	renewInterval time.Duration // between two renewals of a lease; zero for leaseRenewInterval, negative for none
	// withoutPeriodicJobs is set by tests that enqueue these jobs themselves.
	withoutPeriodicJobs bool
}

// limits are the timeouts and sizes that tests lower or raise.
type limits struct {
	request   time.Duration
	leaseWait time.Duration
	attempt   time.Duration // of taking a lease
	lease     time.Duration
	cleanup   time.Duration
	listBatch int
}

// New creates a cashier and registers its jobs.
func New(options Options) (*Cashier, error) {
	if options.Store == nil || options.Vault == nil || options.Log == nil || options.BaseURL == "" {
		return nil, fmt.Errorf("cashier: an option is missing")
	}
	if options.ObserveWebhook == nil {
		options.ObserveWebhook = func(WebhookReceipt) {}
	}
	if options.Now == nil {
		options.Now = options.Store.Clock().Time
	}
	options.BaseURL = strings.TrimRight(options.BaseURL, "/")
	clients, err := lru.New[clientKey, *stripe.Client](maxClients)
	if err != nil {
		return nil, fmt.Errorf("cashier: %w", err)
	}
	scopes, err := lru.New[ids.ID, tenancy.Scope](maxScopes)
	if err != nil {
		return nil, fmt.Errorf("cashier: %w", err)
	}
	c := &Cashier{options: options, limits: limits{request: requestTimeout, leaseWait: leaseWait, attempt: leaseAttemptTimeout, lease: leaseDuration, cleanup: cleanupTimeout, listBatch: listBatchSize}, clients: clients, scopes: scopes, jobs: options.Jobs, turns: turns.New[string](1)}
	if c.jobs == nil {
		c.jobs = jobs.New(jobs.Options{Store: options.Store, Log: options.Log, Now: options.Now})
	}
	c.registerJobs()
	return c, nil
}

// Wake says that the application may have due jobs.
func (c *Cashier) Wake(scope tenancy.Scope) { c.jobs.Wake(scope) }

// DrainAll runs all due jobs of the application, by its clock, and those that they
// enqueue. It waits for jobs that another node runs.
func (c *Cashier) DrainAll(ctx context.Context, app ids.ID) error { return c.jobs.DrainAll(ctx, app) }

// nowAt is the application's time: the real clock plus the offset of its sandbox
// clock. Accounts, leases and claimed jobs carry the offset.
func (c *Cashier) nowAt(offset int64) int64 { return c.realNow() + offset }

func (c *Cashier) realNow() int64 { return c.options.Now().UnixMilli() }

// Subscription reads an identity's subscription. An expired pending change is left
// out, also before the provider reports it.
func (c *Cashier) Subscription(ctx context.Context, scope tenancy.Scope, identity string) (billing.Subscription, error) {
	s, err := c.options.Store.Payments(scope).Subscription(ctx, identity)
	if err != nil || s.Pending == nil {
		return s, err
	}
	offset, err := c.options.Store.App(scope).ClockOffset(ctx)
	s.Pending = s.PendingAt(c.nowAt(offset))
	return s, err
}
