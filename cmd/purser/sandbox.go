package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"

	"purser/ids"
	"purser/payments/sandbox"
	"purser/store/payments"
	settingspage "purser/views/page/settings"
	"purser/web/developers"
)

// sandboxKeys is the purpose of the derived key for sandbox API keys.
const sandboxKeys = "sandbox keys"

// listenSandbox opens the listener of the sandbox's Stripe API, or returns nil if it is
// off.
func listenSandbox(c config) (net.Listener, error) {
	if c.sandboxAddr == "" || c.sandboxOff {
		return nil, nil
	}
	listener, err := net.Listen("tcp", c.sandboxAddr)
	if err != nil {
		return nil, listenError("PURSER_SANDBOX_ADDR", c.sandboxAddr, err)
	}
	return listener, nil
}

// serveStripe serves the sandbox's Stripe API at the root of its own address.
func (p *paymentNode) serveStripe(listener *connections, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		return serveUntilDone(ctx, listener, withTimeout(p.sandbox.StripeHandler()), drain{}, log)
	}
}

// sandboxURL is the base URL for Stripe clients. A wildcard listen address is shown with
// the server's public host.
func sandboxURL(c config) string {
	if c.sandboxAddr == "" {
		return c.baseURL + sandbox.StripePath
	}
	host, port, err := net.SplitHostPort(c.sandboxAddr)
	if err != nil {
		return "http://" + c.sandboxAddr
	}
	if isWildcard(host) {
		host = "127.0.0.1"
		if base, err := url.Parse(c.baseURL); err == nil && base.Hostname() != "" {
			host = base.Hostname()
		}
	}
	return "http://" + net.JoinHostPort(host, port)
}

// sandboxAPI is the API access to an application's sandbox account.
func (p *paymentNode) sandboxAPI(app ids.ID) settingspage.SandboxAPI {
	return settingspage.SandboxAPI{URL: p.apiURL, Key: p.sandbox.Key(app), Version: sandbox.APIVersion}
}

// sandboxControls operate the sandbox from the dashboard.
func (p *paymentNode) sandboxControls() *developers.SandboxControls {
	return &developers.SandboxControls{
		Advance: p.sandbox.Advance,
		Refund: func(ctx context.Context, app ids.ID, checkoutID string) (int64, error) {
			made, err := p.sandbox.Refund(ctx, app, checkoutID, nil)
			return made.AmountCents, err
		},
		Dispute: func(ctx context.Context, app ids.ID, checkoutID, outcome string) error {
			_, err := p.sandbox.Dispute(ctx, app, checkoutID, outcome)
			return err
		},
		OpenInvoices: func(ctx context.Context, app ids.ID, subscriptions []string) (list []developers.SandboxInvoice, err error) {
			open, err := p.sandbox.OpenInvoices(ctx, app, subscriptions)
			for _, i := range open {
				list = append(list, developers.SandboxInvoice{ID: i.ID, Subscription: i.Subscription, AmountCents: i.AmountDue, Currency: i.Currency, URL: i.URL})
			}
			return list, err
		},
		PayInvoice:   p.sandbox.PayInvoice,
		FailRenewals: p.sandbox.FailRenewals,
		Webhooks: func(ctx context.Context, app ids.ID) (bool, int, error) {
			state, err := p.sandbox.WebhookState(ctx, app)
			return state.Held, state.Waiting, err
		},
		Hold: func(ctx context.Context, app ids.ID, hold bool) error {
			_, err := p.sandbox.Webhooks(ctx, app, sandbox.WebhookCommand{Hold: &hold})
			return err
		},
		Replay: func(ctx context.Context, app ids.ID, events int) error {
			_, err := p.sandbox.Webhooks(ctx, app, sandbox.WebhookCommand{Replay: &events})
			return err
		},
	}
}

// printSandboxKey prints what a Stripe client needs. The key is derived from the
// installation's secret, so it can be printed again.
func printSandboxKey(ctx context.Context, c config, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("sandbox key", flag.ContinueOnError)
	name := flags.String("app", "", "id of the application, app_…")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := c.parse(flags, args); err != nil {
		return err
	}
	app, err := ids.Parse(ids.Application, *name)
	if err != nil {
		return errors.New("sandbox key needs --app with the id of an application (app_…)")
	}
	if c.sandboxOff {
		return errors.New("the payments sandbox is turned off (PURSER_SANDBOX)")
	}
	if err := requireDatabase(c); err != nil {
		return err
	}
	secret, err := loadSecret(c)
	if err != nil {
		return err
	}
	if secret == "" {
		return fmt.Errorf("%s is missing: the first start of the server creates it, and a restored database needs the one from the time of the backup", secretSource(c))
	}
	db, err := openDatabase(ctx, c, commandLog(stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	admitted, err := (&paymentNode{store: db.Store}).admits(ctx, app)
	if err != nil {
		return err
	}
	if !admitted {
		return fmt.Errorf("%s is not a test application that uses the sandbox", *name)
	}
	c.setDefaultBaseURL(c.addr)
	return printSandbox(stdout, settingspage.SandboxAPI{URL: sandboxURL(c), Key: sandbox.KeyOf(secret.derive(sandboxKeys), app), Version: sandbox.APIVersion}, *asJSON)
}

func printSandbox(out io.Writer, api settingspage.SandboxAPI, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]string{"url": api.URL, "key": api.Key, "version": api.Version})
	}
	_, err := fmt.Fprintf(out, "API address  %s\nSecret key   %s\nAPI version  %s\n", api.URL, api.Key, api.Version)
	return err
}

var _ sandbox.Accounts = payments.SandboxAccounts{}
