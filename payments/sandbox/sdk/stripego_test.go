package sdk

import (
	"slices"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"
)

func check[T any](t testing.TB) func(T, error) T {
	return func(got T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

// The client is the current major of stripe-go. It speaks a later version of the API;
// the answers are in 2024-06-20, whose fields it reads where they are the same.
func TestStripeGoRunsTheLifeOfASubscription(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	ctx := t.Context()
	client := stripe.NewClient(s.key, stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL: stripe.String(s.api.URL), MaxNetworkRetries: stripe.Int64(0), LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})))
	endpoint := check[*stripe.WebhookEndpoint](t)(client.V1WebhookEndpoints.Create(ctx, &stripe.WebhookEndpointCreateParams{
		URL: stripe.String(s.receiver.URL), EnabledEvents: stripe.StringSlice([]string{"*"}),
	}))

	customer := check[*stripe.Customer](t)(client.V1Customers.Create(ctx, &stripe.CustomerCreateParams{
		Email: stripe.String("ada@example.com"), Name: stripe.String("Ada"), Metadata: map[string]string{"user": "42"},
	}))
	method := check[*stripe.PaymentMethod](t)(client.V1PaymentMethods.Attach(ctx, "pm_card_visa", &stripe.PaymentMethodAttachParams{Customer: &customer.ID}))
	check[*stripe.Customer](t)(client.V1Customers.Update(ctx, customer.ID, &stripe.CustomerUpdateParams{
		InvoiceSettings: &stripe.CustomerUpdateInvoiceSettingsParams{DefaultPaymentMethod: &method.ID},
	}))
	product := check[*stripe.Product](t)(client.V1Products.Create(ctx, &stripe.ProductCreateParams{Name: stripe.String("Pro")}))
	price := func(cents int64) *stripe.Price {
		return check[*stripe.Price](t)(client.V1Prices.Create(ctx, &stripe.PriceCreateParams{
			Product: &product.ID, Currency: stripe.String("usd"), UnitAmount: &cents, Recurring: &stripe.PriceCreateRecurringParams{Interval: stripe.String("month")},
		}))
	}
	small, big := price(2900), price(9900)

	session := check[*stripe.CheckoutSession](t)(client.V1CheckoutSessions.Create(ctx, &stripe.CheckoutSessionCreateParams{
		Mode: stripe.String("subscription"), Customer: &customer.ID, SuccessURL: stripe.String("http://shop.test/thanks"),
		LineItems: []*stripe.CheckoutSessionCreateLineItemParams{{Price: &small.ID, Quantity: stripe.Int64(1)}},
	}))
	s.pay(session.URL)
	session = check[*stripe.CheckoutSession](t)(client.V1CheckoutSessions.Retrieve(ctx, session.ID, nil))
	if session.Status != "complete" || session.PaymentStatus != "paid" || session.CustomerDetails.Email != "ada@example.com" {
		t.Fatalf("the checkout is %s and %s", session.Status, session.PaymentStatus)
	}
	subscription := check[*stripe.Subscription](t)(client.V1Subscriptions.Retrieve(ctx, session.Subscription.ID, nil))
	invoice := check[*stripe.Invoice](t)(client.V1Invoices.Retrieve(ctx, subscription.LatestInvoice.ID, nil))
	if subscription.Status != "active" || invoice.Status != "paid" || invoice.AmountPaid != 2900 {
		t.Errorf("the subscription is %s, its invoice %s with %d", subscription.Status, invoice.Status, invoice.AmountPaid)
	}

	upgraded := check[*stripe.Subscription](t)(client.V1Subscriptions.Update(ctx, subscription.ID, &stripe.SubscriptionUpdateParams{
		Items:             []*stripe.SubscriptionUpdateItemParams{{ID: &subscription.Items.Data[0].ID, Price: &big.ID}},
		ProrationBehavior: stripe.String("always_invoice"), PaymentBehavior: stripe.String("error_if_incomplete"),
	}))
	proration := check[*stripe.Invoice](t)(client.V1Invoices.Retrieve(ctx, upgraded.LatestInvoice.ID, nil))
	if upgraded.Items.Data[0].Price.ID != big.ID || proration.ID == invoice.ID || proration.AmountPaid < 6900 || proration.AmountPaid > 7000 || len(proration.Lines.Data) != 2 {
		t.Errorf("the upgrade to %s asks for %d", upgraded.Items.Data[0].Price.ID, proration.AmountPaid)
	}

	ended := check[*stripe.Subscription](t)(client.V1Subscriptions.Cancel(ctx, subscription.ID, nil))
	if ended.Status != "canceled" {
		t.Errorf("afterwards it is %s", ended.Status)
	}
	var refunded int64
	for charge, err := range client.V1Charges.List(ctx, &stripe.ChargeListParams{Customer: &customer.ID}).All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		refunded += check[*stripe.Refund](t)(client.V1Refunds.Create(ctx, &stripe.RefundCreateParams{Charge: &charge.ID})).Amount
	}
	if refunded != invoice.AmountPaid+proration.AmountPaid {
		t.Errorf("%d of %d came back", refunded, invoice.AmountPaid+proration.AmountPaid)
	}

	if err := s.server.Flush(ctx, s.app); err != nil {
		t.Fatal(err)
	}
	s.server.WaitForSenders()
	var types []string
	for range len(s.webhooks) {
		got := <-s.webhooks
		// Its endpoint speaks another version than the client, as Stripe's may too.
		event, err := client.ConstructEvent(got.body, got.signature, endpoint.Secret, stripe.WithIgnoreAPIVersionMismatch(), stripe.WithTolerance(time.Hour))
		if err != nil {
			t.Fatalf("%v: %s", err, got.body)
		}
		types = append(types, string(event.Type))
		if _, err := client.ConstructEvent(append(got.body, ' '), got.signature, endpoint.Secret, stripe.WithIgnoreAPIVersionMismatch()); err == nil {
			t.Error("a changed webhook is accepted")
		}
	}
	for _, want := range []string{
		"customer.created", "payment_method.attached", "checkout.session.completed", "customer.subscription.created", "invoice.paid", "invoice.payment_succeeded",
		"payment_intent.succeeded", "charge.succeeded", "customer.subscription.updated", "customer.subscription.deleted", "charge.refunded",
	} {
		if !slices.Contains(types, want) {
			t.Errorf("no webhook says %s", want)
		}
	}
}
