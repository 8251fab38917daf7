package web

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/alexedwards/scs/v2"

	"purser/mail"
	"purser/payments/cashier"
	"purser/store"
	"purser/tenancy/vault"
	accountpage "purser/views/page/account"
)

// coreOptions configures a core.
type coreOptions struct {
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

// core is what all pages share. Packages of pages embed it.
type core struct {
	server        accountpage.Server
	https         bool
	store         *store.Store
	log           *slog.Logger
	now           func() int64
	vault         *vault.Vault
	cashier       *cashier.Cashier
	mail          *mail.Outbox
	requireFactor bool
	hasSandbox    bool
	sandboxOff    bool

	timeout     time.Duration
	sessions    *scs.SessionManager
	crossOrigin *http.CrossOriginProtection
	proxies     []netip.Prefix
	exports     chan struct{} // slots of concurrent exports
	// Each logs once that a sender's X-Forwarded-For is ignored.
	forwardedPrivate, forwardedPublic sync.Once
}

// newCore creates a core. It needs no closing.
func newCore(options coreOptions) *core {
	s := &core{
		server: accountpage.Server{
			Version: options.Version,
			Address: strings.TrimRight(options.BaseURL, "/"),
			Program: cmp.Or(options.Program, "purser"),
		},
		https:         strings.HasPrefix(options.BaseURL, "https://"),
		store:         options.Store,
		log:           options.Log,
		now:           options.Now,
		vault:         options.Vault,
		cashier:       options.Cashier,
		mail:          options.Mail,
		requireFactor: options.RequireFactor,
		hasSandbox:    options.HasSandbox,
		sandboxOff:    options.SandboxOff,
		timeout:       cmp.Or(options.Timeout, pageTimeout),
		crossOrigin:   http.NewCrossOriginProtection(),
		proxies:       options.TrustedProxies,
		exports:       make(chan struct{}, exportsAtOnce),
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
