package cashier

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"purser/billing"
	"purser/billing/stripe"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/tenancy/vault"
)

const (
	// requestTimeout is how long a request may take, with every call in it. The caller is
	// answered within 25 seconds, also when the provider is not there.
	requestTimeout = 20 * time.Second
	// leaseDuration is how long a lease lasts unless it is renewed, which its holder does
	// every renewTime. A node that dies keeps others waiting for that long: less than
	// patience, so the next request just waits.
	leaseDuration      = 8 * time.Second
	leaseRenewInterval = leaseDuration / 4
	// leaseWait is how long a caller waits for another conversation about the same
	// identity.
	leaseWait = 10 * time.Second
	// cleanupTimeout is for what has to be written down after the time is over.
	cleanupTimeout = 5 * time.Second
	// resumeDelay is when an operation that is taken up again is looked after, unless it
	// ended by then.
	resumeDelay = 30 * time.Second

	maxClients = 1000
)

// Options is all that the cashier needs from outside.
type Options struct {
	Store   *store.Store
	Vault   *vault.Vault
	BaseURL string // the public address of the server

	// Sandbox makes sure that an application's webhooks of the sandbox go to the
	// address, and says how to reach it. Nil when there is no sandbox.
	Sandbox func(ctx context.Context, app ids.ID, webhookURL string, types []string) (Sandbox, error)
	// SandboxTransport reaches the sandbox where its public address does not, and
	// StripeTransport Stripe, such as through a proxy. Nil for the usual way.
	SandboxTransport http.RoundTripper
	StripeTransport  http.RoundTripper

	Log *slog.Logger
	Now func() time.Time // the real clock; the database's when nil
}

// Sandbox is how to reach an application's world in the sandbox.
type Sandbox struct {
	URL            string
	Key            string
	WebhookSecrets []string // the current one first
}

// Cashier serves every application.
type Cashier struct {
	options       Options
	limits        limits
	clients       *lru.Cache[clientKey, *stripe.Client]
	locks         locks
	notifier      *notifier
	renewInterval time.Duration // between two renewals of a lease; zero for renewTime, negative for none
	// withoutRounds leaves periodic jobs to the test that enqueues them.
	withoutPeriodicJobs bool
}

// limits are those that a test has to reach: the usual ones take long.
type limits struct {
	request   time.Duration
	leaseWait time.Duration
	lease     time.Duration
	cleanup   time.Duration
	listBatch int
}

// New makes a cashier. Run must be running for work to be done by itself.
func New(options Options) (*Cashier, error) {
	if options.Store == nil || options.Vault == nil || options.Log == nil || options.BaseURL == "" {
		return nil, fmt.Errorf("cashier: an option is missing")
	}
	if options.Now == nil {
		options.Now = options.Store.Clock().Time
	}
	options.BaseURL = strings.TrimRight(options.BaseURL, "/")
	clients, err := lru.New[clientKey, *stripe.Client](maxClients)
	if err != nil {
		return nil, fmt.Errorf("cashier: %w", err)
	}
	return &Cashier{options: options, limits: limits{request: requestTimeout, leaseWait: leaseWait, lease: leaseDuration, cleanup: cleanupTimeout, listBatch: listBatchSize}, clients: clients, notifier: newNotifier()}, nil
}

// Now is the application's time: the real one, or where its sandbox has got to. One
// request or job reads once how far its clock is ahead.
func (c *Cashier) Now(ctx context.Context, scope tenancy.Scope) (int64, error) {
	if err := c.options.Store.Clock().Trust(ctx); err != nil {
		return 0, err
	}
	kept, _ := ctx.Value(clockOffsetKey{}).(*clockOffset)
	if kept != nil {
		if offset := kept.Load(); offset != nil {
			return c.realNow() + *offset, nil
		}
	}
	offset, err := c.options.Store.App(scope).ClockOffset(ctx)
	if err == nil && kept != nil {
		kept.Store(&offset)
	}
	return c.realNow() + offset, err
}

// clockOffset is how far an application's clock is ahead, once it was read.
type (
	clockOffset    = atomic.Pointer[int64]
	clockOffsetKey struct{}
)

// withClock makes Now read the application's clock once for all that is done with the
// context, which has to be about one application and to last for seconds.
func withClock(ctx context.Context) context.Context {
	return context.WithValue(ctx, clockOffsetKey{}, new(clockOffset))
}

func (c *Cashier) realNow() int64 { return c.options.Now().UnixMilli() }

// Subscription reads the subscription that an identity has. A change that waited
// too long for its payment is not shown, also before the provider has said so.
func (c *Cashier) Subscription(ctx context.Context, scope tenancy.Scope, identity string) (billing.Subscription, error) {
	s, err := c.options.Store.App(scope).Subscription(ctx, identity)
	if err != nil {
		return s, err
	}
	now, err := c.Now(ctx, scope)
	return shown(s, now), err
}

func shown(s billing.Subscription, now int64) billing.Subscription {
	s.Pending = s.PendingAt(now)
	return s
}
