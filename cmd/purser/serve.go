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
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"purser/api"
	"purser/store"
	"purser/web"
)

const (
	// A client that sends or reads slower than this is not a client.
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 20 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	// The heap is small and most of it is short-lived: collecting it a fourth as
	// often costs some megabytes and saves a tenth of the processor.
	gcPercent = 400
	// How long requests under way have to finish once the server is told to stop.
	shutdownTimeout = 25 * time.Second
)

func serve(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	c, err := readConfig(environ)
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.StringVar(&c.addr, "addr", c.addr, "address to listen on (PURSER_ADDR)")
	withDemo := flags.Bool("demo", false, "fill an empty database with an organization to look around in")
	if err := c.parse(flags, args); err != nil {
		return err
	}
	if err := c.checkAddr(); err != nil {
		return err
	}
	secret, err := loadSecret(c)
	if err != nil {
		return err
	}
	lines := newLogWriter(stderr)
	defer lines.close()
	log := lines.logger()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	// Before the database: a taken address is found at once.
	listener, err := net.Listen("tcp", c.addr)
	if err != nil {
		return fmt.Errorf("--addr (PURSER_ADDR): %w", err)
	}
	defer listener.Close()
	db, err := openDatabase(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	if err := db.CheckDurable(ctx); err != nil {
		return err
	}
	if c.baseURL == "" {
		c.baseURL = "http://" + listener.Addr().String()
	}
	usage, err := db.OpenUsage(ctx, store.UsageOptions{Log: log})
	if err != nil {
		return err
	}
	defer usage.Close() // before the connections that others use, after the last request
	defer db.KeepFigures(log)()
	meters := newMetrics()
	meters.watch(usage)
	stopMetrics, err := meters.serve(c.metricsAddr, log)
	if err != nil {
		return err
	}
	defer stopMetrics()
	document, err := api.Document()
	if err != nil {
		return err
	}
	seals, err := secret.vault(c.previousKey)
	if err != nil {
		return err
	}
	payments, err := newPayments(c, db.Store, seals, secret, log)
	if err != nil {
		return err
	}
	if *withDemo {
		if err := seedDemo(ctx, c, db.Store, usage, payments, stdout); err != nil {
			return err
		}
	}
	site := newSite(c, db, usage, seals, payments.cashier, document, log)
	app, err := newApp(c, db, usage, meters, secret, site, payments, log)
	if err != nil {
		return err
	}
	if err := greet(ctx, stdout, c.baseURL, site); err != nil {
		return err
	}
	verifications := verifier{
		store: db.Store, new: c.verifyNew, all: c.verifyAll, limit: c.verifyLimit, pause: verifyPause, now: time.Now,
		meters: newVerifyMetrics(meters.registry), log: log,
	}
	loops := []func(context.Context) error{payments.run, verifications.keep}
	if c.previousKey != "" {
		loops = append(loops, rotation{db.Store, payments.cashier, seals, log}.keep)
	}
	return serveWith(ctx, listener, app, loops, log)
}

// serveWith serves while the loops run. They end after the last request, which may
// still need them, and the server ends when one fails.
func serveWith(ctx context.Context, listener net.Listener, app http.Handler, loops []func(context.Context) error, log *slog.Logger) error {
	group, serving := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	for _, loop := range loops {
		group.Go(func() error { return loop(running) })
	}
	group.Go(func() error {
		defer stop()
		return serveUntilDone(serving, listener, app, log)
	})
	return group.Wait()
}

// newApp mounts the interface and the pages on one echo app.
func newApp(c config, db *database, usage *store.Usage, meters *metrics, secret secret, site *web.Site, payments *payments, log *slog.Logger) (*echo.Echo, error) {
	server, err := api.New(api.Options{
		Store:     db.Store,
		Usage:     usage,
		Cashier:   payments.cashier,
		Log:       log,
		CursorKey: secret.derive("cursors"),
		RateLimit: c.rateLimit,
		Observe:   meters.observe,
		ErrorPage: site.RenderError,
	})
	if err != nil {
		return nil, err
	}
	app := server.Echo()
	site.Register(app)
	payments.mount(app, server)
	return app, nil
}

// serveUntilDone answers requests until the context ends, then finishes those
// that are under way.
func serveUntilDone(ctx context.Context, listener net.Listener, app http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler:           app,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	log.Info("stopping")
	finish, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(finish); err != nil {
		return fmt.Errorf("some requests did not finish: %w", err)
	}
	return nil
}
