package sandbox_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
)

func TestReads(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.subscribe(r.price(2900), cardDisputed)
	invoice := s.LatestInvoice

	t.Run("show each object under its id", func(t *testing.T) {
		price := s.Items.Data[0].Price
		dispute := r.api.Disputes.List(&stripe.DisputeListParams{PaymentIntent: stripe.String(invoice.PaymentIntent.ID)})
		event := r.api.Events.List(&stripe.EventListParams{Type: stripe.String("invoice.paid")})
		if !dispute.Next() || !event.Next() {
			t.Fatalf("%v, %v", dispute.Err(), event.Err())
		}
		shown := map[string]string{
			price.ID:                  ok[*stripe.Price](t)(r.api.Prices.Get(price.ID, nil)).ID,
			price.Product.ID:          ok[*stripe.Product](t)(r.api.Products.Get(price.Product.ID, nil)).ID,
			invoice.ID:                ok[*stripe.Invoice](t)(r.api.Invoices.Get(invoice.ID, nil)).ID,
			invoice.PaymentIntent.ID:  ok[*stripe.PaymentIntent](t)(r.api.PaymentIntents.Get(invoice.PaymentIntent.ID, nil)).ID,
			s.DefaultPaymentMethod.ID: ok[*stripe.PaymentMethod](t)(r.api.PaymentMethods.Get(s.DefaultPaymentMethod.ID, nil)).ID,
			dispute.Dispute().ID:      ok[*stripe.Dispute](t)(r.api.Disputes.Get(dispute.Dispute().ID, nil)).ID,
			event.Event().ID:          ok[*stripe.Event](t)(r.api.Events.Get(event.Event().ID, nil)).ID,
		}
		for id, got := range shown {
			if got != id {
				t.Errorf("%s shows %s", id, got)
			}
		}
		if account := ok[*stripe.Account](t)(r.api.Accounts.Get()); account.ID == "" || !account.ChargesEnabled {
			t.Errorf("the account is %+v", account)
		}
	})

	t.Run("list checkouts by what is known of them", func(t *testing.T) {
		other := r.topup(500)
		for name, c := range map[string]struct {
			params *stripe.CheckoutSessionListParams
			want   int
		}{
			"customer":     {&stripe.CheckoutSessionListParams{Customer: stripe.String(s.Customer.ID)}, 1},
			"subscription": {&stripe.CheckoutSessionListParams{Subscription: stripe.String(s.ID)}, 1},
			"status":       {&stripe.CheckoutSessionListParams{Status: stripe.String("open")}, 1},
			"nothing":      {&stripe.CheckoutSessionListParams{}, 2},
		} {
			list, found := r.api.CheckoutSessions.List(c.params), 0
			for list.Next() {
				found++
			}
			if must(t, list.Err()); found != c.want {
				t.Errorf("by %s: %d, want %d", name, found, c.want)
			}
		}
		ok[*stripe.CheckoutSession](t)(r.api.CheckoutSessions.Expire(other.ID, nil))
	})

	t.Run("page through the lines of an invoice", func(t *testing.T) {
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		for n := range 6 {
			ok[*stripe.Subscription](t)(r.api.Subscriptions.Update(s.ID, &stripe.SubscriptionParams{
				Items:             []*stripe.SubscriptionItemsParams{{ID: stripe.String(s.Items.Data[0].ID), Quantity: stripe.Int64(int64(2 - n%2))}},
				ProrationBehavior: stripe.String("create_prorations"),
			}))
		}
		r.advanceTo(time.Unix(s.CurrentPeriodEnd, 0))
		renewal := r.subscription(s.ID).LatestInvoice
		if len(renewal.Lines.Data) != 10 || !renewal.Lines.HasMore {
			t.Fatalf("the invoice shows %d lines, and more: %v", len(renewal.Lines.Data), renewal.Lines.HasMore)
		}
		lines := func(params stripe.ListParams) (found []*stripe.InvoiceLineItem) {
			list := r.api.Invoices.ListLines(&stripe.InvoiceListLinesParams{ListParams: params, Invoice: stripe.String(renewal.ID)})
			for list.Next() {
				found = append(found, list.InvoiceLineItem())
			}
			must(t, list.Err())
			return found
		}
		all := lines(stripe.ListParams{Limit: stripe.Int64(5)})
		if len(all) != 13 || all[9].ID != renewal.Lines.Data[9].ID || all[11].Type != "invoiceitem" || all[12].Type != "subscription" {
			t.Fatalf("the list has %d lines", len(all))
		}
		before := lines(stripe.ListParams{EndingBefore: stripe.String(all[4].ID), Limit: stripe.Int64(2), Single: true})
		if len(before) != 2 || before[1].ID != all[2].ID {
			t.Errorf("before the fifth there are %d lines", len(before))
		}
		unknown := r.api.Invoices.ListLines(&stripe.InvoiceListLinesParams{ListParams: stripe.ListParams{StartingAfter: stripe.String("il_none")}, Invoice: stripe.String(renewal.ID)})
		if unknown.Next() {
			t.Error("a list begins after a line that there is not")
		}
		wantRefusal(t, unknown.Err(), http.StatusBadRequest, "resource_missing", "il_none")
	})

	t.Run("leave ended subscriptions out, unless they are asked for", func(t *testing.T) {
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		ok[*stripe.Subscription](t)(r.api.Subscriptions.Cancel(s.ID, nil))
		for status, want := range map[string]int{"": 0, "all": 1, "canceled": 1, "ended": 1, "active": 0} {
			params, found := &stripe.SubscriptionListParams{}, 0
			if status != "" {
				params.Status = stripe.String(status)
			}
			list := r.api.Subscriptions.List(params)
			for list.Next() {
				found++
			}
			if must(t, list.Err()); found != want {
				t.Errorf("%q: %d, want %d", status, found, want)
			}
		}
	})

	t.Run("say what is not there", func(t *testing.T) {
		_, err := r.api.Subscriptions.Get("sub_none", nil)
		wantRefusal(t, err, http.StatusNotFound, "resource_missing", "No such subscription: 'sub_none'")
		_, err = r.api.Invoices.Get("in_none", nil)
		wantRefusal(t, err, http.StatusNotFound, "resource_missing", "No such invoice")
	})
}

