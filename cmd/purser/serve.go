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
	if err := c.parse(flags, args, stderr); err != nil {
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
	meters := newMetrics()
	meters.watch(usage)
	stopMetrics, err := meters.serve(c.metricsAddr, log)
	if err != nil {
		return err
	}
	defer stopMetrics()
	app, err := newApp(c, db, usage, meters, secret, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Purser is running. Open %s in a browser.\nStop it with Ctrl-C.\n", c.baseURL)
	return serveUntilDone(ctx, listener, app, log)
}

// newApp mounts the interface and the pages on one echo app.
func newApp(c config, db *database, usage *store.Usage, meters *metrics, secret secret, log *slog.Logger) (*echo.Echo, error) {
	site := web.New(web.Options{BaseURL: c.baseURL, Version: version, Program: os.Args[0]})
	server, err := api.New(api.Options{
		Store:     db.Store,
		Usage:     usage,
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
