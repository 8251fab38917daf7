package fidelity

import (
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
)

// TestConduct is what billing counts on the API to do.
func TestConduct(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, fresh func(testing.TB) *target) {
		for name, claim := range conduct {
			t.Run(name, func(t *testing.T) { claim(fresh(t)) })
		}
	})
}

var conduct = map[string]func(*target){
	"a paid upgrade begins a full period at once": func(g *target) {
		s, price := g.subscribed(2900, "pm_card_visa"), g.price(9900)
		got := ok(g.api.Subscriptions.Update(s.ID, upgradeTo(s, price)))(g)
		if got.PendingUpdate != nil || got.Items.Data[0].Price.ID != price.ID || got.BillingCycleAnchor != got.CurrentPeriodStart {
			g.Errorf("pending %v, price %s", got.PendingUpdate, got.Items.Data[0].Price.ID)
		}
		invoice := got.LatestInvoice
		if invoice.Status != "paid" || invoice.AmountPaid != 9900 || invoice.BillingReason != "subscription_update" {
			g.Errorf("the invoice is %s, %d paid, for %s", invoice.Status, invoice.AmountPaid, invoice.BillingReason)
		}
		if line := invoice.Lines.Data[0]; len(invoice.Lines.Data) != 1 || line.Proration || line.Period.Start != got.CurrentPeriodStart {
			g.Errorf("%d lines, the first %+v", len(invoice.Lines.Data), line)
		}
	},
	"an upgrade that is declined waits, on the old price": func(g *target) {
		g.wantPending("pm_card_chargeCustomerFail", stripe.PaymentIntentStatusRequiresPaymentMethod)
	},
	"an upgrade that asks for authentication waits, on the old price": func(g *target) {
		g.wantPending("pm_card_authenticationRequired", stripe.PaymentIntentStatusRequiresAction)
	},
	"voiding its invoice gives a pending upgrade up": func(g *target) {
		pending := g.wantPending("pm_card_chargeCustomerFail", stripe.PaymentIntentStatusRequiresPaymentMethod)
		if voided := ok(g.api.Invoices.VoidInvoice(pending.LatestInvoice.ID, nil))(g); voided.Status != "void" {
			g.Errorf("the invoice is %s", voided.Status)
		}
		if got := g.subscription(pending.ID); got.PendingUpdate != nil {
			g.Error("it is still pending")
		}
	},
	"a newer upgrade voids the one before": func(g *target) {
		first := g.wantPending("pm_card_chargeCustomerFail", stripe.PaymentIntentStatusRequiresPaymentMethod)
		second := ok(g.api.Subscriptions.Update(first.ID, upgradeTo(first, g.price(19900))))(g)
		if second.PendingUpdate == nil || second.LatestInvoice.ID == first.LatestInvoice.ID {
			g.Errorf("the second is %+v", second.PendingUpdate)
		}
		if old := ok(g.api.Invoices.Get(first.LatestInvoice.ID, nil))(g); old.Status != "void" {
			g.Errorf("the first invoice is %s", old.Status)
		}
	},
	"a cancellation is set and taken back": func(g *target) {
		s := g.subscribed(2900, "pm_card_visa")
		set := ok(g.api.Subscriptions.Update(s.ID, &stripe.SubscriptionParams{CancelAtPeriodEnd: stripe.Bool(true)}))(g)
		if !set.CancelAtPeriodEnd || set.CancelAt != set.CurrentPeriodEnd || set.Status != "active" {
			g.Errorf("set to %v, at %d, %s", set.CancelAtPeriodEnd, set.CancelAt, set.Status)
		}
		params := &stripe.SubscriptionParams{CancelAtPeriodEnd: stripe.Bool(false)}
		if back := ok(g.api.Subscriptions.Update(s.ID, params))(g); back.CancelAtPeriodEnd || back.CancelAt != 0 {
			g.Errorf("taken back to %v, at %d", back.CancelAtPeriodEnd, back.CancelAt)
		}
	},
	"a schedule queues another price for the end of the period": func(g *target) {
		s, price := g.subscribed(9900, "pm_card_visa"), g.price(2900)
		made := g.scheduled(s)
		queued := ok(g.api.SubscriptionSchedules.Update(made.ID, downgradeTo(made, price)))(g)
		if len(queued.Phases) != 2 || queued.Phases[1].StartDate != s.CurrentPeriodEnd || queued.Phases[1].Items[0].Price.ID != price.ID {
			g.Errorf("queued %+v", queued.Phases)
		}
		released := ok(g.api.SubscriptionSchedules.Release(queued.ID, nil))(g)
		if released.Status != "released" || released.ReleasedSubscription.ID != s.ID {
			g.Errorf("released as %s", released.Status)
		}
		if got := g.subscription(s.ID); got.Schedule != nil || got.Items.Data[0].Price.UnitAmount != 9900 {
			g.Errorf("it goes on with %d", got.Items.Data[0].Price.UnitAmount)
		}
	},
	"a free subscription is active with a paid invoice": func(g *target) {
		s := g.subscribed(0, "")
		if s.Status != "active" || s.LatestInvoice.Status != "paid" || s.LatestInvoice.AmountPaid != 0 {
			g.Errorf("it is %s, its invoice %s", s.Status, s.LatestInvoice.Status)
		}
	},
	"refunds add up on their charge": func(g *target) {
		intent := g.subscribed(3000, "pm_card_visa").LatestInvoice.PaymentIntent
		for _, amount := range []int64{1000, 500} {
			ok(g.api.Refunds.New(&stripe.RefundParams{PaymentIntent: &intent.ID, Amount: &amount}))(g)
		}
		if charge := ok(g.api.Charges.Get(intent.LatestCharge.ID, nil))(g); charge.AmountRefunded != 1500 || charge.Refunded {
			g.Errorf("%d of it is refunded", charge.AmountRefunded)
		}
	},
	"the same request again has the same answer": func(g *target) {
		params := &stripe.ProductParams{Name: stripe.String("Pro")}
		params.SetIdempotencyKey(stripe.NewIdempotencyKey())
		first, again := ok(g.api.Products.New(params))(g), ok(g.api.Products.New(params))(g)
		if first.ID != again.ID || again.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
			g.Errorf("%s and %s", first.ID, again.ID)
		}
	},
	"a lookup key moves to a newer price": func(g *target) {
		old, key := g.price(2900), stripe.NewIdempotencyKey()
		ok(g.api.Prices.Update(old.ID, &stripe.PriceParams{LookupKey: &key}))(g)
		newer := g.price(3900)
		ok(g.api.Prices.Update(newer.ID, &stripe.PriceParams{LookupKey: &key, TransferLookupKey: stripe.Bool(true)}))(g)
		list := g.api.Prices.List(&stripe.PriceListParams{LookupKeys: []*string{&key}})
		if !list.Next() || list.Price().ID != newer.ID || list.Next() {
			g.Errorf("the key finds another: %v", list.Err())
		}
	},
}

