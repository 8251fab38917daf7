package sandbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"purser/billing/sandbox/engine"
	"purser/ids"
)

// Options is all that the sandbox needs from outside.
type Options struct {
	Accounts Accounts
	BaseURL  string // the public address of the server, for links
	Secret   []byte // makes the keys; the same on every node, 32 bytes or more

	// Admits reports whether the application pays through the sandbox. A live
	// application must never be admitted.
	Admits func(ctx context.Context, app ids.ID) (bool, error)
	// Seller is the name under which the application sells; nil shows the account.
	Seller func(ctx context.Context, app ids.ID) (string, error)
	// Authorize finds the application of a request to the control surface, whose
	// key may write subscriptions.
	Authorize func(*http.Request) (ids.ID, error)
	// Deliver sends a webhook. An error, such as a status that is not 2xx, means
	// that it is sent again later.
	Deliver func(ctx context.Context, url string, header http.Header, body []byte) error
	// Settle waits until the application's delivered webhooks are applied.
	Settle func(ctx context.Context, app ids.ID) error

	// SlowDown delays an answer to a request that leads nowhere: strangers send them
	// as fast as they are answered. Nil delays nothing.
	SlowDown func(ctx context.Context)

	// Limit takes one request of the application's rate, says in the reply's header what is
	// left, and gives how long to wait when nothing was. Nil limits nothing.
	Limit func(app ids.ID, header http.Header) (wait time.Duration)

	// OwnEndpoints lets API clients add endpoints at this server's own addresses, which
	// is for a cashier that uses the sandbox as an account at Stripe. Without it only
	// Connect adds them: an address that no webhook reaches would be tried for days.
	OwnEndpoints bool

	Log    *slog.Logger
	Now    func() time.Time // the real clock, the same on every node
	Random io.Reader        // crypto/rand when nil
}

// Server is the sandbox of every application.
type Server struct {
	options   Options
	handler   http.Handler
	flushes   locks
	changes   locks
	reads     locks
	faults    faults
	inUse     keysInUse
	dirty     dirtyApps
	pageSlots gate
	senders   gate
	sending   sync.WaitGroup // of senders
}

// New makes the sandbox. Run must be running for webhooks to leave by themselves.
func New(options Options) *Server {
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.SlowDown == nil {
		options.SlowDown = func(context.Context) {}
	}
	if len(options.Secret) < 32 || options.Accounts == nil || options.Admits == nil || options.Authorize == nil ||
		options.Deliver == nil || options.Now == nil || options.Settle == nil || options.Log == nil {
		panic("sandbox: an option is missing, or the secret is shorter than 32 bytes")
	}
	options.BaseURL = strings.TrimRight(options.BaseURL, "/")
	s := &Server{options: options, changes: locks{width: 1}, flushes: locks{width: 1}, reads: locks{width: maxReads}, pageSlots: make(gate, maxPageRequests), senders: make(gate, maxSenders), dirty: dirtyApps{waiting: map[ids.ID]bool{}, signal: make(chan struct{}, 1)}}
	mux := http.NewServeMux()
	s.stripeRoutes(mux)
	s.controlRoutes(mux)
	s.pageRoutes(mux)
	s.handler = mux
	return s
}

// Prefix is where Handler must be mounted.
const Prefix = "/sandbox/"

// Handler answers everything under Prefix.
func (s *Server) Handler() http.Handler { return s.handler }

// Internal answers as Handler does, for callers in this process: an application that has
// used up its rate must not keep Purser from its own account.
func (s *Server) Internal() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), internalKey{}, true)))
	})
}

type internalKey struct{}

// StripeHandler answers Stripe's API at the root of an address of its own, for clients
// that accept no path before /v1.
func (s *Server) StripeHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		below := r.Clone(r.Context())
		below.URL.Path, below.URL.RawPath = stripePrefix+r.URL.Path, ""
		if r.URL.RawPath != "" {
			below.URL.RawPath = stripePrefix + r.URL.RawPath
		}
		s.handler.ServeHTTP(w, below)
	})
}

// StripeURL is the base address that Stripe's client is given.
func (s *Server) StripeURL() string { return s.options.BaseURL + stripePrefix }

// Connection is what it takes to be a client of the application's world.
type Connection struct {
	URL            string
	Key            string
	WebhookSecrets []string // the current one first
}

// Connect makes sure that the application's webhooks go to the address, and says
// how to reach its world. It can be called any number of times.
func (s *Server) Connect(ctx context.Context, app ids.ID, webhookURL string, types []string) (Connection, error) {
	connection := Connection{URL: s.StripeURL(), Key: s.Key(app)}
	err := s.update(ctx, app, func(account *engine.Account, env engine.Env) (err error) {
		endpoint, known := account.EndpointAt(webhookURL)
		if known && slices.Equal(endpoint.Types, types) {
			connection.WebhookSecrets = endpoint.Secrets(env.Now)
			return errUnchanged
		}
		if known {
			endpoint.Types = types
		} else if endpoint, err = account.CreateEndpoint(env, engine.NewEndpoint{URL: webhookURL, Types: types}); err != nil {
			return err
		}
		connection.WebhookSecrets = endpoint.Secrets(env.Now)
		return nil
	})
	return connection, err
}

// RollSecret gives the application's webhooks a new secret. The old one signs
// too for the overlap.
func (s *Server) RollSecret(ctx context.Context, app ids.ID, webhookURL string, overlap time.Duration) error {
	return s.update(ctx, app, func(account *engine.Account, env engine.Env) error {
		endpoint, known := account.EndpointAt(webhookURL)
		if !known {
			return engine.NotFound("webhook endpoint", webhookURL)
		}
		endpoint.RollSecret(env, engine.Time(overlap/time.Second))
		return nil
	})
}

// locks is one lock for each application that uses one now. Width is how many hold it
// at a time.
type locks struct {
	width int
	mu    sync.Mutex
	all   map[ids.ID]*appLock
}

type appLock struct {
	held  chan struct{}
	users int // holding it or waiting for it
}

// lock waits for the application's lock until the context ends.
func (l *locks) lock(ctx context.Context, app ids.ID) (unlock func(), err error) {
	l.mu.Lock()
	if l.all == nil {
		l.all = map[ids.ID]*appLock{}
	}
	one := l.all[app]
	if one == nil {
		one = &appLock{held: make(chan struct{}, l.width)}
		l.all[app] = one
	}
	one.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.all, app)
		}
	}
	select {
	case one.held <- struct{}{}:
		return func() { <-one.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, fmt.Errorf("sandbox: the account is in use: %w", ctx.Err())
	}
}
