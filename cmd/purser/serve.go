package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"purser/api"
	"purser/httpd"
	"purser/store"
	"purser/tenancy/vault"
	"purser/web"
)

// Timeouts for reading a request, writing a response, rendering a page and a request to the
// sandbox. Variables only for tests on a busy machine.
var (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	pageTimeout       = 15 * time.Second
	writeTimeout      = 30 * time.Second
	sandboxTimeout    = 15 * time.Second
)

const (
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 32 << 10
	// The heap is small and short-lived: collecting it a fourth as often costs some
	// megabytes and saves a tenth of the CPU.
	gcPercent = 400
	// How long requests in flight have to finish once the listener is closed: longer
	// than any may take. With the default drain it stays below the 30 s after which
	// orchestrators kill the process.
	shutdownTimeout = 20 * time.Second
)

func serve(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	c, withDemo, err := readServeConfig(args, environ)
	if err != nil {
		return err
	}
	lines := newLogWriter(stderr, c.logLevel, newRequestLog(c.logSuccesses, c.logRefusals))
	defer lines.close()
	log := lines.log
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	// Settings and addresses come first: a start that they refuse leaves nothing behind.
	traces, err := startTracing(ctx, environ, log)
	if err != nil {
		return err
	}
	defer traces.stop() // after the last request
	listener, err := net.Listen("tcp", c.addr)
	if err != nil {
		return listenError("--addr (PURSER_ADDR)", c.addr, err)
	}
	defer listener.Close()
	stripeListener, err := listenSandbox(c)
	if err != nil {
		return err
	}
	if stripeListener != nil {
		defer stripeListener.Close()
	}
	secret, err := loadSecret(c)
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	if err := db.CheckDurable(ctx); err != nil { // refuses a server that may lose data
		return err
	}
	if secret == "" {
		if secret, err = firstSecret(ctx, c, db.Store); err != nil {
			return err
		}
	}
	seals, err := secret.vault(c.previousKey)
	if err != nil {
		return err
	}
	if err := checkSecret(ctx, c, db.Store, seals); err != nil {
		return err
	}
	if err := warnAtStart(ctx, c, db, log); err != nil {
		return err
	}
	c.setDefaultBaseURL(listener.Addr().String())
	meters := newMetrics()
	meters.traces = traces
	usage, err := db.OpenEngine(ctx, store.EngineOptions{Log: log, ObserveBatch: meters.observeBatch, Tracer: traces.batches})
	if err != nil {
		return err
	}
	defer usage.Close() // after the last request, before the pool is closed
	meters.registerUsage(usage)
	meters.registerDatabase(db.Store, usage, c.verifyIntervals())
	stopMetrics, err := meters.serve(c.metricsAddr, log)
	if err != nil {
		return err
	}
	defer stopMetrics()
	document, err := api.Document()
	if err != nil {
		return err
	}
	if stripeListener != nil {
		c.sandboxAddr = stripeListener.Addr().String() // resolves port 0
	}
	payments, err := newPayments(c, db.Store, seals, secret, meters, log)
	if err != nil {
		return err
	}
	newUsageStats(db.Store, payments.queue, meters, log)
	defer db.Stats().KeepStats(log)() // after the last request, before the pool is closed
	if withDemo {
		if err := seedDemo(ctx, c, db.Store, usage, payments, stdout); err != nil {
			return err
		}
	}
	mails := newMail(c, db.Store, seals, payments.queue, meters, log)
	site := newSite(c, db, usage, seals, payments, mails, document, log)
	app, shell, err := newApp(c, db, usage, meters, secret, site, payments, lines)
	if err != nil {
		return err
	}
	if err := greet(ctx, stdout, c.baseURL, site); err != nil {
		return err
	}
	loops := newLoops(c, db, payments, seals, stripeListener, meters, log)
	return serveWith(ctx, limitConnections(listener, c.maxConnections, c.trustedProxies, log), app, drain{c.drain, shell.StartDrain, payments.api.StopWaiting}, loops, log)
}

// readServeConfig reads the settings from the environment and from the flags.
func readServeConfig(args, environ []string) (c config, withDemo bool, err error) {
	if c, err = readConfig(environ); err != nil {
		return c, false, err
	}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.StringVar(&c.addr, "addr", c.addr, "address to listen on (PURSER_ADDR)")
	flags.BoolVar(&withDemo, "demo", false, "fill an empty database with demo data")
	if err := c.parse(flags, args); err != nil {
		return c, false, err
	}
	if err := c.checkAddr(); err != nil {
		return c, false, err
	}
	return c, withDemo, requireSecret(c)
}

