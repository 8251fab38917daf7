package sandbox_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"

	"purser/ids"
)

const day = 24 * time.Hour

func TestRenewal(t *testing.T) {
	t.Parallel()

	t.Run("moves the period, and charges an hour later", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		end := time.Unix(s.CurrentPeriodEnd, 0).UTC()
		r.events()
		r.advanceTo(end.Add(-time.Second))
		r.wantEvents()
		r.advanceTo(end)
		r.wantEvents("subscription.updated")
		drafted := r.subscription(s.ID)
		if drafted.Status != "active" || drafted.CurrentPeriodStart != s.CurrentPeriodEnd || drafted.LatestInvoice.Status != "draft" || drafted.LatestInvoice.HostedInvoiceURL != "" {
			t.Errorf("at the end of the period %+v", drafted)
		}
		r.advance(time.Hour - time.Second)
		r.wantEvents()
		r.advance(time.Second)
		r.wantEvents("invoice.paid")
		paid := r.subscription(s.ID).LatestInvoice
		if paid.Status != "paid" || paid.BillingReason != "subscription_cycle" || paid.StatusTransitions.PaidAt != end.Add(time.Hour).Unix() ||
			paid.Lines.Data[0].Period.Start != s.CurrentPeriodEnd {
			t.Errorf("paid %+v", paid)
		}
	})

	t.Run("that fails holds, is tried for a week, and ends", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		r.saveCard(s.Customer.ID, cardFailsLater)
		r.events()
		failure := time.Unix(s.CurrentPeriodEnd, 0).UTC().Add(time.Hour)
		r.advanceTo(failure)
		r.wantEvents("subscription.updated", "invoice.payment_failed", "subscription.updated")
		held := r.subscription(s.ID)
		if held.Status != "past_due" || held.LatestInvoice.Status != "open" || held.LatestInvoice.AttemptCount != 1 || held.LatestInvoice.NextPaymentAttempt != failure.Add(3*day).Unix() {
			t.Errorf("held %+v", held)
		}
		r.advanceTo(failure.Add(3 * day))
		r.wantEvents("invoice.payment_failed")
		r.advanceTo(failure.Add(5 * day))
		r.wantEvents("invoice.payment_failed")
		r.advanceTo(failure.Add(7*day - time.Second))
		r.wantEvents()
		r.advance(time.Second)
		r.wantEvents("invoice.payment_failed", "subscription.deleted")
		ended := r.subscription(s.ID)
		if ended.Status != "canceled" || ended.EndedAt != failure.Add(7*day).Unix() || ended.CancellationDetails.Reason != "payment_failed" {
			t.Errorf("ended %+v", ended)
		}
		r.advance(60 * day)
		r.wantEvents()
	})

	t.Run("that fails recovers with the next try once the card works", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		r.saveCard(s.Customer.ID, cardFailsLater)
		r.advanceTo(time.Unix(s.CurrentPeriodEnd, 0).Add(time.Hour + 4*day))
		r.saveCard(s.Customer.ID, cardPays)
		r.events()
		r.advance(day)
		r.wantEvents("invoice.paid", "subscription.updated")
		if got := r.subscription(s.ID); got.Status != "active" || got.LatestInvoice.AttemptCount != 3 {
			t.Errorf("recovered %s after %d tries", got.Status, got.LatestInvoice.AttemptCount)
		}
	})

	t.Run("that fails can be paid by hand, at the page and through the API", func(t *testing.T) {
		t.Parallel()
		for _, byPage := range []bool{true, false} {
			r := start(t)
			s := r.subscribe(r.price(2900), cardPays)
			r.saveCard(s.Customer.ID, cardFailsLater)
			r.advanceTo(time.Unix(s.CurrentPeriodEnd, 0).Add(2 * time.Hour))
			invoice := r.subscription(s.ID).LatestInvoice
			r.events()
			if byPage {
				r.pay(invoice.HostedInvoiceURL, cardPays)
			} else {
				_, err := r.api.Invoices.Pay(invoice.ID, nil)
				wantRefusal(t, err, http.StatusPaymentRequired, "card_declined", "declined")
				if refused(t, err).PaymentIntent.ID != invoice.PaymentIntent.ID {
					t.Error("the error names no payment intent")
				}
				r.wantEvents("invoice.payment_failed")
				if got := ok[*stripe.Invoice](t)(r.api.Invoices.Get(invoice.ID, nil)); got.AttemptCount != 2 {
					t.Errorf("%d attempts are counted", got.AttemptCount)
				}
				paid := ok[*stripe.Invoice](t)(r.api.Invoices.Pay(invoice.ID, &stripe.InvoicePayParams{PaymentMethod: stripe.String("pm_card_visa")}))
				if !paid.Paid {
					t.Errorf("paid %+v", paid)
				}
				_, err = r.api.Invoices.Pay(invoice.ID, nil)
				wantRefusal(t, err, http.StatusBadRequest, "", "already paid")
			}
			r.wantEvents("invoice.paid", "subscription.updated")
			r.advance(10 * day)
			r.wantEvents()
			if got := r.subscription(s.ID).Status; got != "active" {
				t.Errorf("it is %s", got)
			}
		}
	})

	t.Run("asks for action with a card that always asks", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardAsksAlways)
		r.events()
		r.advanceTo(time.Unix(s.CurrentPeriodEnd, 0).Add(time.Hour))
		r.wantEvents("subscription.updated", "invoice.payment_action_required", "subscription.updated")
		r.pay(r.subscription(s.ID).LatestInvoice.HostedInvoiceURL, cardAsksAlways)
		r.wantEvents("invoice.paid", "subscription.updated")
	})

	t.Run("asks nothing with a card that has authenticated once", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.subscribe(r.price(2900), cardAsksOnce)
		r.events()
		r.advance(32 * day)
		r.wantEvents("subscription.updated", "invoice.paid")
	})

	t.Run("by bank debit is paid three days later", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		session := r.checkout(r.customer(), r.price(2900))
		r.pay(session.URL, bankSucceeds)
		r.advance(72 * time.Hour)
		s := r.session(session.ID, "subscription").Subscription
		r.events()
		r.advanceTo(time.Unix(s.CurrentPeriodEnd, 0).Add(time.Hour))
		r.wantEvents("subscription.updated")
		if got := r.subscription(s.ID).Status; got != "active" {
			t.Errorf("while the debit is under way it is %s", got)
		}
		r.advance(72 * time.Hour)
		r.wantEvents("invoice.paid")
	})

	t.Run("of a free plan costs nothing", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		free := ok[*stripe.Subscription](t)(r.api.Subscriptions.New(&stripe.SubscriptionParams{
			Customer: stripe.String(r.customer().ID), Items: []*stripe.SubscriptionItemsParams{{Price: stripe.String(r.price(0).ID)}},
		}))
		r.events()
		r.advance(32 * day)
		r.wantEvents("subscription.updated", "invoice.paid")
		if got := r.subscription(free.ID).LatestInvoice; got.AmountPaid != 0 || got.PaymentIntent != nil || got.Charge != nil {
			t.Errorf("it cost %+v", got)
		}
	})

	t.Run("keeps the anchor's day without drift", func(t *testing.T) {
		t.Parallel()
		for from, want := range map[string][]string{
			"2026-01-31": {"2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31"},
			"2028-01-31": {"2028-01-31", "2028-02-29", "2028-03-31", "2028-04-30", "2028-05-31"},
			"2026-12-30": {"2026-12-30", "2027-01-30", "2027-02-28", "2027-03-30", "2027-04-30"},
		} {
			r := startOn(t, from)
			s := r.subscribe(r.price(2900), cardPays)
			r.advance(130 * day)
			invoices := r.api.Invoices.List(&stripe.InvoiceListParams{Subscription: stripe.String(s.ID)})
			var starts []string
			for invoices.Next() {
				starts = append(starts, time.Unix(invoices.Invoice().Lines.Data[0].Period.Start, 0).UTC().Format(time.DateOnly))
			}
			must(t, invoices.Err())
			slices.Reverse(starts)
			if !slices.Equal(starts, want) {
				t.Errorf("periods begin on %v, want %v", starts, want)
			}
		}
	})

	t.Run("happens twelve times in a year that passes in one request", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		r.events()
		// Applying a webhook reads the account at the time of its event.
		var seen []int64
		r.settle = func(context.Context, ids.ID) error {
			r.mu.Lock()
			fresh := r.received
			r.received = nil
			r.mu.Unlock()
			for _, event := range fresh {
				if event.Type == "invoice.paid" {
					seen = append(seen, event.Created)
					if now := r.clock().Unix(); now != event.Created {
						t.Errorf("the clock shows %d for an event of %d", now, event.Created)
					}
				}
			}
			return nil
		}
		r.advanceTo(r.clock().AddDate(1, 0, 0).Add(2 * time.Hour))
		if len(seen) != 12 || !slices.IsSorted(seen) {
			t.Errorf("%d renewals: %v", len(seen), seen)
		}
		if got := r.subscription(s.ID); got.Status != "active" || got.CurrentPeriodStart != time.Unix(s.CurrentPeriodStart, 0).UTC().AddDate(1, 0, 0).Unix() {
			t.Errorf("after a year %+v", got)
		}
	})

	t.Run("can be previewed", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		preview := ok[*stripe.Invoice](t)(r.api.Invoices.Upcoming(&stripe.InvoiceUpcomingParams{Subscription: stripe.String(s.ID)}))
		if preview.AmountDue != 2900 || preview.Lines.Data[0].Period.Start != s.CurrentPeriodEnd {
			t.Errorf("preview %+v", preview)
		}
	})
}

