package sandbox_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
)

func TestSubscriptionCheckout(t *testing.T) {
	t.Parallel()

	t.Run("starts the subscription with the card, and tells in the order of real traffic", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		session := r.checkout(r.customer(), r.price(2900))
		if session.Status != "open" || session.PaymentStatus != "unpaid" || session.AmountTotal != 2900 || session.URL == "" {
			t.Errorf("opened %+v", session)
		}
		if to := r.pay(session.URL, cardPays); to != "http://shop.test/thanks?id="+session.ID {
			t.Errorf("sent to %s", to)
		}
		r.wantEvents("subscription.created", "subscription.updated", "invoice.paid", "checkout.session.completed")

		done := r.session(session.ID, "subscription.latest_invoice.payment_intent", "line_items")
		s, invoice := done.Subscription, done.Subscription.LatestInvoice
		if done.Status != "complete" || done.PaymentStatus != "paid" || done.LineItems.Data[0].AmountTotal != 2900 {
			t.Errorf("completed as %+v", done)
		}
		if s.Status != "active" || s.Metadata["op"] != "op_1" || s.DefaultPaymentMethod == nil {
			t.Errorf("started %+v", s)
		}
		if want := r.clock().AddDate(0, 1, 0).Unix(); s.CurrentPeriodEnd != want {
			t.Errorf("the period ends %d, want %d", s.CurrentPeriodEnd, want)
		}
		if invoice.Status != "paid" || invoice.BillingReason != "subscription_create" || invoice.AmountPaid != 2900 ||
			invoice.PaymentIntent.Status != "succeeded" || invoice.SubscriptionDetails.Metadata["op"] != "op_1" {
			t.Errorf("invoiced %+v", invoice)
		}
		line := invoice.Lines.Data[0]
		if line.Type != "subscription" || line.Proration || line.Period.End != s.CurrentPeriodEnd || line.Price.ID != s.Items.Data[0].Price.ID {
			t.Errorf("line %+v", line)
		}
	})

	for _, refusal := range []struct{ name, card, words string }{
		{"a declined card", cardDeclined, "Your card was declined."},
		{"a card without funds", cardNoFunds, "insufficient funds"},
		{"a card that fails when it is charged", cardFailsLater, "declined"},
		{"a number that is no test card", "5555555555554444", "Use one of the test cards"},
		{"no number", "", "Use one of the test cards"},
	} {
		t.Run("answers 402 to "+refusal.name+", makes nothing, and takes another card", func(t *testing.T) {
			t.Parallel()
			r := start(t)
			session := r.checkout(r.customer(), r.price(2900))
			status, _, body := r.submit(session.URL, url.Values{"card": {refusal.card}})
			if status != http.StatusPaymentRequired || !strings.Contains(body, refusal.words) {
				t.Errorf("%d without %q", status, refusal.words)
			}
			if refusal.card != "" && strings.Contains(r.storedText(), refusal.card) {
				t.Error("the number was kept")
			}
			r.wantEvents()
			r.pay(session.URL, cardPays)
			r.wantEvents("subscription.created", "subscription.updated", "invoice.paid", "checkout.session.completed")
		})
	}

	t.Run("asks for authentication, which can fail and be tried again", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		session := r.checkout(r.customer(), r.price(2900))
		status, bank, _ := r.submit(session.URL, url.Values{"card": {cardAsksAlways}})
		if status != http.StatusSeeOther || !strings.Contains(bank, authenticatePath) {
			t.Fatalf("%d to %s", status, bank)
		}
		if status, body := r.visit(bank); status != http.StatusOK || !strings.Contains(body, "29.00 USD") || !strings.Contains(body, "3184") {
			t.Errorf("the bank shows %d", status)
		}
		status, back, _ := r.submit(bank, url.Values{"result": {"fail"}})
		if status != http.StatusSeeOther || back != session.URL {
			t.Errorf("%d to %s", status, back)
		}
		if _, body := r.visit(back); !strings.Contains(body, "not authenticated") {
			t.Error("the reason is not shown")
		}
		if status, _ := r.visit(bank); status != http.StatusNotFound {
			t.Errorf("the used question answers %d", status)
		}
		r.wantEvents()
		r.pay(session.URL, cardAsksAlways)
		r.wantEvents("subscription.created", "subscription.updated", "invoice.paid", "checkout.session.completed")
	})

	t.Run("expires when it is not paid, and cannot be paid afterwards", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		session := r.checkout(r.customer(), r.price(2900), func(p *stripe.CheckoutSessionParams) {
			p.ExpiresAt = stripe.Int64(r.clock().Add(time.Hour).Unix())
		})
		r.advance(time.Hour - time.Second)
		r.wantEvents()
		r.advance(time.Second)
		r.wantEvents("checkout.session.expired")
		if got := r.session(session.ID); got.Status != "expired" || got.URL != "" {
			t.Errorf("it is %s at %q", got.Status, got.URL)
		}
		status, _, body := r.submit(session.URL, url.Values{"card": {cardPays}})
		if status != http.StatusConflict || !strings.Contains(body, "expired") {
			t.Errorf("paying answers %d", status)
		}
	})

	t.Run("expires by itself when real time passes, too", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		session := r.checkout(r.customer(), r.price(2900))
		r.passRealTime(25 * time.Hour)
		if got := r.session(session.ID).Status; got != "expired" {
			t.Errorf("it is %s", got)
		}
		r.wantEvents("checkout.session.expired")
	})

	t.Run("cancels to the caller's address and stays open", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		session := r.checkout(r.customer(), r.price(2900))
		if status, to, _ := r.submit(session.URL, url.Values{"action": {"cancel"}}); status != http.StatusSeeOther || to != "http://shop.test/back" {
			t.Errorf("%d to %s", status, to)
		}
		if got := r.session(session.ID).Status; got != "open" {
			t.Errorf("it is %s", got)
		}
		if status, _, _ := r.submit(session.URL, url.Values{"action": {"expire"}}); status != http.StatusSeeOther {
			t.Errorf("expiring answers %d", status)
		}
		r.wantEvents("checkout.session.expired")
		_, err := r.api.CheckoutSessions.Expire(session.ID, nil)
		wantRefusal(t, err, http.StatusBadRequest, "", "status of `expired`")
	})

	t.Run("starts a free plan without a card", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		session := r.checkout(r.customer(), r.price(0), func(p *stripe.CheckoutSessionParams) {
			p.PaymentMethodCollection = stripe.String("if_required")
		})
		if status, to, _ := r.submit(session.URL, url.Values{"action": {"start"}}); status != http.StatusSeeOther || !strings.HasPrefix(to, "http://shop.test/thanks") {
			t.Errorf("%d to %s", status, to)
		}
		r.wantEvents("subscription.created", "invoice.paid", "checkout.session.completed")
		if got := r.session(session.ID); got.PaymentStatus != "no_payment_required" {
			t.Errorf("payment_status %s", got.PaymentStatus)
		}
		paid := r.checkout(r.customer(), r.price(2900))
		if status, _, _ := r.submit(paid.URL, url.Values{"action": {"start"}}); status != http.StatusPaymentRequired {
			t.Errorf("a paid plan starts without a card: %d", status)
		}
	})

	t.Run("waits for a bank debit that works", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		session := r.checkout(r.customer(), r.price(2900))
		r.pay(session.URL, bankSucceeds)
		r.wantEvents("subscription.created", "checkout.session.completed")
		got := r.session(session.ID, "subscription")
		if got.PaymentStatus != "unpaid" || got.Subscription.Status != "incomplete" {
			t.Errorf("%s, subscription %s", got.PaymentStatus, got.Subscription.Status)
		}
		r.advance(72 * time.Hour)
		r.wantEvents("subscription.updated", "invoice.paid", "checkout.session.async_payment_succeeded")
		got = r.session(session.ID, "subscription")
		if got.PaymentStatus != "paid" || got.Subscription.Status != "active" {
			t.Errorf("%s, subscription %s", got.PaymentStatus, got.Subscription.Status)
		}
	})

	t.Run("ends with a bank debit that fails", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		session := r.checkout(r.customer(), r.price(2900))
		r.pay(session.URL, bankFails)
		r.events()
		r.advance(72 * time.Hour)
		r.wantEvents("invoice.payment_failed", "invoice.voided", "subscription.updated", "checkout.session.async_payment_failed")
		if got := r.session(session.ID, "subscription"); got.PaymentStatus != "unpaid" || got.Subscription.Status != "incomplete_expired" {
			t.Errorf("%s, subscription %s", got.PaymentStatus, got.Subscription.Status)
		}
	})

	t.Run("refuses what Stripe refuses", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		customer, price := r.customer(), r.price(2900)
		archived := r.price(2900, func(p *stripe.PriceParams) { p.Active = stripe.Bool(false) })
		now := r.clock()
		for name, refusal := range map[string]struct {
			words  string
			change func(*stripe.CheckoutSessionParams)
		}{
			"customer and address":  {"only specify one", func(p *stripe.CheckoutSessionParams) { p.CustomerEmail = stripe.String("a@b.c") }},
			"an unknown customer":   {"No such customer", func(p *stripe.CheckoutSessionParams) { p.Customer = stripe.String("cus_x") }},
			"an archived price":     {"inactive", func(p *stripe.CheckoutSessionParams) { p.LineItems[0].Price = stripe.String(archived.ID) }},
			"a short life":          {"30 minutes", func(p *stripe.CheckoutSessionParams) { p.ExpiresAt = stripe.Int64(now.Add(30*time.Minute).Unix() - 1) }},
			"a long life":           {"24 hours", func(p *stripe.CheckoutSessionParams) { p.ExpiresAt = stripe.Int64(now.Add(24*time.Hour).Unix() + 1) }},
			"an address of no page": {"valid URL", func(p *stripe.CheckoutSessionParams) { p.SuccessURL = stripe.String("javascript:alert(1)") }},
			"payment mode":          {"recurring price", func(p *stripe.CheckoutSessionParams) { p.Mode = stripe.String("payment"); p.SubscriptionData = nil }},
		} {
			params := &stripe.CheckoutSessionParams{
				Mode: stripe.String("subscription"), Customer: stripe.String(customer.ID), SuccessURL: stripe.String("http://shop.test/"),
				LineItems: []*stripe.CheckoutSessionLineItemParams{{Price: stripe.String(price.ID), Quantity: stripe.Int64(1)}},
			}
			refusal.change(params)
			if _, err := r.api.CheckoutSessions.New(params); err == nil || !strings.Contains(refused(t, err).Msg, refusal.words) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})

	t.Run("refuses a second currency for one customer", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		_, err := r.api.CheckoutSessions.New(&stripe.CheckoutSessionParams{
			Mode: stripe.String("subscription"), Customer: stripe.String(s.Customer.ID), SuccessURL: stripe.String("http://shop.test/"),
			LineItems: []*stripe.CheckoutSessionLineItemParams{{Price: stripe.String(r.price(900, inEuro).ID), Quantity: stripe.Int64(1)}},
		})
		wantRefusal(t, err, http.StatusBadRequest, "", "combine currencies")
	})
}

