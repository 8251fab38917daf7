package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
	"github.com/stripe/stripe-go/v79/client"
	"github.com/stripe/stripe-go/v79/webhook"

	"purser/fault"
	"purser/ids"
	"purser/payments/sandbox"
	"purser/payments/sandbox/persist"
	"purser/payments/sandbox/sandboxtest"
)

// harness is one application with its account, the real Stripe client, and
// a receiver of its webhooks.
type harness struct {
	*testing.T
	app       ids.ID
	server    *sandbox.Server
	accounts  sandbox.Accounts
	documents *sandboxtest.Memory
	http      *httptest.Server
	api       *client.API
	secret    string
	seller    string

	mu       sync.Mutex
	now      time.Time // the real time, which stands still unless a test moves it
	received []stripe.Event
	raw      []received
	refuses  int // how many deliveries the receiver still refuses
	settle   func(context.Context, ids.ID) error

	onReceive func() // when a webhook arrives
	onAdmits  func()
	onSeller  func() // when a page asks for the seller's name
	limit     func(ids.ID, http.Header) time.Duration

	countReply func(ids.ID, int64) (func(), error)
	lookup     func(token string) error // of a page's token, before it is looked up

	log bytes.Buffer // complete for requests that were answered
}

type received struct {
	signature string
	body      []byte
}

// startOn is a fresh application on the morning of the given day.
func startOn(t *testing.T, day string) *harness {
	t.Helper()
	accounts := &sandboxtest.Memory{}
	r := startWith(t, day, accounts)
	r.documents = accounts
	return r
}

// startWith stores the account in a place that the test watches.
func startWith(t *testing.T, day string, accounts sandbox.Accounts) *harness {
	t.Helper()
	now, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	r := &harness{T: t, app: ids.New(), accounts: accounts, now: now.Add(9 * time.Hour)}
	// The address is part of what the server says, so it comes first.
	var handler http.Handler
	r.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { handler.ServeHTTP(w, req) }))
	t.Cleanup(r.http.Close)
	r.server = sandbox.New(sandbox.Options{
		Accounts: accounts, BaseURL: r.http.URL, Secret: []byte("thirty-two bytes of test secret!"),
		Admits: func(_ context.Context, app ids.ID) (bool, error) {
			if m, metered := accounts.(*meter); metered {
				m.admits.Add(1)
			}
			if r.onAdmits != nil {
				r.onAdmits()
			}
			return app == r.app, nil
		},
		Seller: func(context.Context, ids.ID) (string, error) {
			if r.onSeller != nil {
				r.onSeller()
			}
			return r.seller, nil
		},
		Authorize: func(req *http.Request) (ids.ID, error) {
			if req.Header.Get("Authorization") != "Bearer "+controlKey {
				return ids.ID{}, fault.New(fault.InvalidAPIKey)
			}
			return r.app, nil
		},
		Limit: func(app ids.ID, header http.Header) time.Duration {
			if r.limit == nil {
				return 0
			}
			return r.limit(app, header)
		},
		CountReply: func(app ids.ID, size int64) (func(), error) {
			if r.countReply == nil {
				return func() {}, nil
			}
			return r.countReply(app, size)
		},
		Lookup: func(req *http.Request, token string, find func(context.Context) (bool, error)) (bool, error) {
			if r.lookup != nil {
				if err := r.lookup(token); err != nil {
					return false, err
				}
			}
			return find(req.Context())
		},
		Deliver: r.receive,
		Drain: func(ctx context.Context, app ids.ID) error {
			if r.settle == nil {
				return nil
			}
			return r.settle(ctx, app)
		},
		Now: r.realTime, Log: slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &r.log), nil)),
	})
	t.Cleanup(r.server.WaitForSenders)
	handler = r.server.Handler()
	connection, err := r.server.Connect(t.Context(), r.app, webhookURL, []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	r.secret = connection.WebhookSecret
	r.api = r.client(connection.Key, 0)
	return r
}

func start(t *testing.T) *harness {
	t.Helper()
	return startOn(t, "2026-03-10")
}

const (
	webhookURL = "http://receiver.test/webhooks"
	controlKey = "psr_test_control"
)

// client is the real one. It waits between retries, so most tests allow none.
func (r *harness) client(key string, retries int64) *client.API {
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: stripe.String(r.server.StripeURL()), MaxNetworkRetries: stripe.Int64(retries), EnableTelemetry: stripe.Bool(false),
		HTTPClient: r.http.Client(), LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	return client.New(key, &stripe.Backends{API: backend, Connect: backend, Uploads: backend})
}

