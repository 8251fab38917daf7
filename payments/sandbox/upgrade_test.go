package sandbox_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
)

// upgrade changes the plan as billing does, and nothing else.
func (r *harness) upgrade(s *stripe.Subscription, to *stripe.Price, change ...func(*stripe.SubscriptionParams)) (*stripe.Subscription, error) {
	params := &stripe.SubscriptionParams{
		Items:           []*stripe.SubscriptionItemsParams{{ID: stripe.String(s.Items.Data[0].ID), Price: stripe.String(to.ID), Quantity: stripe.Int64(1)}},
		PaymentBehavior: stripe.String("pending_if_incomplete"), ProrationBehavior: stripe.String("none"), BillingCycleAnchorNow: stripe.Bool(true),
	}
	params.AddExpand("latest_invoice.payment_intent")
	for _, c := range change {
		c(params)
	}
	return r.api.Subscriptions.Update(s.ID, params)
}

// saveCard changes the card at the portal.
func (r *harness) saveCard(customer, card string) {
	r.Helper()
	portal := ok[*stripe.BillingPortalSession](r)(r.api.BillingPortalSessions.New(&stripe.BillingPortalSessionParams{
		Customer: stripe.String(customer), ReturnURL: stripe.String("http://shop.test/"),
	}))
	if status, _, body := r.submit(portal.URL, url.Values{"card": {card}}); status != http.StatusSeeOther {
		r.Fatalf("the portal answers %d: %s", status, body)
	}
}

