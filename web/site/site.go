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
	Log     *slog.Logger // discards if nil
	Now     func() int64 // in milliseconds since 1970; the database's clock if nil
	// Elapsed is time as rate limits count it: it never goes back, as the database's clock may
	// after a failover. It is httpd.SinceStart if nil.
	Elapsed func() time.Duration
	Vault   *vault.Vault // seals secrets of users
	Mail    *mail.Outbox // nil for a server without SMTP
	Cashier *cashier.Cashier
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
	Options
	Server accountpage.Server
	HTTPS  bool

	// Lookups bounds lookups of sessions and links that the node has not found before.
	Lookups *httpd.Lookups

	sessions    *scs.SessionManager
	stored      sessionStore
	crossOrigin *http.CrossOriginProtection
	exports     *httpd.InFlight[ids.ID] // by organization
	comparisons *httpd.InFlight[ids.ID]
	reports     *httpd.InFlight[ids.ID]
	notices     *httpd.Buckets[ids.ID]
	// Bytes of pages that are not sent yet.
	unsentByUser    *httpd.InFlight[ids.ID]
	unsentByNetwork *httpd.InFlight[netip.Prefix]
	// Each logs once that a sender's X-Forwarded-For is ignored.
	forwardedPrivate, forwardedPublic sync.Once
}

// New creates a site. It needs no closing.
func New(options Options) *Site {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = func() int64 { return options.Store.Clock().Now() }
	}
	if options.Elapsed == nil {
		options.Elapsed = httpd.SinceStart
	}
	options.Timeout = cmp.Or(options.Timeout, pageTimeout)
	s := &Site{
		Options: options,
		Server: accountpage.Server{
			Version: options.Version,
			Address: strings.TrimRight(options.BaseURL, "/"),
			Program: cmp.Or(options.Program, "purser"),
		},
		HTTPS:           strings.HasPrefix(options.BaseURL, "https://"),
		crossOrigin:     http.NewCrossOriginProtection(),
		exports:         httpd.NewInFlight[ids.ID](exportsAtOnce),
		comparisons:     httpd.NewInFlight[ids.ID](comparisonsAtOnce),
		reports:         httpd.NewInFlight[ids.ID](reportsAtOnce),
		unsentByUser:    httpd.NewInFlight[ids.ID](unsentBytes),
		unsentByNetwork: httpd.NewInFlight[netip.Prefix](unsentBytes),
		Lookups:         httpd.NewLookups(httpd.SinceStart),
	}
	s.notices = httpd.NewBuckets[ids.ID](noticeInterval, noticesAtOnce, options.Elapsed)
	s.stored = newSessionStore(s.Store.Auth(), s.Now, s.Lookups)
	s.sessions = newSessions(s.stored, s.Server.Address, s.HTTPS)
	return s
}
