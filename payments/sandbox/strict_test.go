package sandbox_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v79"
)

func TestTheSandboxIsAsStrictAsStripe(t *testing.T) {
	t.Parallel()
	r := start(t)
	price, customer := r.price(2900), r.customer()

	t.Run("a subscription that may not be incomplete is not made with a card that asks for authentication", func(t *testing.T) {
		_, err := r.api.Subscriptions.New(&stripe.SubscriptionParams{
			Customer: &customer.ID, Items: []*stripe.SubscriptionItemsParams{{Price: &price.ID}},
			PaymentBehavior: stripe.String("error_if_incomplete"), DefaultPaymentMethod: stripe.String("pm_card_authenticationRequired"),
		})
		wantRefusal(t, err, http.StatusPaymentRequired, "subscription_payment_intent_requires_action", "requires additional user action")
		if list := r.api.Subscriptions.List(&stripe.SubscriptionListParams{Customer: &customer.ID, Status: stripe.String("all")}); list.Next() {
			t.Errorf("%s was made", list.Subscription().ID)
		}
	})

	t.Run("nor is one changed", func(t *testing.T) {
		r := start(t)
		s := r.subscribe(r.price(2900), cardAsksAlways)
		_, err := r.api.Subscriptions.Update(s.ID, &stripe.SubscriptionParams{
			Items: []*stripe.SubscriptionItemsParams{{ID: &s.Items.Data[0].ID, Price: stripe.String(r.price(9900).ID)}}, PaymentBehavior: stripe.String("error_if_incomplete"),
			ProrationBehavior: stripe.String("always_invoice"),
		})
		wantRefusal(t, err, http.StatusPaymentRequired, "subscription_payment_intent_requires_action", "requires additional user action")
		if now := ok[*stripe.Subscription](t)(r.api.Subscriptions.Get(s.ID, nil)); now.Items.Data[0].Price.UnitAmount != 2900 {
			t.Errorf("it costs %d", now.Items.Data[0].Price.UnitAmount)
		}
	})

	t.Run("metadata has at most 50 keys of 40 characters, with 500 each", func(t *testing.T) {
		pairs := func(n int) map[string]string {
			all := map[string]string{}
			for i := range n {
				all["key"+strconv.Itoa(i)] = "v"
			}
			return all
		}
		full := ok[*stripe.Customer](t)(r.api.Customers.New(&stripe.CustomerParams{Metadata: pairs(50)}))
		for name, given := range map[string]map[string]string{
			"up to 50 metadata keys": pairs(51), "up to 40 characters": {strings.Repeat("k", 41): "v"}, "up to 500 characters": {"k": strings.Repeat("é", 501)},
		} {
			_, err := r.api.Customers.New(&stripe.CustomerParams{Metadata: given})
			if got := refused(t, err); got.HTTPStatusCode != http.StatusBadRequest || got.Param != "metadata" || !strings.Contains(got.Msg, name) {
				t.Errorf("%d keys: %s", len(given), got.Msg)
			}
		}
		_, err := r.api.Customers.Update(full.ID, &stripe.CustomerParams{Metadata: map[string]string{"one more": "v"}})
		wantRefusal(t, err, http.StatusBadRequest, "", "up to 50 metadata keys")
		ok[*stripe.Customer](t)(r.api.Customers.New(&stripe.CustomerParams{Metadata: map[string]string{strings.Repeat("k", 40): strings.Repeat("é", 500)}}))
	})

	t.Run("events are listed by at most 20 types", func(t *testing.T) {
		types := slices.Repeat([]string{"customer.created"}, 20)
		list := r.api.Events.List(&stripe.EventListParams{Types: stripe.StringSlice(types)})
		if !list.Next() {
			t.Errorf("20 types list nothing: %v", list.Err())
		}
		list = r.api.Events.List(&stripe.EventListParams{Types: stripe.StringSlice(append(types, "customer.deleted"))})
		list.Next()
		wantRefusal(t, list.Err(), http.StatusBadRequest, "", "at most 20 types")
	})

	t.Run("metadata is cleared by an empty value, one pair or all of them", func(t *testing.T) {
		made := ok[*stripe.Customer](t)(r.api.Customers.New(&stripe.CustomerParams{Metadata: map[string]string{"a": "1", "b": "2", "c": ""}}))
		if len(made.Metadata) != 2 {
			t.Errorf("it begins with %v", made.Metadata)
		}
		if left := ok[*stripe.Customer](t)(r.api.Customers.Update(made.ID, &stripe.CustomerParams{Metadata: map[string]string{"a": ""}})).Metadata; len(left) != 1 || left["b"] != "2" {
			t.Errorf("left are %v", left)
		}
		header := http.Header{"Authorization": {"Bearer " + r.server.Key(r.app)}}
		if response, body := r.request(http.MethodPost, "/v1/customers/"+made.ID, header, url.Values{"metadata": {""}}); response.StatusCode != http.StatusOK || !strings.Contains(body, `"metadata":{}`) {
			t.Errorf("%d %s", response.StatusCode, body)
		}
	})

	t.Run("an email address has a name and a domain", func(t *testing.T) {
		for _, email := range []string{"ada", "ada@", "@example.com", "ada@example", "ada lovelace@example.com", "a@b@example.com", "ada@example.com."} {
			_, err := r.api.Customers.New(&stripe.CustomerParams{Email: &email})
			wantRefusal(t, err, http.StatusBadRequest, "email_invalid", "Invalid email address: "+email)
			params := topupParams(500)
			params.CustomerEmail = &email
			_, err = r.api.CheckoutSessions.New(params)
			wantRefusal(t, err, http.StatusBadRequest, "email_invalid", "Invalid email address: "+email)
		}
		ok[*stripe.Customer](t)(r.api.Customers.New(&stripe.CustomerParams{Email: stripe.String("ada+test@mail.example.com")}))
	})

	t.Run("a test clock begins at its frozen time", func(t *testing.T) {
		r := start(t)
		_, err := r.api.TestHelpersTestClocks.New(&stripe.TestHelpersTestClockParams{})
		wantRefusal(t, err, http.StatusBadRequest, "", "frozen_time")
		_, err = r.api.TestHelpersTestClocks.New(&stripe.TestHelpersTestClockParams{FrozenTime: stripe.Int64(r.clock().Unix() - 86400)})
		wantRefusal(t, err, http.StatusBadRequest, "", "only goes forward")
		later := r.clock().Unix() + 3*86400
		if clock := ok[*stripe.TestHelpersTestClock](t)(r.api.TestHelpersTestClocks.New(&stripe.TestHelpersTestClockParams{FrozenTime: &later})); clock.FrozenTime != later {
			t.Errorf("it shows %d, want %d", clock.FrozenTime, later)
		}
		if now := r.clock().Unix(); now != later {
			t.Errorf("the account's clock shows %d", now)
		}
	})

	t.Run("a parameter of Stripe's that it lacks is named as such, another as unknown", func(t *testing.T) {
		header := http.Header{"Authorization": {"Bearer " + r.server.Key(r.app)}}
		for _, c := range []struct{ path, param, words string }{
			{"/v1/checkout/sessions", "automatic_tax[enabled]", "does not support the parameter automatic_tax"},
			{"/v1/subscriptions", "items[0][tax_rates][0]", "does not support the parameter items[0][tax_rates]"},
			{"/v1/customers", "tax_exempt", "does not support the parameter tax_exempt"},
			{"/v1/customers", "tax_exemptt", "Received unknown parameter: tax_exemptt"},
			{"/v1/subscriptions", "items[0][nonsense]", "Received unknown parameter: items[0][nonsense]"},
		} {
			if response, body := r.request(http.MethodPost, c.path, header, url.Values{c.param: {"x"}}); response.StatusCode != http.StatusBadRequest || !strings.Contains(body, c.words) {
				t.Errorf("%s %s: %d %s", c.path, c.param, response.StatusCode, body)
			}
		}
	})
}