func TestPaymentCheckout(t *testing.T) {
	t.Parallel()

	t.Run("takes the money once", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		session := r.topup(500)
		r.pay(session.URL, cardPays)
		r.wantEvents("checkout.session.completed")
		got := r.session(session.ID, "payment_intent.latest_charge")
		if got.PaymentStatus != "paid" || got.PaymentIntent.Status != "succeeded" || got.PaymentIntent.Metadata["topup"] != "t_1" ||
			got.PaymentIntent.LatestCharge.Amount != 500 || !got.PaymentIntent.LatestCharge.Paid || got.ClientReferenceID != "chk_1" {
			t.Errorf("paid as %+v", got)
		}
		for _, card := range []string{cardPays, cardDeclined, cardAsksAlways} {
			if status, _, _ := r.submit(session.URL, url.Values{"card": {card}}); status != http.StatusConflict {
				t.Errorf("a second payment with %s answers %d", card, status)
			}
		}
		r.wantEvents()
	})

	t.Run("credits nothing until a bank debit works", func(t *testing.T) {
		t.Parallel()
		for bank, want := range map[string]struct{ event, status string }{
			bankSucceeds: {"checkout.session.async_payment_succeeded", "paid"},
			bankFails:    {"checkout.session.async_payment_failed", "unpaid"},
		} {
			r := start(t)
			session := r.topup(500)
			r.pay(session.URL, bank)
			r.wantEvents("checkout.session.completed")
			if got := r.session(session.ID, "payment_intent"); got.PaymentStatus != "unpaid" || got.PaymentIntent.Status != "processing" {
				t.Errorf("%s: %s, %s", bank, got.PaymentStatus, got.PaymentIntent.Status)
			}
			r.advance(72 * time.Hour)
			r.wantEvents(want.event)
			if got := r.session(session.ID).PaymentStatus; string(got) != want.status {
				t.Errorf("%s: %s", bank, got)
			}
		}
	})

	t.Run("refuses less than the smallest charge", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		_, err := r.api.CheckoutSessions.New(topupParams(49))
		wantRefusal(t, err, http.StatusBadRequest, "amount_too_small", "at least 50")
		ok[*stripe.CheckoutSession](t)(r.api.CheckoutSessions.New(topupParams(50)))
	})
}
