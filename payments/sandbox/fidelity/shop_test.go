package fidelity

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
	"github.com/stripe/stripe-go/v79/client"

	"purser/ids"
	"purser/payments/sandbox"
	"purser/payments/sandbox/sandboxtest"
)

// shop is an application with a sandbox, whose client and webhooks are judged.
type shop struct {
	testing.TB
	api    *client.API
	tee    *tee
	app    ids.ID
	server *sandbox.Server
	http   *httptest.Server
}

func openShop(t testing.TB) *shop {
	t.Helper()
	s := &shop{TB: t, app: ids.New()}
	// The address is part of what the server says, so it comes first.
	var handler http.Handler
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(s.http.Close)
	s.server = sandbox.New(sandbox.Options{
		Accounts: &sandboxtest.Memory{}, BaseURL: s.http.URL, Secret: []byte("thirty-two bytes of test secret!"),
		Admits:    func(_ context.Context, app ids.ID) (bool, error) { return app == s.app, nil },
		Authorize: func(*http.Request) (ids.ID, error) { return s.app, nil },
		Deliver: func(_ context.Context, _ string, _ http.Header, body []byte) error {
			s.tee.judgeWebhook(body)
			return nil
		},
		Drain: func(context.Context, ids.ID) error { return nil }, Now: time.Now,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	handler = s.server.Handler()
	connection, err := s.server.Connect(t.Context(), s.app, "http://receiver.test/webhooks", []string{"*"})
	must(t, err)
	address, err := url.Parse(connection.URL)
	must(t, err)
	s.tee = newTee(t, s.http.Client().Transport, address.Path)
	s.api = newClient(connection.Key, connection.URL, s.tee)
	return s
}

// newClient is Stripe's own.
func newClient(key, address string, transport http.RoundTripper) *client.API {
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: stripe.String(address), MaxNetworkRetries: stripe.Int64(0), EnableTelemetry: stripe.Bool(false),
		HTTPClient:    &http.Client{Transport: transport, Timeout: 2 * time.Minute},
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	return client.New(key, &stripe.Backends{API: backend, Connect: backend, Uploads: backend})
}

// clock is the time in the sandbox.
func (s *shop) clock() time.Time {
	s.Helper()
	now, err := s.server.Clock(s.Context(), s.app)
	must(s, err)
	return time.UnixMilli(now)
}

// advance moves the clock and delivers what happens on the way.
func (s *shop) advance(d time.Duration) {
	s.Helper()
	if _, err := s.server.Advance(s.Context(), s.app, s.clock().Add(d).UnixMilli()); err != nil {
		s.Fatal(err)
	}
}

const (
	cardPays        = "card=4242424242424242"
	cardDeclined    = "card=4000000000000002"
	cardFailsLater  = "card=4000000000000341"
	cardAsksAlways  = "card=4000002760003184"
	cardDisputed    = "card=4000000000000259"
	cardInquired    = "card=4000000000001976"
	cardRefundFails = "card=4000000000005126"
	cardRefundPends = "card=4000000000007726"
	bankSucceeds    = "bank=succeeds"
	bankFails       = "bank=fails"
)

// pay pays at a hosted page, and authenticates when it is asked to.
func (s *shop) pay(page, with string) {
	s.Helper()
	status, to := s.submit(page, with)
	if strings.Contains(to, "/authenticate/") {
		status, _ = s.submit(to, "result=complete")
	}
	if status != http.StatusSeeOther {
		s.Fatalf("paying with %s answers %d", with, status)
	}
}

// submit sends a form as a browser does, and does not follow.
func (s *shop) submit(page, form string) (status int, location string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, page, strings.NewReader(form))
	must(s, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", s.http.URL)
	response, err := s.http.Client().Transport.RoundTrip(request)
	must(s, err)
	must(s, response.Body.Close())
	return response.StatusCode, response.Header.Get("Location")
}

// dispute has the payment disputed, or the dispute end.
func (s *shop) dispute(session *stripe.CheckoutSession, outcome string) {
	s.Helper()
	address := s.http.URL + "/sandbox/apps/" + s.app.Format(ids.Application) + "/disputes"
	body := fmt.Sprintf(`{"checkoutId": %q, "outcome": %q}`, session.ID, outcome)
	response, err := s.http.Client().Post(address, "application/json", strings.NewReader(body))
	must(s, err)
	must(s, response.Body.Close())
	if response.StatusCode != http.StatusOK {
		s.Fatalf("a dispute that is %s answers %d", outcome, response.StatusCode)
	}
}

// price is a monthly price in cents.
func (s *shop) price(cents int64) *stripe.Price { return newPrice(s, s.api, cents) }

func newPrice(t testing.TB, api *client.API, cents int64) *stripe.Price {
	t.Helper()
	product := ok(api.Products.New(&stripe.ProductParams{Name: stripe.String("Plan")}))(t)
	return ok(api.Prices.New(&stripe.PriceParams{
		Product: &product.ID, Currency: stripe.String("usd"), UnitAmount: &cents,
		Recurring: &stripe.PriceRecurringParams{Interval: stripe.String("month")},
	}))(t)
}

// subscribe goes through a checkout.
func (s *shop) subscribe(price *stripe.Price, with string) *stripe.Subscription {
	s.Helper()
	customer := ok(s.api.Customers.New(&stripe.CustomerParams{Metadata: map[string]string{"identity_hash": "1"}}))(s)
	session := ok(s.api.CheckoutSessions.New(s.subscriptionOrder(customer, price)))(s)
	s.pay(session.URL, with)
	params := &stripe.CheckoutSessionParams{}
	params.AddExpand("subscription.latest_invoice.payment_intent.latest_charge")
	params.AddExpand("line_items")
	return ok(s.api.CheckoutSessions.Get(session.ID, params))(s).Subscription
}

func (s *shop) subscriptionOrder(customer *stripe.Customer, price *stripe.Price) *stripe.CheckoutSessionParams {
	return &stripe.CheckoutSessionParams{
		Mode: stripe.String("subscription"), Customer: &customer.ID, ClientReferenceID: stripe.String("op_1"),
		LineItems:               []*stripe.CheckoutSessionLineItemParams{{Price: &price.ID, Quantity: stripe.Int64(1)}},
		SuccessURL:              stripe.String("https://shop.test/thanks?id={CHECKOUT_SESSION_ID}"),
		CancelURL:               stripe.String("https://shop.test/back"),
		PaymentMethodCollection: stripe.String("always"), ExpiresAt: stripe.Int64(s.clock().Add(23 * time.Hour).Unix()),
		SubscriptionData: &stripe.CheckoutSessionSubscriptionDataParams{Metadata: map[string]string{"op": "op_1"}},
	}
}

// topup is a single payment, by a checkout.
func (s *shop) topup(cents int64, with string) *stripe.CheckoutSession {
	s.Helper()
	session := ok(s.api.CheckoutSessions.New(topupOrder(cents)))(s)
	s.pay(session.URL, with)
	params := &stripe.CheckoutSessionParams{}
	params.AddExpand("payment_intent.latest_charge")
	return ok(s.api.CheckoutSessions.Get(session.ID, params))(s)
}

func topupOrder(cents int64) *stripe.CheckoutSessionParams {
	return &stripe.CheckoutSessionParams{
		Mode: stripe.String("payment"), ClientReferenceID: stripe.String("chk_1"), Metadata: map[string]string{"topup": "t_1"},
		SuccessURL: stripe.String("https://shop.test/thanks"), CancelURL: stripe.String("https://shop.test/back"),
		PaymentIntentData: &stripe.CheckoutSessionPaymentIntentDataParams{Metadata: map[string]string{"topup": "t_1"}},
		LineItems: []*stripe.CheckoutSessionLineItemParams{{Quantity: stripe.Int64(1), PriceData: &stripe.CheckoutSessionLineItemPriceDataParams{
			Currency: stripe.String("usd"), UnitAmount: &cents,
			ProductData: &stripe.CheckoutSessionLineItemPriceDataProductDataParams{Name: stripe.String("Credits")},
		}}},
	}
}

// upgradeTo is the request that moves a subscription to a more expensive price.
func upgradeTo(s *stripe.Subscription, price *stripe.Price) *stripe.SubscriptionParams {
	params := &stripe.SubscriptionParams{
		Items:           []*stripe.SubscriptionItemsParams{{ID: &s.Items.Data[0].ID, Price: &price.ID, Quantity: stripe.Int64(1)}},
		PaymentBehavior: stripe.String("pending_if_incomplete"), ProrationBehavior: stripe.String("none"), BillingCycleAnchorNow: stripe.Bool(true),
	}
	params.AddExpand("latest_invoice.payment_intent")
	return params
}

// downgradeTo is the request that turns the subscription's schedule to a price
// when the period ends.
func downgradeTo(schedule *stripe.SubscriptionSchedule, price *stripe.Price) *stripe.SubscriptionScheduleParams {
	now := schedule.Phases[0]
	return &stripe.SubscriptionScheduleParams{
		EndBehavior: stripe.String("release"), ProrationBehavior: stripe.String("none"),
		Phases: []*stripe.SubscriptionSchedulePhaseParams{
			{
				StartDate: &now.StartDate, EndDate: &now.EndDate, ProrationBehavior: stripe.String("none"),
				Items: []*stripe.SubscriptionSchedulePhaseItemParams{{Price: &now.Items[0].Price.ID, Quantity: &now.Items[0].Quantity}},
			},
			{
				Iterations: stripe.Int64(1), ProrationBehavior: stripe.String("none"),
				Items: []*stripe.SubscriptionSchedulePhaseItemParams{{Price: &price.ID, Quantity: stripe.Int64(1)}},
			},
		},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ok gives the result of a call that must work.
func ok[T any](got T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%T: %v", got, err)
		}
		return got
	}
}

// each reads a list to its end.
func each[L interface {
	Next() bool
	Err() error
}](t testing.TB, list L) (found int) {
	t.Helper()
	for list.Next() {
		found++
	}
	if err := list.Err(); err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf("%T", list), err)
	}
	return found
}