func TestTheSandboxShowsWhatItsUsersLookFor(t *testing.T) {
	t.Parallel()

	t.Run("customers live on a test clock, and so do their subscriptions and invoices", func(t *testing.T) {
		r := start(t)
		clock := ok[*stripe.TestHelpersTestClock](t)(r.api.TestHelpersTestClocks.New(&stripe.TestHelpersTestClockParams{FrozenTime: stripe.Int64(r.clock().Unix())}))
		customer := ok[*stripe.Customer](t)(r.api.Customers.New(&stripe.CustomerParams{TestClock: &clock.ID, PaymentMethod: stripe.String("pm_card_visa"),
			InvoiceSettings: &stripe.CustomerInvoiceSettingsParams{DefaultPaymentMethod: stripe.String("pm_card_visa")}}))
		s := ok[*stripe.Subscription](t)(r.api.Subscriptions.New(&stripe.SubscriptionParams{
			Customer: &customer.ID, Items: []*stripe.SubscriptionItemsParams{{Price: stripe.String(r.price(2900).ID)}},
		}))
		invoice := ok[*stripe.Invoice](t)(r.api.Invoices.Get(s.LatestInvoice.ID, nil))
		if customer.TestClock.ID != clock.ID || s.TestClock.ID != clock.ID || invoice.TestClock.ID != clock.ID {
			t.Errorf("clocks are %v, %v, %v", customer.TestClock, s.TestClock, invoice.TestClock)
		}
		_, err := r.api.Customers.New(&stripe.CustomerParams{TestClock: stripe.String("clock_none")})
		wantRefusal(t, err, http.StatusBadRequest, stripe.ErrorCodeResourceMissing, "No such test clock")
		if list := r.api.Customers.List(&stripe.CustomerListParams{TestClock: &clock.ID}); !list.Next() || list.Customer().ID != customer.ID {
			t.Error("they are not listed by it")
		}
	})

	t.Run("lists are filtered by one instant", func(t *testing.T) {
		r := start(t)
		first := r.customer()
		r.passRealTime(5_000_000_000)
		second := r.customer()
		header := http.Header{"Authorization": {"Bearer " + r.server.Key(r.app)}}
		_, body := r.request(http.MethodGet, fmt.Sprintf("/v1/customers?created=%d", second.Created), header, nil)
		if strings.Contains(body, first.ID) || !strings.Contains(body, second.ID) {
			t.Errorf("it lists %s", body)
		}
	})

	t.Run("a paid checkout says who paid, and where the receipt is", func(t *testing.T) {
		r := start(t)
		params := topupParams(2000)
		params.CustomerEmail = stripe.String("ada@example.com")
		session := ok[*stripe.CheckoutSession](t)(r.api.CheckoutSessions.New(params))
		r.pay(session.URL, cardPays)
		paid := r.session(session.ID, "payment_intent.latest_charge")
		if paid.CustomerDetails == nil || paid.CustomerDetails.Email != "ada@example.com" {
			t.Errorf("details are %+v", paid.CustomerDetails)
		}
		if status, _ := r.visit(paid.PaymentIntent.LatestCharge.ReceiptURL); status != http.StatusOK {
			t.Errorf("the receipt %q answers %d", paid.PaymentIntent.LatestCharge.ReceiptURL, status)
		}
		s := r.subscribe(r.price(2900), cardPays)
		invoice := ok[*stripe.Invoice](t)(r.api.Invoices.Get(s.LatestInvoice.ID, nil))
		charge := ok[*stripe.Charge](t)(r.api.Charges.Get(invoice.Charge.ID, nil))
		if charge.ReceiptURL != invoice.HostedInvoiceURL {
			t.Errorf("the receipt of an invoice is %q", charge.ReceiptURL)
		}
	})

	t.Run("a payment is announced under all of its names", func(t *testing.T) {
		r := start(t)
		r.subscribe(r.price(2900), cardPays)
		must(t, r.server.Flush(t.Context(), r.app))
		var types []string
		for _, event := range r.received {
			types = append(types, string(event.Type))
		}
		for _, want := range []string{"payment_method.attached", "charge.succeeded", "payment_intent.succeeded", "invoice.paid", "invoice.payment_succeeded"} {
			if n := len(slices.DeleteFunc(slices.Clone(types), func(kind string) bool { return kind != want })); n != 1 {
				t.Errorf("%s is sent %d times", want, n)
			}
		}
	})

	t.Run("payment methods are made, attached, listed and detached", func(t *testing.T) {
		r := start(t)
		customer := r.customer()
		method := ok[*stripe.PaymentMethod](t)(r.api.PaymentMethods.New(&stripe.PaymentMethodParams{Type: stripe.String("card"), Card: &stripe.PaymentMethodCardParams{Token: stripe.String("tok_visa")}}))
		ok[*stripe.PaymentMethod](t)(r.api.PaymentMethods.Attach(method.ID, &stripe.PaymentMethodAttachParams{Customer: &customer.ID}))
		ok[*stripe.PaymentMethod](t)(r.api.PaymentMethods.Attach("pm_card_chargeCustomerFail", &stripe.PaymentMethodAttachParams{Customer: &customer.ID}))
		_, err := r.api.PaymentMethods.Attach(method.ID, &stripe.PaymentMethodAttachParams{Customer: stripe.String(r.customer().ID)})
		wantRefusal(t, err, http.StatusBadRequest, "", "already been attached")
		_, err = r.api.PaymentMethods.Attach("pm_card_chargeDeclined", &stripe.PaymentMethodAttachParams{Customer: &customer.ID})
		wantRefusal(t, err, http.StatusPaymentRequired, "card_declined", "declined")
		_, err = r.api.PaymentMethods.New(&stripe.PaymentMethodParams{Type: stripe.String("card"), Card: &stripe.PaymentMethodCardParams{Token: stripe.String("tok_gold")}})
		wantRefusal(t, err, http.StatusBadRequest, stripe.ErrorCodeResourceMissing, "No such token")
		count := func() (n int) {
			for list := r.api.PaymentMethods.List(&stripe.PaymentMethodListParams{Customer: &customer.ID}); list.Next(); n++ {
			}
			return n
		}
		if n := count(); n != 2 {
			t.Errorf("%d are listed", n)
		}
		ok[*stripe.PaymentMethod](t)(r.api.PaymentMethods.Detach(method.ID, nil))
		if n := count(); n != 1 {
			t.Errorf("%d are listed after one was detached", n)
		}
	})
}