// warnAtStart logs what works and should be changed.
func warnAtStart(ctx context.Context, c config, db *database, log *slog.Logger) error {
	capacity, err := db.Connections(ctx)
	if err != nil {
		return err
	}
	for _, hint := range []string{capacity.Shortage(), c.proxyHint(), c.linkHint()} {
		if hint != "" {
			log.Warn(hint)
		}
	}
	return nil
}

// newLoops are what a node does beside serving requests. stripe is nil without an
// address for the sandbox.
func newLoops(c config, db *database, payments *paymentNode, seals *vault.Vault, stripe net.Listener, meters *metrics, log *slog.Logger) []func(context.Context) error {
	verifications := verifier{
		store: db.Store, new: c.verifyNew, all: c.verifyAll, limit: c.verifyLimit, pause: verifyPause, now: db.Clock().Time,
		slots: verifySlots(verifyAtOnce), meters: newVerifyMetrics(meters.registry), log: log,
	}
	loops := []func(context.Context) error{payments.run, verifications.runPeriodically}
	if stripe != nil {
		loops = append(loops, payments.serveStripe(limitConnections(stripe, c.maxConnections, c.trustedProxies, log), log))
	}
	if c.previousKey != "" {
		loops = append(loops, rotation{db.Store, payments.cashier, payments.deliveries, seals, log}.runPeriodically)
	}
	return loops
}

// serveWith serves while the loops run. They stop after the last request, which may need
// them, and the server stops if one fails.
func serveWith(ctx context.Context, listener *connections, app http.Handler, d drain, loops []func(context.Context) error, log *slog.Logger) error {
	group, serving := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	for _, loop := range loops {
		group.Go(func() error { return loop(running) })
	}
	group.Go(func() error {
		defer stop()
		return serveUntilDone(serving, listener, app, d, log)
	})
	return group.Wait()
}

// newApp mounts the API, the dashboard and the payment routes on one echo app.
func newApp(c config, db *database, usage *store.Engine, meters *metrics, secret secret, site *web.Site, payments *paymentNode, lines *logWriter) (*echo.Echo, *httpd.Server, error) {
	server, err := api.New(api.Options{
		Store:      db.Store,
		Usage:      usage,
		Cashier:    payments.cashier,
		Deliveries: payments.deliveries,
		CursorKey:  secret.derive("cursors"),
		RateLimit:  c.rateLimit,
		BaseURL:    c.baseURL,
		Lookups:    site.Lookups,
		NetworkOf:  site.NetworkOf,
	})
	if err != nil {
		return nil, nil, err
	}
	site.SetExportWallet(server.ExportWallet)
	site.OnRestore(server.ForgetKeys)
	shell := httpd.New(httpd.Options{
		Log: lines.log,
		LogsRequest: func(status int) bool {
			return lines.requests.admits(status, time.Now())
		},
		Ready: func(ctx context.Context) error {
			if err := usage.Ready(ctx); err != nil { // logs the cause too
				return errors.New(store.Reason(err))
			}
			return nil
		},
		MaxBodies: max(1, c.maxConnections/2),
		HTTPS:     strings.HasPrefix(c.baseURL, "https://"),
		NetworkOf: site.NetworkOf,
		Observe:   meters.observe,
		Tracer:    meters.traces.requests,
		ErrorPage: site.RenderError,
	})
	app := shell.Echo()
	server.Register(app)
	site.Register(app)
	payments.mount(app, server)
	return app, shell, nil
}

// drain is the period between SIGTERM and closing the listener, in which load balancers
// notice that the node is not ready.
type drain struct {
	period time.Duration
	start  func() // makes /readyz fail
	stop   func() // ends requests that wait; nil for none
}

// wait continues serving for the period if SIGTERM ended the context.
func (d drain) wait(ctx context.Context, log *slog.Logger) {
	var cause *terminated
	if d.period == 0 || !errors.As(context.Cause(ctx), &cause) {
		return
	}
	log.Info("drain started", "period", d.period.String())
	d.start()
	select {
	case <-time.After(d.period):
	case <-cause.skipDrain:
	}
}

// serveUntilDone serves until the context ends and the drain is over, then finishes the
// requests in flight.
func serveUntilDone(ctx context.Context, listener *connections, app http.Handler, d drain, log *slog.Logger) error {
	server := &http.Server{
		Handler:           app,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	if d.stop != nil {
		server.RegisterOnShutdown(d.stop)
	}
	listener.bind(server)
	log.Info("listening", "address", listener.Addr().String())
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	d.wait(ctx, log)
	log.Info("server stopping")
	return finishRequests(server, shutdownTimeout)
}

// finishRequests waits for the requests in flight, then ends the connections that are left:
// no handler may go on while the pools close.
func finishRequests(server *http.Server, limit time.Duration) error {
	finish, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := server.Shutdown(finish); err != nil {
		return errors.Join(fmt.Errorf("requests were cut off after %s: %w", limit, err), server.Close())
	}
	return nil
}
