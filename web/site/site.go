package site

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/alexedwards/scs/v2"

	"purser/httpd"
	"purser/ids"
	"purser/mail"
	"purser/payments/cashier"
	"purser/store"
	"purser/tenancy/vault"
	accountpage "purser/views/page/account"
)

// Options configures a Site.
type Options struct {
	BaseURL string // the public URL, such as "http://127.0.0.1:8080"
	Version string
	Program string // the name of the command in instructions; "purser" if empty
	Store   *store.Store
	Log     *slog.Logger     // discards if nil
	Now     func() int64     // in milliseconds since 1970; the database's clock if nil
	Vault   *vault.Vault     // seals secrets of users
	Mail    *mail.Outbox     // nil for a server without SMTP
	Cashier *cashier.Cashier // nil for a server without payments
	// RequireFactor requires an authenticator of every member, in all organizations.
	RequireFactor bool
	// HasSandbox reports that members can operate a payments sandbox, SandboxOff that the
	// server has none.
	HasSandbox, SandboxOff bool
	// TrustedProxies are networks whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// Timeout is the deadline of a request; 15 seconds if zero.
	Timeout time.Duration
}

// Site is what all pages share. Packages of pages embed it.
type Site struct {
	Server        accountpage.Server
	HTTPS         bool
	Store         *store.Store
	Log           *slog.Logger
	Now           func() int64
	Vault         *vault.Vault
	Cashier       *cashier.Cashier
	Mail          *mail.Outbox
	RequireFactor bool
	hasSandbox    bool
	SandboxOff    bool

	timeout     time.Duration
	sessions    *scs.SessionManager
	crossOrigin *http.CrossOriginProtection
	proxies     []netip.Prefix
	exports     *httpd.InFlight[ids.ID] // by organization
	// Each logs once that a sender's X-Forwarded-For is ignored.
	forwardedPrivate, forwardedPublic sync.Once
}

// New creates a site. It needs no closing.
func New(options Options) *Site {
	s := &Site{
		Server: accountpage.Server{
			Version: options.Version,
			Address: strings.TrimRight(options.BaseURL, "/"),
			Program: cmp.Or(options.Program, "purser"),
		},
		HTTPS:         strings.HasPrefix(options.BaseURL, "https://"),
		Store:         options.Store,
		Log:           options.Log,
		Now:           options.Now,
		Vault:         options.Vault,
		Cashier:       options.Cashier,
		Mail:          options.Mail,
		RequireFactor: options.RequireFactor,
		hasSandbox:    options.HasSandbox,
		SandboxOff:    options.SandboxOff,
		timeout:       cmp.Or(options.Timeout, pageTimeout),
		crossOrigin:   http.NewCrossOriginProtection(),
		proxies:       options.TrustedProxies,
		exports:       httpd.NewInFlight[ids.ID](exportsAtOnce),
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Now == nil {
		s.Now = func() int64 { return s.Store.Clock().Now() }
	}
	s.sessions = newSessions(s.Store.Auth(), s.Server.Address, s.HTTPS, s.Now)
	return s
}