func (r *harness) realTime() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *harness) passRealTime(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// receive is the receiver of webhooks. It verifies as Stripe's users do.
func (r *harness) receive(_ context.Context, to string, header http.Header, body []byte) error {
	if r.onReceive != nil {
		r.onReceive()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw = append(r.raw, received{header.Get("Stripe-Signature"), slices.Clone(body)})
	if to != webhookURL {
		return errors.New("unknown address " + to)
	}
	if r.refuses > 0 {
		r.refuses--
		return errors.New("503")
	}
	var event stripe.Event
	if err := json.Unmarshal(body, &event); err != nil {
		return err
	}
	r.received = append(r.received, event)
	return nil
}

// events delivers what waits, and gives the types of all that has arrived since
// the last time, among those that billing listens to.
func (r *harness) events() []string {
	r.Helper()
	if err := r.server.Flush(r.Context(), r.app); err != nil {
		r.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var types []string
	for _, event := range r.received {
		if slices.Contains(listened, string(event.Type)) {
			types = append(types, strings.TrimPrefix(string(event.Type), "customer."))
		}
	}
	r.received = nil
	return types
}

var listened = []string{
	"checkout.session.completed", "checkout.session.async_payment_succeeded", "checkout.session.async_payment_failed", "checkout.session.expired",
	"customer.subscription.created", "customer.subscription.updated", "customer.subscription.deleted",
	"customer.subscription.pending_update_applied", "customer.subscription.pending_update_expired",
	"invoice.paid", "invoice.payment_failed", "invoice.payment_action_required", "invoice.voided",
	"charge.refunded", "charge.refund.updated", "refund.created", "refund.updated",
	"charge.dispute.created", "charge.dispute.updated", "charge.dispute.closed", "charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated",
	"subscription_schedule.updated", "subscription_schedule.released", "subscription_schedule.canceled", "customer.deleted",
}

func (r *harness) wantEvents(want ...string) {
	r.Helper()
	if got := r.events(); !slices.Equal(got, want) {
		r.Errorf("events\n got %s\nwant %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

func (r *harness) verify(delivery received, secret string, tolerance time.Duration) (stripe.Event, error) {
	return webhook.ConstructEventWithOptions(delivery.body, delivery.signature, secret,
		webhook.ConstructEventOptions{Tolerance: tolerance})
}

// clock is the time of the account.
func (r *harness) clock() time.Time {
	r.Helper()
	now, err := r.server.Clock(r.Context(), r.app)
	must(r, err)
	return time.UnixMilli(now).UTC()
}

func (r *harness) advance(d time.Duration) {
	r.Helper()
	r.advanceTo(r.clock().Add(d))
}

func (r *harness) advanceTo(to time.Time) {
	r.Helper()
	if _, err := r.server.Advance(r.Context(), r.app, to.UnixMilli()); err != nil {
		r.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ok[T any](t testing.TB) func(T, error) T {
	return func(got T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

// refused gives the error that the call must have got.
func refused(t testing.TB, err error) *stripe.Error {
	t.Helper()
	var got *stripe.Error
	if !errors.As(err, &got) {
		t.Fatalf("not refused by the API: %v", err)
	}
	return got
}

func wantRefusal(t testing.TB, err error, status int, code stripe.ErrorCode, words string) {
	t.Helper()
	got := refused(t, err)
	if got.HTTPStatusCode != status || got.Code != code || !strings.Contains(got.Msg, words) {
		t.Errorf("refused with %d %q %q, want %d %q and %q", got.HTTPStatusCode, got.Code, got.Msg, status, code, words)
	}
}

// price creates a monthly price in cents, unless the parameters say otherwise.
func (r *harness) price(cents int64, change ...func(*stripe.PriceParams)) *stripe.Price {
	r.Helper()
	product := ok[*stripe.Product](r)(r.api.Products.New(&stripe.ProductParams{Name: stripe.String("Plan")}))
	params := &stripe.PriceParams{
		Product: stripe.String(product.ID), Currency: stripe.String("usd"), UnitAmount: stripe.Int64(cents),
		Recurring: &stripe.PriceRecurringParams{Interval: stripe.String("month")},
	}
	for _, c := range change {
		c(params)
	}
	return ok[*stripe.Price](r)(r.api.Prices.New(params))
}

func yearly(p *stripe.PriceParams) { p.Recurring.Interval = stripe.String("year") }

func inEuro(p *stripe.PriceParams) { p.Currency = stripe.String("eur") }

func (r *harness) customer() *stripe.Customer {
	r.Helper()
	return ok[*stripe.Customer](r)(r.api.Customers.New(&stripe.CustomerParams{}))
}

// checkout opens a checkout for a subscription to the price.
func (r *harness) checkout(customer *stripe.Customer, price *stripe.Price, change ...func(*stripe.CheckoutSessionParams)) *stripe.CheckoutSession {
	r.Helper()
	params := &stripe.CheckoutSessionParams{
		Mode: stripe.String("subscription"), Customer: stripe.String(customer.ID),
		LineItems:  []*stripe.CheckoutSessionLineItemParams{{Price: stripe.String(price.ID), Quantity: stripe.Int64(1)}},
		SuccessURL: stripe.String("http://shop.test/thanks?id={CHECKOUT_SESSION_ID}"), CancelURL: stripe.String("http://shop.test/back"),
		SubscriptionData: &stripe.CheckoutSessionSubscriptionDataParams{Metadata: map[string]string{"op": "op_1"}},
	}
	for _, c := range change {
		c(params)
	}
	return ok[*stripe.CheckoutSession](r)(r.api.CheckoutSessions.New(params))
}

// topup opens a checkout for a single payment.
func (r *harness) topup(cents int64) *stripe.CheckoutSession {
	r.Helper()
	return ok[*stripe.CheckoutSession](r)(r.api.CheckoutSessions.New(topupParams(cents)))
}

func topupParams(cents int64) *stripe.CheckoutSessionParams {
	return &stripe.CheckoutSessionParams{
		Mode: stripe.String("payment"), SuccessURL: stripe.String("http://shop.test/thanks"), CancelURL: stripe.String("http://shop.test/back"),
		ClientReferenceID: stripe.String("chk_1"), Metadata: map[string]string{"topup": "t_1"},
		PaymentIntentData: &stripe.CheckoutSessionPaymentIntentDataParams{Metadata: map[string]string{"topup": "t_1"}},
		LineItems: []*stripe.CheckoutSessionLineItemParams{{Quantity: stripe.Int64(1), PriceData: &stripe.CheckoutSessionLineItemPriceDataParams{
			Currency: stripe.String("usd"), UnitAmount: stripe.Int64(cents),
			ProductData: &stripe.CheckoutSessionLineItemPriceDataProductDataParams{Name: stripe.String("Credits")},
		}}},
	}
}

func (r *harness) session(id string, expand ...string) *stripe.CheckoutSession {
	r.Helper()
	params := &stripe.CheckoutSessionParams{}
	for _, path := range expand {
		params.AddExpand(path)
	}
	return ok[*stripe.CheckoutSession](r)(r.api.CheckoutSessions.Get(id, params))
}

func (r *harness) subscription(id string) *stripe.Subscription {
	r.Helper()
	params := &stripe.SubscriptionParams{}
	params.AddExpand("latest_invoice.payment_intent.latest_charge")
	params.AddExpand("schedule")
	return ok[*stripe.Subscription](r)(r.api.Subscriptions.Get(id, params))
}

// subscribe goes through a checkout with the card.
func (r *harness) subscribe(price *stripe.Price, card string) *stripe.Subscription {
	r.Helper()
	session := r.checkout(r.customer(), price)
	r.pay(session.URL, card)
	return r.subscription(r.session(session.ID).Subscription.ID)
}

const (
	cardPays         = "4242424242424242"
	cardDeclined     = "4000000000000002"
	cardNoFunds      = "4000000000009995"
	cardFailsLater   = "4000000000000341"
	cardAsksOnce     = "4000002500003155"
	cardAsksAlways   = "4000002760003184"
	cardDisputed     = "4000000000000259"
	cardInquired     = "4000000000001976"
	cardRefundFails  = "4000000000005126"
	cardRefundPends  = "4000000000007726"
	bankSucceeds     = "bank=succeeds"
	bankFails        = "bank=fails"
	authenticatePath = "/authenticate/"
)

// pay pays at a hosted page, authenticating when asked, and gives where it ends.
func (r *harness) pay(page, card string) string {
	r.Helper()
	field, value := "card", card
	if name, end, isBank := strings.Cut(card, "="); isBank {
		field, value = name, end
	}
	status, to, body := r.submit(page, url.Values{field: {value}})
	if strings.Contains(to, authenticatePath) {
		status, to, body = r.submit(to, url.Values{"result": {"complete"}})
	}
	if status != http.StatusSeeOther {
		r.Fatalf("the page answers %d: %s", status, body)
	}
	return to
}

// submit sends a form as a browser does, and does not follow.
func (r *harness) submit(page string, fields url.Values) (status int, location, body string) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, page, strings.NewReader(fields.Encode()))
	must(r, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", r.http.URL)
	return r.do(request)
}

func (r *harness) visit(page string) (status int, body string) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, page, nil)
	must(r, err)
	status, _, body = r.do(request)
	return status, body
}

func (r *harness) do(request *http.Request) (status int, location, body string) {
	r.Helper()
	stays := *r.http.Client()
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := stays.Do(request)
	must(r, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(r, err)
	return response.StatusCode, response.Header.Get("Location"), string(text)
}

// site is where the hosted pages lie.
func (r *harness) site() string { return r.http.URL + "/sandbox/apps/" + r.app.Format(ids.Application) }

// stored is the whole account.
func (r *harness) stored() persist.Change {
	r.Helper()
	return ok[persist.Change](r.T)(sandboxtest.Read(r.Context(), r.accounts, r.app))
}

// storedText is the text of all that is stored of the account.
func (r *harness) storedText() string {
	r.Helper()
	c := r.stored()
	text := string(c.Head)
	for _, row := range c.Rows {
		text += string(row.Document)
	}
	return text
}