// wantPending upgrades a free subscription of a customer with the card, which
// must then wait to be paid.
func (g *target) wantPending(card string, state stripe.PaymentIntentStatus) *stripe.Subscription {
	g.Helper()
	s := g.subscribed(0, card)
	got := ok(g.api.Subscriptions.Update(s.ID, upgradeTo(s, g.price(9900))))(g)
	invoice := got.LatestInvoice
	switch {
	case got.PendingUpdate == nil:
		g.Fatal("it does not wait")
	case got.Items.Data[0].Price.UnitAmount != 0:
		g.Errorf("it is on the price of %d", got.Items.Data[0].Price.UnitAmount)
	case invoice.Status != "open" || invoice.HostedInvoiceURL == "" || invoice.BillingReason != "subscription_update":
		g.Errorf("its invoice is %s, for %s", invoice.Status, invoice.BillingReason)
	case invoice.PaymentIntent.Status != state:
		g.Errorf("its payment is %s, want %s", invoice.PaymentIntent.Status, state)
	}
	// 23 hours, and a little for the way of the request.
	if left := time.Unix(got.PendingUpdate.ExpiresAt, 0).Sub(g.now()); left > 23*time.Hour+time.Minute || left < 22*time.Hour {
		g.Errorf("it waits for %s", left)
	}
	return got
}
