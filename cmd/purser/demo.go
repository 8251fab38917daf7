package main

import (
	"context"
	"fmt"
	"io"

	"purser/api"
	"purser/cmd/purser/demo"
	"purser/store"
)

// seedDemo fills an empty database, through an API of its own: one that limits
// nobody and logs nothing, as these requests are not the server's.
func seedDemo(ctx context.Context, c config, db *store.Store, usage *store.Usage, payments *payments, out io.Writer) error {
	server, err := api.New(api.Options{Store: db, Usage: usage, Cashier: payments.cashier})
	if err != nil {
		return err
	}
	app := server.Echo()
	payments.mount(app, server) // until the server's own is mounted
	made, err := demo.Seed(ctx, demo.Options{
		Store:     db,
		BaseURL:   c.baseURL,
		Transport: payments.within(app),
		Now:       db.Clock().Now,
		Begin: func() {
			fmt.Fprintln(out, "Making the demo, with five weeks of its customers' lives. This takes some seconds…")
		},
	})
	if err != nil {
		return err
	}
	welcome(out, c.baseURL, made)
	return nil
}

// welcome says how to sign in to the demo.
func welcome(out io.Writer, baseURL string, w demo.Welcome) {
	fmt.Fprintf(out, "The demo is at %s%s. Sign in as one of\n\n", baseURL, w.Path)
	for _, p := range w.People {
		fmt.Fprintf(out, "  %-26s %s\n", p.Email, p.Role)
	}
	if w.Password == "" {
		fmt.Fprint(out, "\nwith the password that the first start has shown.\n\n")
		return
	}
	fmt.Fprintf(out, "\nwith the password, which is shown this once:\n\n  %s\n\n", w.Password)
}
