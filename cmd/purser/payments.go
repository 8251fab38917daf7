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
	"purser/fault"
	"purser/ids"
	"purser/jobs"
	"purser/notify/delivery"
	"purser/payments/cashier"
	"purser/payments/sandbox"
	"purser/store"
	"purser/store/payments"
	"purser/tenancy"
	"purser/tenancy/vault"
	"purser/web/inbound"
)

// paymentNode is the cashier and the sandbox of this node; the sandbox is the payment
// provider of applications without their own account.
type paymentNode struct {
	queue      *jobs.Queue
	cashier    *cashier.Cashier
	deliveries *delivery.Dispatcher
	sandbox    *sandbox.Server
	store      *store.Store
	baseURL    string
	apiURL     string // of the sandbox's Stripe API
	log        *slog.Logger

	// Both are set by mount.
	api    *api.Server
	server http.Handler
}

func newPayments(c config, db *store.Store, seals *vault.Vault, secret secret, meters *metrics, log *slog.Logger) (p *paymentNode, err error) {
	p = &paymentNode{
		queue: jobs.New(jobs.Options{Store: db, Observe: meters.observeJob, Log: log}),
		store: db, baseURL: c.baseURL, apiURL: sandboxURL(c), log: log,
	}
	p.deliveries = delivery.New(delivery.Options{Store: db, Vault: seals, Jobs: p.queue, Opened: c.webhookNetworks, Keep: time.Duration(c.notificationDays) * 24 * time.Hour, Observe: meters.observeDelivery, Log: log})
	options := cashier.Options{
		Store: db, Vault: seals, BaseURL: c.baseURL, Jobs: p.queue, Log: log, ObserveWebhook: meters.observeWebhook,
		StripeTransport: meters.measureProvider(stripeProvider, http.DefaultTransport),
	}
	if !c.sandboxOff {
		options.Sandbox = p.connect
		options.SandboxTransport = meters.measureProvider(sandboxProvider,
			p.transport(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.sandbox.Internal().ServeHTTP(w, r) })))
	}
	if p.cashier, err = cashier.New(options); err != nil || c.sandboxOff {
		return p, err
	}
	p.sandbox = sandbox.New(sandbox.Options{
		Accounts:   db.SandboxAccounts(),
		BaseURL:    c.baseURL,
		Public:     c.listensOnAll,
		Secret:     secret.derive(sandboxKeys),
		Admits:     p.admits,
		Seller:     p.sellerName,
		Authorize:  p.authorize,
		Deliver:    p.deliver,
		Drain:      p.queue.DrainAll,
		Limit:      func(app ids.ID, header http.Header) time.Duration { return p.api.LimitSandbox(app, header) },
		CountReply: func(app ids.ID, size int64) (func(), error) { return p.api.CountReply(app, size) },
		Lookup: func(r *http.Request, token string, find func(context.Context) (bool, error)) (bool, error) {
			return p.api.Lookup(r, "sandbox page", token, find)
		},
		SlowDown: func(ctx context.Context) { p.api.SlowDown(ctx) },
		Now:      db.Clock().Time,
		Log:      log,
	})
	return p, nil
}

// mount adds the webhook and sandbox routes. They have their own limits and
// authentication, apart from the API and the dashboard.
func (p *paymentNode) mount(app *echo.Echo, server *api.Server) {
	p.api, p.server = server, app
	app.POST(inbound.Path, inbound.Receive(p.cashier, server.NetworkOf, p.log))
	if p.sandbox == nil {
		return
	}
	app.Any(sandbox.Prefix+"*", echo.WrapHandler(withTimeout(p.sandbox.Handler())))
}

// withTimeout gives requests their own deadline. A client that disconnects does not
// cancel its queries: pgx closes the connection of a cancelled query.
func withTimeout(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), sandboxTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// run advances the sandbox and runs jobs until the context ends.
func (p *paymentNode) run(ctx context.Context) error {
	loops, ctx := errgroup.WithContext(ctx)
	if p.sandbox != nil {
		loops.Go(func() error { return p.sandbox.Run(ctx) })
	}
	loops.Go(func() error { return p.queue.Run(ctx) })
	if err := loops.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// connect creates the connection of an application to its sandbox account.
func (p *paymentNode) connect(ctx context.Context, app ids.ID, webhookURL string, types []string) (cashier.Sandbox, error) {
	made, err := p.sandbox.Connect(ctx, app, webhookURL, types)
	return cashier.Sandbox(made), err
}

// admits reports whether an application uses the sandbox: until an account is connected,
// and never in live mode.
func (p *paymentNode) admits(ctx context.Context, app ids.ID) (bool, error) {
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
	connection, err := p.store.PaymentAccounts(scope).Connection(ctx)
	if fault.Is(err, fault.PaymentsNotConfigured) {
		return true, nil
	}
	return connection.Mode == payments.SandboxConnection, err
}

// sellerName is the application's name on payment pages.
func (p *paymentNode) sellerName(ctx context.Context, app ids.ID) (string, error) {
	scope, err := p.store.Directory().ScopeOf(ctx, app)
	if err != nil {
		return "", err
	}
	application, err := p.store.Org(scope.OrgID).Application(ctx, app)
	return application.Name, err
}

// authorize returns the application whose sandbox a request may control.
func (p *paymentNode) authorize(r *http.Request) (ids.ID, error) {
	scope, err := p.api.Authorize(r, tenancy.SubscriptionsWrite)
	return scope.AppID, err
}

// deliver sends a sandbox webhook to this server's own endpoint. One for a former base
// URL counts as delivered: the application has an endpoint at the current URL too, and
// retries would delay its payments.
func (p *paymentNode) deliver(ctx context.Context, address string, header http.Header, body []byte) error {
	if !strings.HasPrefix(address, p.baseURL+cashier.WebhookPath) {
		p.log.Warn("sandbox webhook to a former address of this server dropped", "url", address)
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = header
	answer, err := p.transport(p.server).RoundTrip(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the webhook endpoint answered %s", answer.Status)
	}
	return nil
}

// transport calls a handler of this server. It strips the path prefix that a proxy in
// front would strip.
func (p *paymentNode) transport(handler http.Handler) http.RoundTripper {
	if public, err := url.Parse(p.baseURL); err == nil {
		handler = http.StripPrefix(strings.TrimSuffix(public.Path, "/"), handler)
	}
	return inProcess{handler}
}
