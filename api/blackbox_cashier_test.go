package api_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"time"

	"purser/ids"
	"purser/payments/cashier"
	"purser/payments/sandbox"
	"purser/store"
	"purser/tenancy/vault"
)

// testCashier is the cashier of a node, and the sandbox at which its applications pay.
type testCashier struct {
	*cashier.Cashier
	sandbox *sandbox.Server
}

// cashierSecret is the same for all nodes, as it is in an installation.
var cashierSecret = []byte("a secret for the tills of the nodes of the suite")

func newTestCashier(s *store.Store, c *clock) (*testCashier, error) {
	secrets, err := vault.New(rand.Reader, cashierSecret)
	if err != nil {
		return nil, err
	}
	t := &testCashier{}
	now := func() time.Time { return time.UnixMilli(c.now()) }
	const site = "http://purser.test"
	t.Cashier, err = cashier.New(cashier.Options{
		Store: s, Vault: secrets, BaseURL: site, Log: newLog(), Now: now,
		Sandbox: func(ctx context.Context, app ids.ID, webhookURL string, types []string) (cashier.Sandbox, error) {
			made, err := t.sandbox.Connect(ctx, app, webhookURL, types)
			return cashier.Sandbox(made), err
		},
		SandboxTransport: t,
	})
	if err != nil {
		return nil, err
	}
	t.sandbox = sandbox.New(sandbox.Options{
		Accounts: s.SandboxAccounts(), BaseURL: site, Secret: cashierSecret, Log: newLog(), Now: now,
		Admits:    func(context.Context, ids.ID) (bool, error) { return true, nil },
		Authorize: func(*http.Request) (ids.ID, error) { return ids.ID{}, errors.New("nobody steers this sandbox") },
		Deliver: func(ctx context.Context, address string, header http.Header, body []byte) error {
			webhook, err := t.VerifyWebhook(ctx, path.Base(address), header.Get("Stripe-Signature"), body)
			if err != nil {
				return err
			}
			return t.StoreWebhook(ctx, webhook)
		},
		Drain: t.DrainAll,
	})
	return t, nil
}

// RoundTrip lets the sandbox answer, without a network.
func (t *testCashier) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := r.Clone(r.Context())
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	t.sandbox.Handler().ServeHTTP(w, asked)
	return w.Result(), nil
}

// settle works off what the application's cashier has to do, such as taking plans
// to the provider.
func (tn *tenant) settle() {
	tn.t.Helper()
	if err := tn.node.cashier.DrainAll(tn.t.Context(), tn.app.ID); err != nil {
		tn.t.Fatal(err)
	}
}

// pay pays at a hosted page with a card.
func (tn *tenant) pay(page, card string) {
	tn.t.Helper()
	form := url.Values{"card": {card}}
	request, err := http.NewRequestWithContext(tn.t.Context(), http.MethodPost, page, strings.NewReader(form.Encode()))
	if err != nil {
		tn.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := tn.node.cashier.RoundTrip(request)
	if err != nil {
		tn.t.Fatal(err)
	}
	if answer.StatusCode != http.StatusSeeOther {
		tn.t.Fatalf("the page answers %s", answer.Status)
	}
}

// buy has the identity buy the plan.
func (tn *tenant) buy(identity, plan string) {
	tn.t.Helper()
	page := tn.post("/v1/subscription-checkout", newSubscriptionCheckout(identity, plan)).is(200)
	tn.pay(page.text("url"), "4242424242424242")
}

func newSubscriptionCheckout(identity, plan string) fields {
	return fields{
		"identity": identity, "planKey": plan, "idempotencyKey": newName(),
		"successUrl": "https://shop.test/thanks", "cancelUrl": "https://shop.test/plans",
	}
}

func newTopup(identity, credit string) fields {
	return fields{
		"identity": identity, "creditKey": credit, "amountNanocredits": "1000", "amountCents": 500, "currency": "eur",
		"successUrl": "https://shop.test/thanks", "cancelUrl": "https://shop.test/wallet", "idempotencyKey": newName(),
	}
}

func subscriptionPath(identity string) string { return "/v1/subscriptions/" + url.PathEscape(identity) }