func TestUpgrade(t *testing.T) {
	t.Parallel()

	t.Run("that is paid starts a full new period at once", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		big := r.price(9900)
		r.events()
		r.advance(10 * 24 * time.Hour)
		got := ok[*stripe.Subscription](t)(r.upgrade(s, big))
		r.wantEvents("subscription.updated", "invoice.paid")
		invoice := got.LatestInvoice
		if got.PendingUpdate != nil || got.Items.Data[0].Price.ID != big.ID || got.Items.Data[0].ID != s.Items.Data[0].ID ||
			got.CurrentPeriodStart != r.clock().Unix() || got.CurrentPeriodEnd != r.clock().AddDate(0, 1, 0).Unix() {
			t.Errorf("changed to %+v", got)
		}
		if invoice.Status != "paid" || invoice.BillingReason != "subscription_update" || invoice.AmountPaid != 9900 || len(invoice.Lines.Data) != 1 {
			t.Errorf("invoiced %+v", invoice)
		}
		if line := invoice.Lines.Data[0]; line.Proration || line.Period.Start != got.CurrentPeriodStart || line.Period.End != got.CurrentPeriodEnd {
			t.Errorf("line %+v", line)
		}
	})

	t.Run("that needs authentication waits, and applies when the invoice is paid", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s, big := r.subscribe(r.price(2900), cardAsksAlways), r.price(9900)
		r.events()
		asked := r.clock()
		got := ok[*stripe.Subscription](t)(r.upgrade(s, big))
		r.wantEvents("subscription.updated", "invoice.payment_action_required")
		if got.Status != "active" || got.Items.Data[0].Price.ID == big.ID || got.CurrentPeriodEnd != s.CurrentPeriodEnd {
			t.Errorf("the old plan is gone: %+v", got)
		}
		pending := got.PendingUpdate
		if pending == nil || pending.ExpiresAt != asked.Add(23*time.Hour).Unix() || pending.SubscriptionItems[0].Price.ID != big.ID || pending.BillingCycleAnchor != asked.Unix() {
			t.Fatalf("pending %+v", pending)
		}
		if got.LatestInvoice.Status != "open" || got.LatestInvoice.HostedInvoiceURL == "" || got.LatestInvoice.PaymentIntent.Status != "requires_action" {
			t.Errorf("invoiced %+v", got.LatestInvoice)
		}
		r.advance(5 * time.Hour)
		page := got.LatestInvoice.HostedInvoiceURL
		if to := r.pay(page, cardAsksAlways); to != page {
			t.Errorf("sent to %s", to)
		}
		r.wantEvents("invoice.paid", "subscription.pending_update_applied", "subscription.updated")
		applied := r.subscription(s.ID)
		if applied.PendingUpdate != nil || applied.Items.Data[0].Price.ID != big.ID || applied.CurrentPeriodStart != asked.Unix() {
			t.Errorf("applied %+v", applied)
		}
		if _, body := r.visit(page); !strings.Contains(body, "Paid") {
			t.Error("the page does not say that it is paid")
		}
	})

	t.Run("that is declined waits for another card", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s, big := r.subscribe(r.price(2900), cardPays), r.price(9900)
		r.saveCard(s.Customer.ID, cardFailsLater)
		r.events()
		got := ok[*stripe.Subscription](t)(r.upgrade(s, big))
		r.wantEvents("subscription.updated", "invoice.payment_failed")
		if got.PendingUpdate == nil || got.LatestInvoice.PaymentIntent.LastPaymentError.DeclineCode != "generic_decline" {
			t.Errorf("got %+v", got)
		}
		page := got.LatestInvoice.HostedInvoiceURL
		if status, _, body := r.submit(page, url.Values{"card": {cardDeclined}}); status != http.StatusPaymentRequired || !strings.Contains(body, "declined") {
			t.Errorf("a declined card answers %d", status)
		}
		r.wantEvents("invoice.payment_failed")
		r.pay(page, cardPays)
		r.wantEvents("invoice.paid", "subscription.pending_update_applied", "subscription.updated")
	})

	t.Run("that is not paid expires after 23 hours", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardAsksAlways)
		got := ok[*stripe.Subscription](t)(r.upgrade(s, r.price(9900)))
		r.events()
		r.advance(23*time.Hour - time.Second)
		r.wantEvents()
		r.advance(time.Second)
		r.wantEvents("invoice.voided", "subscription.pending_update_expired", "subscription.updated")
		if after := r.subscription(s.ID); after.PendingUpdate != nil || after.Items.Data[0].Price.UnitAmount != 2900 || after.LatestInvoice.Status != "void" {
			t.Errorf("after %+v", after)
		}
		status, _, body := r.submit(got.LatestInvoice.HostedInvoiceURL, url.Values{"card": {cardPays}})
		if status != http.StatusConflict || !strings.Contains(body, "void") {
			t.Errorf("paying the old invoice answers %d", status)
		}
	})

	t.Run("near the end of the period expires with it, and the old plan renews", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardAsksOnce)
		r.advanceTo(time.Unix(s.CurrentPeriodEnd, 0).Add(-2 * time.Hour))
		r.saveCard(s.Customer.ID, cardFailsLater)
		got := ok[*stripe.Subscription](t)(r.upgrade(s, r.price(9900)))
		if got.PendingUpdate.ExpiresAt != s.CurrentPeriodEnd {
			t.Errorf("expires %d, want %d", got.PendingUpdate.ExpiresAt, s.CurrentPeriodEnd)
		}
		r.saveCard(s.Customer.ID, cardPays)
		r.events()
		r.advance(2 * time.Hour)
		r.wantEvents("invoice.voided", "subscription.pending_update_expired", "subscription.updated", "subscription.updated")
		r.advance(time.Hour)
		r.wantEvents("invoice.paid")
		if after := r.subscription(s.ID); after.LatestInvoice.AmountPaid != 2900 {
			t.Errorf("renewed for %d", after.LatestInvoice.AmountPaid)
		}
	})

	t.Run("again voids the first invoice", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardAsksAlways)
		first := ok[*stripe.Subscription](t)(r.upgrade(s, r.price(9900)))
		r.events()
		second := ok[*stripe.Subscription](t)(r.upgrade(s, r.price(19900)))
		r.wantEvents("invoice.voided", "subscription.updated", "invoice.payment_action_required")
		if got := ok[*stripe.Invoice](t)(r.api.Invoices.Get(first.LatestInvoice.ID, nil)); got.Status != "void" {
			t.Errorf("the first is %s", got.Status)
		}
		r.pay(second.LatestInvoice.HostedInvoiceURL, cardPays)
		if got := r.subscription(s.ID).Items.Data[0].Price.UnitAmount; got != 19900 {
			t.Errorf("applied %d", got)
		}
	})

	t.Run("is given up by voiding its invoice", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardAsksAlways)
		got := ok[*stripe.Subscription](t)(r.upgrade(s, r.price(9900)))
		r.events()
		ok[*stripe.Invoice](t)(r.api.Invoices.VoidInvoice(got.LatestInvoice.ID, nil))
		r.wantEvents("invoice.voided", "subscription.updated")
		after := r.subscription(s.ID)
		if after.PendingUpdate != nil || after.LatestInvoice.Status != "void" || after.LatestInvoice.PaymentIntent.Status != "canceled" {
			t.Errorf("after %+v", after)
		}
		r.advance(24 * time.Hour)
		r.wantEvents()
		_, err := r.api.Invoices.VoidInvoice(got.LatestInvoice.ID, nil)
		wantRefusal(t, err, http.StatusBadRequest, "invoice_not_open", "isn't open")
		_, err = r.api.Invoices.Pay(got.LatestInvoice.ID, nil)
		wantRefusal(t, err, http.StatusBadRequest, "", "void")
	})

	t.Run("without a payment method is refused, and leaves nothing", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		free := ok[*stripe.Subscription](t)(r.api.Subscriptions.New(&stripe.SubscriptionParams{
			Customer: stripe.String(r.customer().ID), Items: []*stripe.SubscriptionItemsParams{{Price: stripe.String(r.price(0).ID)}},
		}))
		r.wantEvents("subscription.created", "invoice.paid")
		_, err := r.upgrade(free, r.price(2900))
		wantRefusal(t, err, http.StatusBadRequest, "resource_missing", "no attached payment source")
		if after := r.subscription(free.ID); after.PendingUpdate != nil || after.LatestInvoice.ID != free.LatestInvoice.ID {
			t.Errorf("after %+v", after)
		}
		r.wantEvents()
	})

	t.Run("takes no parameter that could take effect unpaid", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s, big := r.subscribe(r.price(2900), cardPays), r.price(9900)
		for name, change := range map[string]func(*stripe.SubscriptionParams){
			"metadata":               func(p *stripe.SubscriptionParams) { p.Metadata = map[string]string{"a": "b"} },
			"cancel_at_period_end":   func(p *stripe.SubscriptionParams) { p.CancelAtPeriodEnd = stripe.Bool(false) },
			"default_payment_method": func(p *stripe.SubscriptionParams) { p.DefaultPaymentMethod = stripe.String("pm_card_visa") },
			"off_session":            func(p *stripe.SubscriptionParams) { p.OffSession = stripe.Bool(true) },
			"items[deleted]":         func(p *stripe.SubscriptionParams) { p.Items[0].Deleted = stripe.Bool(true) },
		} {
			_, err := r.upgrade(s, big, change)
			wantRefusal(t, err, http.StatusBadRequest, "", "`"+name+"` is not supported")
		}
		_, err := r.upgrade(s, big, func(p *stripe.SubscriptionParams) { p.ProrationDate = stripe.Int64(1) })
		wantRefusal(t, err, http.StatusBadRequest, "", "proration_date")
		_, err = r.upgrade(s, r.price(900, inEuro))
		wantRefusal(t, err, http.StatusBadRequest, "", "combine currencies")
		archived := r.price(2900, func(p *stripe.PriceParams) { p.Active = stripe.Bool(false) })
		_, err = r.upgrade(s, archived)
		wantRefusal(t, err, http.StatusBadRequest, "", "inactive")
		ok[*stripe.Product](t)(r.api.Products.Update(big.Product.ID, &stripe.ProductParams{Active: stripe.Bool(false)}))
		_, err = r.upgrade(s, big)
		wantRefusal(t, err, http.StatusBadRequest, "", "product is not active")
	})

	t.Run("with proration gives the unused days back", func(t *testing.T) {
		t.Parallel()
		r := startOn(t, "2026-04-01")
		s := r.subscribe(r.price(3000), cardPays)
		r.advance(15 * 24 * time.Hour)
		got := ok[*stripe.Subscription](t)(r.upgrade(s, r.price(9000), func(p *stripe.SubscriptionParams) {
			p.ProrationBehavior = stripe.String("always_invoice")
		}))
		lines := got.LatestInvoice.Lines.Data
		if len(lines) != 2 || lines[0].Amount != -1500 || !lines[0].Proration || lines[1].Amount != 9000 || got.LatestInvoice.AmountPaid != 7500 {
			t.Errorf("%d lines, %d paid", len(lines), got.LatestInvoice.AmountPaid)
		}
	})

	t.Run("from a month to a year moves the period", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		got := ok[*stripe.Subscription](t)(r.upgrade(s, r.price(29000, yearly)))
		if want := r.clock().AddDate(1, 0, 0).Unix(); got.CurrentPeriodEnd != want {
			t.Errorf("ends %d, want %d", got.CurrentPeriodEnd, want)
		}
	})
}
