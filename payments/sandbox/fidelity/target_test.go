package fidelity

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
	"github.com/stripe/stripe-go/v79/client"
)

// target is who is asked: the sandbox or Stripe.
type target struct {
	testing.TB
	api *client.API
	now func() time.Time
}

// onEach runs the claims against the sandbox, and against Stripe when there is a
// key for it. Each claim gets a target of its own.
func onEach(t *testing.T, claims func(t *testing.T, fresh func(testing.TB) *target)) {
	t.Run("the sandbox", func(t *testing.T) {
		t.Parallel()
		claims(t, func(t testing.TB) *target {
			s := openShop(t)
			return &target{TB: t, api: s.api, now: s.clock}
		})
	})
	key := os.Getenv("STRIPE_TEST_KEY")
	if key == "" {
		return
	}
	t.Run("Stripe", func(t *testing.T) {
		if !strings.HasPrefix(key, "sk_test_") && !strings.HasPrefix(key, "rk_test_") {
			t.Fatal("STRIPE_TEST_KEY is not a key for test mode")
		}
		claims(t, func(t testing.TB) *target {
			return &target{TB: t, api: newClient(key, stripe.APIURL, http.DefaultTransport), now: time.Now}
		})
	})
}

func (g *target) price(cents int64) *stripe.Price {
	g.Helper()
	return newPrice(g, g.api, cents)
}

// customer has the card on file: one of Stripe's names for test cards, or none.
func (g *target) customer(card string) *stripe.Customer {
	g.Helper()
	params := &stripe.CustomerParams{Description: stripe.String("a test of conformance")}
	if card != "" {
		params.PaymentMethod = &card
		params.InvoiceSettings = &stripe.CustomerInvoiceSettingsParams{DefaultPaymentMethod: &card}
	}
	made := ok(g.api.Customers.New(params))(g)
	g.Cleanup(func() {
		if _, err := g.api.Customers.Del(made.ID, nil); err != nil && !isRefusal(err, http.StatusNotFound) {
			g.Errorf("cleaning up: %v", err)
		}
	})
	return made
}

// subscribed is a subscription to a price in cents, paid by the card.
func (g *target) subscribed(cents int64, card string) *stripe.Subscription {
	g.Helper()
	customer, price := g.customer(card), g.price(cents)
	params := &stripe.SubscriptionParams{Customer: &customer.ID, Items: []*stripe.SubscriptionItemsParams{{Price: &price.ID}}}
	params.AddExpand("latest_invoice.payment_intent")
	return ok(g.api.Subscriptions.New(params))(g)
}

func (g *target) subscription(id string) *stripe.Subscription {
	g.Helper()
	params := &stripe.SubscriptionParams{}
	params.AddExpand("latest_invoice.payment_intent")
	return ok(g.api.Subscriptions.Get(id, params))(g)
}

func (g *target) scheduled(s *stripe.Subscription) *stripe.SubscriptionSchedule {
	g.Helper()
	return ok(g.api.SubscriptionSchedules.New(&stripe.SubscriptionScheduleParams{FromSubscription: &s.ID}))(g)
}

// refusal is what the API must answer.
type refusal struct {
	status int
	code   stripe.ErrorCode // not compared when it is empty
	words  string           // part of the message
}

func (want refusal) compare(t testing.TB, err error) {
	t.Helper()
	var got *stripe.Error
	if !errors.As(err, &got) {
		t.Fatalf("not refused: %v", err)
	}
	if got.HTTPStatusCode != want.status || want.code != "" && got.Code != want.code || !strings.Contains(got.Msg, want.words) {
		t.Errorf("refused with %d %q %q, want %d %q and %q", got.HTTPStatusCode, got.Code, got.Msg, want.status, want.code, want.words)
	}
}

func isRefusal(err error, status int) bool {
	var got *stripe.Error
	return errors.As(err, &got) && got.HTTPStatusCode == status
}
