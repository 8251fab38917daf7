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

	"purser/ids"
	"purser/payments/sandbox/engine"
	"purser/tenancy/turns"
)

// Options are the dependencies and settings of the sandbox.
type Options struct {
	Accounts Accounts
	BaseURL  string // the public address of the server, for links
	Public   bool   // other machines reach the server, even if BaseURL is a loopback address
	Secret   []byte // derives the keys; the same on every node, at least 32 bytes

	// Admits reports whether the application uses the sandbox. It must be false for
	// live applications.
	Admits func(ctx context.Context, app ids.ID) (bool, error)
	// Seller returns the name that the pages show; nil shows the account id.
	Seller func(ctx context.Context, app ids.ID) (string, error)
	// Authorize returns the application of a request to the control API, whose key
	// must have permission to write subscriptions.
	Authorize func(*http.Request) (ids.ID, error)
	// Deliver sends a webhook. After an error, such as a status other than 2xx, it is
	// retried later.
	Deliver func(ctx context.Context, url string, header http.Header, body []byte) error
	// Drain waits until the application's delivered webhooks are applied.
	Drain func(ctx context.Context, app ids.ID) error

	// SlowDown delays the response to an invalid page request, to slow down scanners.
	// Nil delays nothing.
	SlowDown func(ctx context.Context)

	// Limit counts a request against the application's rate limit, sets the rate limit
	// headers, and returns how long to wait when the limit is reached. Nil limits nothing.
	Limit func(app ids.ID, header http.Header) (wait time.Duration)

	// CountReply counts a response until it is sent, or refuses it while the application has
	// too many that its clients don't read. Nil counts nothing.
	CountReply func(app ids.ID, size int64) (sent func(), err error)

	// Lookup bounds the lookup of a page's token, which anyone can make up, and reports whether
	// it was found. Nil bounds nothing.
	Lookup func(r *http.Request, token string, find func(context.Context) (found bool, err error)) (found bool, err error)

	// OwnEndpoints lets API clients create endpoints at this server's own addresses, for
	// a cashier that uses the sandbox like a Stripe account. Otherwise only Connect
	// creates them: deliveries to an unused address would be retried for days.
	OwnEndpoints bool

	Log    *slog.Logger
	Now    func() time.Time // the real clock, the same on every node
	Random io.Reader        // crypto/rand when nil
}

// Server is the sandbox of every application.
type Server struct {
	options   Options
	handler   http.Handler
	flushes   *turns.Turns[ids.ID]
	changes   *turns.Turns[ids.ID]
	reads     *turns.Turns[ids.ID]
	faults    faults
	inUse     keysInUse
	dirty     dirtyApps
	pageSlots gate
	senders   gate
	sending   sync.WaitGroup // of senders
}

// New creates the sandbox. Webhooks are sent in the background only while Run runs.
func New(options Options) *Server {
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.SlowDown == nil {
		options.SlowDown = func(context.Context) {}
	}
	if options.CountReply == nil {
		options.CountReply = func(ids.ID, int64) (func(), error) { return func() {}, nil }
	}
	if options.Lookup == nil {
		options.Lookup = func(r *http.Request, _ string, find func(context.Context) (bool, error)) (bool, error) {
			return find(r.Context())
		}
	}
	if len(options.Secret) < 32 || options.Accounts == nil || options.Admits == nil || options.Authorize == nil ||
		options.Deliver == nil || options.Now == nil || options.Drain == nil || options.Log == nil {
		panic("sandbox: an option is missing, or the secret is shorter than 32 bytes")
	}
	options.BaseURL = strings.TrimRight(options.BaseURL, "/")
	s := &Server{options: options, changes: turns.New[ids.ID](1), flushes: turns.New[ids.ID](1), reads: turns.New[ids.ID](maxReads), pageSlots: make(gate, maxPageRequests), senders: make(gate, maxSenders), dirty: dirtyApps{waiting: map[ids.ID]bool{}, signal: make(chan struct{}, 1)}}
	mux := http.NewServeMux()
	s.stripeRoutes(mux)
	s.controlRoutes(mux)
	s.pageRoutes(mux)
	s.handler = mux
	return s
}

// Prefix is the path that Handler must be mounted at.
const Prefix = "/sandbox/"

// Handler serves all paths under Prefix.
func (s *Server) Handler() http.Handler { return s.handler }

// Internal is Handler without the rate limit, for callers in this process: Purser's own
// requests must not fail when the application has reached its limit.
func (s *Server) Internal() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), internalKey{}, true)))
	})
}

type internalKey struct{}

// StripeHandler serves Stripe's API at the root, for clients that accept no path prefix
// before /v1.
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

// StripeURL is the base URL for Stripe's client.
func (s *Server) StripeURL() string { return s.options.BaseURL + stripePrefix }

// Connection holds the credentials of a client of the application's account.
type Connection struct {
	URL           string
	Key           string
	WebhookSecret string
}

// Connect ensures that the application's webhooks are sent to the URL, and returns the
// credentials of its account. It is idempotent, and only reads when nothing is to be
// changed: every webhook that arrives is verified with its secret.
func (s *Server) Connect(ctx context.Context, app ids.ID, webhookURL string, types []string) (Connection, error) {
	connection := Connection{URL: s.StripeURL(), Key: s.Key(app)}
	err := s.read(ctx, app, func(account *engine.Account, _ engine.Env) error {
		if endpoint, known := account.EndpointAt(webhookURL); known && slices.Equal(endpoint.Types, types) {
			connection.WebhookSecret = s.signingSecret(endpoint.Outside, endpoint.Secret)
		}
		return nil
	})
	if err != nil || connection.WebhookSecret != "" {
		return connection, err
	}
	err = s.update(ctx, app, func(account *engine.Account, env engine.Env) (err error) {
		endpoint, known := account.EndpointAt(webhookURL)
		if known {
			endpoint.Types = types
		} else if endpoint, err = account.CreateEndpoint(env, engine.NewEndpoint{URL: webhookURL, Types: types}); err != nil {
			return err
		}
		connection.WebhookSecret = s.signingSecret(endpoint.Outside, endpoint.Secret)
		return nil
	})
	return connection, err
}

// waitFor waits until it is the application's turn.
func waitFor(ctx context.Context, one *turns.Turns[ids.ID], app ids.ID) (done func(), err error) {
	if done, err = one.Take(ctx, app); err != nil {
		return nil, fmt.Errorf("sandbox: the account is in use: %w", err)
	}
	return done, nil
}