func TestFirstPayment(t *testing.T) {
	t.Parallel()

	t.Run("that is missing ends the subscription after 23 hours", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		customer := ok[*stripe.Customer](t)(r.api.Customers.New(&stripe.CustomerParams{PaymentMethod: stripe.String("pm_card_authenticationRequired"),
			InvoiceSettings: &stripe.CustomerInvoiceSettingsParams{DefaultPaymentMethod: stripe.String("pm_card_authenticationRequired")}}))
		s := ok[*stripe.Subscription](t)(r.api.Subscriptions.New(&stripe.SubscriptionParams{
			Customer: stripe.String(customer.ID), Items: []*stripe.SubscriptionItemsParams{{Price: stripe.String(r.price(2900).ID)}},
		}))
		r.wantEvents("subscription.created", "invoice.payment_action_required")
		if s.Status != "incomplete" {
			t.Errorf("it is %s", s.Status)
		}
		r.advance(23 * time.Hour)
		r.wantEvents("invoice.voided", "subscription.updated")
		if got := r.subscription(s.ID).Status; got != "incomplete_expired" {
			t.Errorf("it is %s", got)
		}
	})

	t.Run("that is declined leaves nothing where the caller wants none", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		customer := ok[*stripe.Customer](t)(r.api.Customers.New(&stripe.CustomerParams{PaymentMethod: stripe.String("pm_card_chargeCustomerFail"),
			InvoiceSettings: &stripe.CustomerInvoiceSettingsParams{DefaultPaymentMethod: stripe.String("pm_card_chargeCustomerFail")}}))
		_, err := r.api.Subscriptions.New(&stripe.SubscriptionParams{
			Customer: stripe.String(customer.ID), Items: []*stripe.SubscriptionItemsParams{{Price: stripe.String(r.price(2900).ID)}},
			PaymentBehavior: stripe.String("error_if_incomplete"),
		})
		wantRefusal(t, err, http.StatusPaymentRequired, "card_declined", "declined")
		r.wantEvents()
	})
}

func TestATestClockBeginsNoFurtherAheadThanItCanBeAdvanced(t *testing.T) {
	t.Parallel()
	r := start(t)
	begin := func(d time.Duration) error {
		_, err := r.api.TestHelpersTestClocks.New(&stripe.TestHelpersTestClockParams{FrozenTime: stripe.Int64(r.clock().Add(d).Unix())})
		return err
	}
	must(t, begin(365*day)) // nothing renews
	r.subscribe(r.price(2900), cardPays)
	wantRefusal(t, begin(63*day), http.StatusBadRequest, "", "two intervals")
	must(t, begin(31*day))
}
