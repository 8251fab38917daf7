package main

import (
	"context"
	"fmt"
	"io"

	"purser/api"
	"purser/cmd/purser/demo"
	"purser/httpd"
	"purser/store"
)

// seedDemo fills an empty database through its own API server, without rate limits or
// logs: these requests are not the server's.
func seedDemo(ctx context.Context, c config, db *store.Store, usage *store.Engine, payments *paymentNode, out io.Writer) error {
	server, err := api.New(api.Options{Store: db, Usage: usage, Cashier: payments.cashier, Deliveries: payments.deliveries})
	if err != nil {
		return err
	}
	app := httpd.New(httpd.Options{}).Echo()
	server.Register(app)
	payments.mount(app, server) // until the real server mounts it
	made, err := demo.Seed(ctx, demo.Options{
		Store:     db,
		BaseURL:   c.baseURL,
		Transport: payments.transport(app),
		Now:       db.Clock().Now,
		Begin: func() {
			fmt.Fprintln(out, "Creating demo data for five weeks. This takes a few seconds…")
		},
	})
	if err != nil {
		return err
	}
	welcome(out, c.baseURL, made)
	return nil
}

// welcome prints how to sign in to the demo.
func welcome(out io.Writer, baseURL string, w demo.Welcome) {
	fmt.Fprintf(out, "The demo is at %s%s. Sign in as one of these users:\n\n", baseURL, w.Path)
	for _, p := range w.People {
		fmt.Fprintf(out, "  %-26s %s\n", p.Email, p.Role)
	}
	if w.Password == "" {
		fmt.Fprint(out, "\nThe password was shown on the first start.\n\n")
		return
	}
	fmt.Fprintf(out, "\nThe password is shown only once:\n\n  %s\n\n", w.Password)
}
