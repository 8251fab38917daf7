package web

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"

	"purser/billing/cashier"
	"purser/docs"
	"purser/ids"
	"purser/static"
	"purser/store"
	"purser/tenancy/vault"
	"purser/views/page"
)

// Options is what the site says of the server that it is part of, and what it
// works with.
type Options struct {
	BaseURL string // the public address, such as "http://127.0.0.1:8080"
	Version string
	Program string // how people call the command here; "purser" when empty
	// Document is the OpenAPI document that the server serves, for the reference.
	Document []byte
	Store    *store.Store
	// Usage answers why a use is denied. Without it nobody can ask.
	Usage *store.Engine
	Log   *slog.Logger
	// Now is the clock, in milliseconds since 1970; the database's when nil.
	Now func() int64
	// Vault seals the seeds of authenticators.
	Vault *vault.Vault
	// Cashier talks to the payment providers. Nil for a server that takes no payments.
	Cashier *cashier.Cashier
	// NewOrganizations lets everyone with an account create organizations.
	NewOrganizations bool
	// RequireFactor lets members act only with an authenticator, in every organization.
	RequireFactor bool
	// Sandbox is how a program reaches an application's account in the payments sandbox;
	// nil shows nothing of it.
	Sandbox func(app ids.ID) page.SandboxAPI
	// SandboxOff says that this server has no payments sandbox.
	SandboxOff bool
	// TrustedProxies are the networks of those who may say for whom they call.
	TrustedProxies []netip.Prefix
	// Timeout is how long one request may take; 15 seconds when zero.
	Timeout time.Duration
}

// Site answers people.
type Site struct {
	server      page.Server
	https       bool
	store       *store.Store
	usage       *store.Engine
	log         *slog.Logger
	now         func() int64
	timeout     time.Duration
	reference   func() (*docs.Reference, error)
	sessions    *scs.SessionManager
	crossOrigin *http.CrossOriginProtection
	passwords   *passwords
	networks    *networks
	proxies     []netip.Prefix
	// Each says once that a sender's X-Forwarded-For is ignored.
	forwardedPrivate, forwardedPublic sync.Once

	alarm   alarm
	founded atomic.Bool // there is an account
	vault   *vault.Vault
	cashier *cashier.Cashier
	sandbox func(app ids.ID) page.SandboxAPI
	exports chan struct{} // one for each file that is being made

	sandboxOff       bool
	newOrganizations bool
	requireFactor    bool
}

// New makes the site. It opens nothing and needs no closing.
func New(options Options) *Site {
	s := &Site{
		server: page.Server{
			Version: options.Version,
			Address: strings.TrimRight(options.BaseURL, "/"),
			Program: options.Program,
		},
		https:       strings.HasPrefix(options.BaseURL, "https://"),
		store:       options.Store,
		usage:       options.Usage,
		log:         options.Log,
		now:         options.Now,
		timeout:     cmp.Or(options.Timeout, pageTimeout),
		reference:   sync.OnceValues(func() (*docs.Reference, error) { return docs.ReadReference(options.Document) }),
		crossOrigin: http.NewCrossOriginProtection(),
		passwords:   newPasswords(),
		networks:    newNetworks(),
		proxies:     options.TrustedProxies,
		vault:       options.Vault,
		cashier:     options.Cashier,
		sandbox:     options.Sandbox,
		sandboxOff:  options.SandboxOff,
		exports:     make(chan struct{}, exportsAtOnce),

		newOrganizations: options.NewOrganizations,
		requireFactor:    options.RequireFactor,
	}
	if s.server.Program == "" {
		s.server.Program = "purser"
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = func() int64 { return s.store.Clock().Now() }
	}
	s.sessions = newSessions(s.store.Auth(), s.server.Address, s.https, s.now)
	return s
}

// Register mounts the whole surface of the site.
func (s *Site) Register(e *echo.Echo) {
	s.mount(e, s.routes())
	e.Match([]string{http.MethodGet, http.MethodHead}, static.Prefix+"*", echo.WrapHandler(static.Handler()), s.protect)
}

// welcome leads who is signed in to their organizations, and tells everybody else
// what this is.
func (s *Site) welcome(v *visit) (answer, error) {
	if v.isSignedIn() {
		return redirect("/o"), nil
	}
	founded, err := s.isFounded(v.context)
	return show(page.Welcome(page.Start{Server: s.server, NotSetUp: !founded})), err
}

// gallery shows every component in all its states.
func (s *Site) gallery(v *visit) (answer, error) {
	return show(page.Gallery(page.GallerySample{Query: v.query("q"), Live: v.query("live") != ""})), nil
}
