package web

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"purser/api/openapi"
	"purser/docs"
	"purser/ids"
	"purser/mail"
	"purser/notify/delivery"
	"purser/payments/cashier"
	"purser/static"
	"purser/store"
	"purser/tenancy"
	"purser/tenancy/vault"
	settingspage "purser/views/page/settings"
)

// Options configures a Site.
type Options struct {
	BaseURL string // the public URL, such as "http://127.0.0.1:8080"
	Version string
	Program string // the name of the command in instructions; "purser" if empty
	// Document is the served OpenAPI document, for the reference.
	Document *openapi.Object
	Store    *store.Store
	// Usage answers the check page. Without it the page fails.
	Usage *store.Engine
	Log   *slog.Logger
	// Now is the clock, in milliseconds since 1970; the database's if nil.
	Now func() int64
	// Vault seals the seeds of authenticators.
	Vault *vault.Vault
	// Mail sends invitations, reset links and notices. Nil for a server without SMTP.
	Mail *mail.Outbox
	// Cashier calls the payment providers. Nil for a server without payments.
	Cashier *cashier.Cashier
	// Deliveries sends notifications. Nil for a server without webhooks.
	Deliveries *delivery.Dispatcher
	// NewOrganizations lets everyone with an account create organizations.
	NewOrganizations bool
	// RequireFactor requires an authenticator of every member, in all organizations.
	RequireFactor bool
	// Sandbox returns the API access to an application's sandbox account; if nil, it is
	// not shown.
	Sandbox func(app ids.ID) settingspage.SandboxAPI
	// Controls operate the payments sandbox; nil for a server without one.
	Controls *SandboxControls
	// SandboxOff reports that this server has no payments sandbox.
	SandboxOff bool
	// TrustedProxies are networks whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// Timeout is the deadline of a request; 15 seconds if zero.
	Timeout time.Duration
}

// ExportWallet writes everything about one identity as JSON to what begin returns. The API
// has it.
type ExportWallet func(ctx context.Context, scope tenancy.Scope, identity string, begin func() io.Writer) error

// SetExportWallet lets members download what is known of a customer. It is set before the
// first request: the API needs the site, and the site the API.
func (s *Site) SetExportWallet(export ExportWallet) { s.exportWallet = export }

// Site serves the dashboard and the documentation.
type Site struct {
	*core
	usage     *store.Engine
	reference func() (*docs.Reference, error)
	docsIndex func() (*docs.Index, error)
	examples  func() (map[string][]docs.Variant, error)
	passwords *passwords
	networks  *networks
	alarm     alarm
	setUp     atomic.Bool // there is an account
	delivery  *delivery.Dispatcher
	sandbox   func(app ids.ID) settingspage.SandboxAPI
	controls  *SandboxControls

	exportWallet     ExportWallet
	newOrganizations bool
}

// New creates the site. It needs no closing.
func New(options Options) *Site {
	s := &Site{
		core: newCore(coreOptions{
			BaseURL: options.BaseURL, Version: options.Version, Program: options.Program, Store: options.Store, Log: options.Log, Now: options.Now,
			Vault: options.Vault, Mail: options.Mail, Cashier: options.Cashier, RequireFactor: options.RequireFactor,
			HasSandbox: options.Controls != nil, SandboxOff: options.SandboxOff, TrustedProxies: options.TrustedProxies, Timeout: options.Timeout,
		}),
		usage:     options.Usage,
		reference: sync.OnceValues(func() (*docs.Reference, error) { return docs.ReadReference(options.Document) }),
		passwords: newPasswords(),
		networks:  newNetworks(),
		delivery:  options.Deliveries,
		sandbox:   options.Sandbox,
		controls:  options.Controls,

		newOrganizations: options.NewOrganizations,
	}
	s.examples = sync.OnceValues(func() (map[string][]docs.Variant, error) {
		reference, err := s.reference()
		if err != nil {
			return nil, err
		}
		return reference.Examples(s.server.Address)
	})
	s.docsIndex = sync.OnceValues(func() (*docs.Index, error) {
		reference, err := s.reference()
		if err != nil {
			return nil, err
		}
		return docs.NewIndex(reference)
	})
	return s
}

// Register mounts all routes of the site.
func (s *Site) Register(e *echo.Echo) {
	s.mount(e, s.routes())
	e.Match([]string{http.MethodGet, http.MethodHead}, static.Prefix+"*", echo.WrapHandler(static.Handler()), s.protect)
	for _, path := range static.FixedPaths() {
		e.Match([]string{http.MethodGet, http.MethodHead}, path, echo.WrapHandler(static.FixedHandler()), s.protect)
	}
}
