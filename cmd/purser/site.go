package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"purser/api/openapi"
	"purser/mail"
	"purser/store"
	"purser/tenancy/vault"
	"purser/web"
	"purser/web/site"
)

// newSite creates the dashboard.
func newSite(c config, db *database, usage *store.Engine, seals *vault.Vault, payments *paymentNode, mails *mail.Outbox, document *openapi.Object, log *slog.Logger) *web.Site {
	return web.New(web.Options{
		Options: site.Options{
			BaseURL:        c.baseURL,
			Version:        version,
			Program:        os.Args[0],
			Store:          db.Store,
			Log:            log,
			Vault:          seals,
			Cashier:        payments.cashier,
			Mail:           mails,
			SandboxOff:     c.sandboxOff,
			TrustedProxies: c.trustedProxies,
			RequireFactor:  c.requireFactor,
			Timeout:        pageTimeout,
		},
		Document:         document,
		Usage:            usage,
		Deliveries:       payments.deliveries,
		Sandbox:          payments.sandboxAPI,
		Controls:         payments.sandboxControls(),
		NewOrganizations: c.newOrganizations,
	})
}

// greet prints the server's address and, while there is no account, the link that
// creates the first one.
func greet(ctx context.Context, out io.Writer, baseURL string, site *web.Site) error {
	link, err := site.OfferSetup(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Purser is running. Open %s in a browser.\n", baseURL)
	if link != "" {
		fmt.Fprintf(out, "Create the first account with this one-time link:\n\n  %s\n\n", link)
	}
	fmt.Fprintln(out, "Press Ctrl-C to stop.")
	return nil
}
