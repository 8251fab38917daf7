package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"purser/api"
	"purser/billing/cashier"
	"purser/billing/sandbox"
	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/tenancy/vault"
	"purser/web"
)

// payments is the cashier, and the sandbox that is the payment provider of
// applications without an account of their own.
type payments struct {
	cashier *cashier.Cashier
	sandbox *sandbox.Server
	store   *store.Store
	baseURL string
	apiURL  string // of the sandbox's Stripe API
	log     *slog.Logger

	// Both come with mount: the cashier is part of what is mounted.
	api    *api.Server
	server http.Handler
}

func newPayments(c config, db *store.Store, seals *vault.Vault, secret secret, log *slog.Logger) (p *payments, err error) {
	p = &payments{store: db, baseURL: c.baseURL, apiURL: sandboxURL(c), log: log}
	options := cashier.Options{Store: db, Vault: seals, BaseURL: c.baseURL, Log: log}
	if !c.sandboxOff {
		options.Sandbox = p.connect
		options.SandboxTransport = p.within(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.sandbox.Internal().ServeHTTP(w, r) }))
	}
	if p.cashier, err = cashier.New(options); err != nil || c.sandboxOff {
		return p, err
	}
	p.sandbox = sandbox.New(sandbox.Options{
		Accounts:  db.SandboxAccounts(),
		BaseURL:   c.baseURL,
		Secret:    secret.derive(sandboxKeys),
		Admits:    p.admits,
		Seller:    p.seller,
		Authorize: p.authorize,
		Deliver:   p.deliver,
		Settle:    p.cashier.DrainAll,
		Limit:     func(app ids.ID, header http.Header) time.Duration { return p.api.LimitSandbox(app, header) },
		SlowDown:  func(ctx context.Context) { p.api.SlowDown(ctx) },
		Now:       db.Clock().Time,
		Log:       log,
	})
	return p, nil
}

// mount adds what providers and payers see. None of it is the API's or the
// dashboard's: it has its own limits and proofs.
func (p *payments) mount(app *echo.Echo, server *api.Server) {
	p.api, p.server = server, app
	app.POST(web.WebhookPath, web.ReceiveWebhooks(p.cashier, server.NetworkOf, p.log))
	if p.sandbox == nil {
		return
	}
	app.Any(sandbox.Prefix+"*", echo.WrapHandler(detached(p.sandbox.Handler())))
}

// sandboxTimeout is how long a request to the sandbox may take.
const sandboxTimeout = 15 * time.Second

// detached serves requests with a deadline of their own. A caller that hangs up does
// not cancel its queries: pgx closes the connection of a cancelled query.
func detached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), sandboxTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// run lets time pass in the sandbox and works off what the cashier has to do,
// until the context ends.
func (p *payments) run(ctx context.Context) error {
	loops, ctx := errgroup.WithContext(ctx)
	if p.sandbox != nil {
		loops.Go(func() error { return p.sandbox.Run(ctx) })
	}
	loops.Go(func() error { return p.cashier.Run(ctx) })
	if err := loops.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// connect makes an application a client of its sandbox.
func (p *payments) connect(ctx context.Context, app ids.ID, webhookURL string, types []string) (cashier.Sandbox, error) {
	made, err := p.sandbox.Connect(ctx, app, webhookURL, types)
	return cashier.Sandbox(made), err
}

// admits reports whether an application pays through the sandbox. It is so until
// an account is connected, and never for a live one.
func (p *payments) admits(ctx context.Context, app ids.ID) (bool, error) {
	scope, err := p.store.Directory().ScopeOf(ctx, app)
	if fault.Is(err, fault.PathNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	application, err := p.store.Org(scope.OrgID).Application(ctx, app)
	if err != nil || application.Live {
		return false, err
	}
	connection, err := p.store.App(scope).Connection(ctx)
	if fault.Is(err, fault.PaymentsNotConfigured) {
		return true, nil
	}
	return connection.Mode == store.SandboxConnection, err
}

// seller is the name of an application, which payers see.
func (p *payments) seller(ctx context.Context, app ids.ID) (string, error) {
	scope, err := p.store.Directory().ScopeOf(ctx, app)
	if err != nil {
		return "", err
	}
	application, err := p.store.Org(scope.OrgID).Application(ctx, app)
	return application.Name, err
}

// authorize finds whose sandbox a request may steer.
func (p *payments) authorize(r *http.Request) (ids.ID, error) {
	scope, err := p.api.Authorize(r, tenancy.SubscriptionsWrite)
	return scope.AppID, err
}

// deliver brings a webhook of the sandbox to this server's own ingress. One for an
// address that this server had before counts as accepted: the application has an endpoint
// at the current address too, and retries would delay its payments.
func (p *payments) deliver(ctx context.Context, address string, header http.Header, body []byte) error {
	if !strings.HasPrefix(address, p.baseURL+"/webhooks/") {
		p.log.Warn("sandbox webhook to a former address of this server dropped", "url", address)
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = header
	answer, err := p.within(p.server).RoundTrip(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the ingress answers %s", answer.Status)
	}
	return nil
}

// within is a transport to a handler of this server. What a proxy in front would
// take off the path is taken off here.
func (p *payments) within(handler http.Handler) http.RoundTripper {
	if public, err := url.Parse(p.baseURL); err == nil {
		handler = http.StripPrefix(strings.TrimSuffix(public.Path, "/"), handler)
	}
	return inProcess{handler}
}