func TestTestClock(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.subscribe(r.price(2900), cardPays)
	r.events()
	clock := ok[*stripe.TestHelpersTestClock](t)(r.api.TestHelpersTestClocks.New(&stripe.TestHelpersTestClockParams{FrozenTime: stripe.Int64(r.clock().Unix())}))
	advance := func(to time.Time) error {
		_, err := r.api.TestHelpersTestClocks.Advance(clock.ID, &stripe.TestHelpersTestClockAdvanceParams{FrozenTime: stripe.Int64(to.Unix())})
		return err
	}
	now := r.clock()
	wantRefusal(t, advance(now), http.StatusBadRequest, "", "only be advanced")
	wantRefusal(t, advance(now.AddDate(0, 2, 0).Add(time.Second)), http.StatusBadRequest, "", "two intervals")
	must(t, advance(now.AddDate(0, 2, 0)))
	if got := r.clock(); !got.Equal(now.AddDate(0, 2, 0)) {
		t.Errorf("the account's clock shows %s", got)
	}
	r.wantEvents("subscription.updated", "invoice.paid", "subscription.updated")
	if got := ok[*stripe.TestHelpersTestClock](t)(r.api.TestHelpersTestClocks.Get(clock.ID, nil)); got.FrozenTime != now.AddDate(0, 2, 0).Unix() || got.Status != "ready" {
		t.Errorf("it shows %+v", got)
	}
	if got := r.subscription(s.ID); got.CurrentPeriodStart != now.AddDate(0, 2, 0).Unix() {
		t.Errorf("the period begins %d", got.CurrentPeriodStart)
	}
}
