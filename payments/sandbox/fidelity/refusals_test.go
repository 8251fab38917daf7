package fidelity

import (
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
)

// TestRefusals is what the API does not take. stripe-mock takes all of it, for
// it looks at shapes only.
func TestRefusals(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, fresh func(testing.TB) *target) {
		for name, rule := range refusals {
			t.Run(name, func(t *testing.T) { rule.want.compare(t, rule.ask(fresh(t))) })
		}
	})
}

type rule struct {
	want refusal
	ask  func(*target) error
}

var refusals = map[string]rule{
	"a pending update takes no metadata": {
		refusal{http.StatusBadRequest, "", "`metadata` is not supported"},
		pendingWith(func(p *stripe.SubscriptionParams) { p.Metadata = map[string]string{"a": "b"} }),
	},
	"a pending update takes no cancellation": {
		refusal{http.StatusBadRequest, "", "`cancel_at_period_end` is not supported"},
		pendingWith(func(p *stripe.SubscriptionParams) { p.CancelAtPeriodEnd = stripe.Bool(false) }),
	},
	"a pending update takes no payment method": {
		refusal{http.StatusBadRequest, "", "is not supported"},
		pendingWith(func(p *stripe.SubscriptionParams) { p.DefaultPaymentMethod = stripe.String("pm_card_visa") }),
	},
	"a pending update takes no presence": {
		refusal{http.StatusBadRequest, "", "is not supported"},
		pendingWith(func(p *stripe.SubscriptionParams) { p.OffSession = stripe.Bool(true) }),
	},
	"a new cycle takes no proration date": {
		refusal{http.StatusBadRequest, "", "proration_date"},
		pendingWith(func(p *stripe.SubscriptionParams) { p.ProrationDate = stripe.Int64(time.Now().Unix()) }),
	},
	"an upgrade needs something to charge": {
		refusal{http.StatusBadRequest, "resource_missing", "no attached payment source"},
		func(g *target) error {
			free := g.subscribed(0, "")
			_, err := g.api.Subscriptions.Update(free.ID, upgradeTo(free, g.price(2900)))
			return err
		},
	},
	"an upgrade stays in its currency": {
		refusal{http.StatusBadRequest, "", "currenc"},
		func(g *target) error {
			s := g.subscribed(2900, "pm_card_visa")
			euro := ok(g.api.Prices.New(&stripe.PriceParams{
				Product: &s.Items.Data[0].Price.Product.ID, Currency: stripe.String("eur"), UnitAmount: stripe.Int64(9900),
				Recurring: &stripe.PriceRecurringParams{Interval: stripe.String("month")},
			}))(g)
			_, err := g.api.Subscriptions.Update(s.ID, upgradeTo(s, euro))
			return err
		},
	},
	"an archived price cannot be subscribed to": {
		refusal{http.StatusBadRequest, "", "inactive"},
		func(g *target) error {
			customer, price := g.customer("pm_card_visa"), g.price(2900)
			ok(g.api.Prices.Update(price.ID, &stripe.PriceParams{Active: stripe.Bool(false)}))(g)
			_, err := g.api.Subscriptions.New(&stripe.SubscriptionParams{Customer: &customer.ID, Items: []*stripe.SubscriptionItemsParams{{Price: &price.ID}}})
			return err
		},
	},
	"a price of an archived product cannot be subscribed to": {
		refusal{http.StatusBadRequest, "", "not active"},
		func(g *target) error {
			customer, price := g.customer("pm_card_visa"), g.price(2900)
			ok(g.api.Products.Update(price.Product.ID, &stripe.ProductParams{Active: stripe.Bool(false)}))(g)
			_, err := g.api.Subscriptions.New(&stripe.SubscriptionParams{Customer: &customer.ID, Items: []*stripe.SubscriptionItemsParams{{Price: &price.ID}}})
			return err
		},
	},
	"a price never changes its amount": {
		refusal{http.StatusBadRequest, "parameter_unknown", "unit_amount"},
		func(g *target) error {
			params := &stripe.PriceParams{}
			params.AddExtra("unit_amount", "1")
			_, err := g.api.Prices.Update(g.price(2900).ID, params)
			return err
		},
	},
	"the default price of a product cannot be archived": {
		refusal{http.StatusBadRequest, "", "default price"},
		func(g *target) error {
			price := g.price(2900)
			ok(g.api.Products.Update(price.Product.ID, &stripe.ProductParams{DefaultPrice: &price.ID}))(g)
			_, err := g.api.Prices.Update(price.ID, &stripe.PriceParams{Active: stripe.Bool(false)})
			return err
		},
	},
	"a schedule from a subscription takes nothing else": {
		refusal{http.StatusBadRequest, "", "from_subscription"},
		func(g *target) error {
			s := g.subscribed(2900, "pm_card_visa")
			_, err := g.api.SubscriptionSchedules.New(&stripe.SubscriptionScheduleParams{FromSubscription: &s.ID, EndBehavior: stripe.String("release")})
			return err
		},
	},
	"a scheduled subscription is cancelled by its schedule": {
		refusal{http.StatusBadRequest, "", "managed by the subscription schedule"},
		func(g *target) error {
			s := g.subscribed(2900, "pm_card_visa")
			g.scheduled(s)
			_, err := g.api.Subscriptions.Update(s.ID, &stripe.SubscriptionParams{CancelAtPeriodEnd: stripe.Bool(true)})
			return err
		},
	},
	"a released schedule cannot be released": {
		refusal{http.StatusBadRequest, "", "`released` status"},
		func(g *target) error {
			schedule := g.scheduled(g.subscribed(2900, "pm_card_visa"))
			ok(g.api.SubscriptionSchedules.Release(schedule.ID, nil))(g)
			_, err := g.api.SubscriptionSchedules.Release(schedule.ID, nil)
			return err
		},
	},
	"a released schedule cannot be changed": {
		refusal{http.StatusBadRequest, "", "`released` status"},
		func(g *target) error {
			schedule := g.scheduled(g.subscribed(2900, "pm_card_visa"))
			ok(g.api.SubscriptionSchedules.Release(schedule.ID, nil))(g)
			_, err := g.api.SubscriptionSchedules.Update(schedule.ID, &stripe.SubscriptionScheduleParams{EndBehavior: stripe.String("cancel")})
			return err
		},
	},
	"an ended subscription cannot be changed": {
		refusal{http.StatusBadRequest, "", "canceled subscription"},
		func(g *target) error {
			s := g.subscribed(2900, "pm_card_visa")
			ok(g.api.Subscriptions.Cancel(s.ID, nil))(g)
			_, err := g.api.Subscriptions.Update(s.ID, &stripe.SubscriptionParams{CancelAtPeriodEnd: stripe.Bool(true)})
			return err
		},
	},
	"a paid invoice cannot be paid": {
		refusal{http.StatusBadRequest, "", "already paid"},
		func(g *target) error {
			_, err := g.api.Invoices.Pay(g.subscribed(2900, "pm_card_visa").LatestInvoice.ID, nil)
			return err
		},
	},
	"a paid invoice cannot be voided": {
		refusal{http.StatusBadRequest, "", ""},
		func(g *target) error {
			_, err := g.api.Invoices.VoidInvoice(g.subscribed(2900, "pm_card_visa").LatestInvoice.ID, nil)
			return err
		},
	},
	"a paid invoice cannot be finalized": {
		refusal{http.StatusBadRequest, "", "finalize"},
		func(g *target) error {
			id := g.subscribed(2900, "pm_card_visa").LatestInvoice.ID
			_, err := g.api.Invoices.FinalizeInvoice(id, &stripe.InvoiceFinalizeInvoiceParams{AutoAdvance: stripe.Bool(false)})
			return err
		},
	},
	"a refund is at most what was charged": {
		refusal{http.StatusBadRequest, "", "greater than"},
		func(g *target) error {
			paid := g.subscribed(2900, "pm_card_visa").LatestInvoice.PaymentIntent.ID
			ok(g.api.Refunds.New(&stripe.RefundParams{PaymentIntent: &paid, Amount: stripe.Int64(1000)}))(g)
			_, err := g.api.Refunds.New(&stripe.RefundParams{PaymentIntent: &paid, Amount: stripe.Int64(1901)})
			return err
		},
	},
	"a refunded charge cannot be refunded": {
		refusal{http.StatusBadRequest, "charge_already_refunded", "already been refunded"},
		func(g *target) error {
			paid := g.subscribed(2900, "pm_card_visa").LatestInvoice.PaymentIntent.ID
			ok(g.api.Refunds.New(&stripe.RefundParams{PaymentIntent: &paid}))(g)
			_, err := g.api.Refunds.New(&stripe.RefundParams{PaymentIntent: &paid})
			return err
		},
	},
	"a checkout has a customer or an address": {
		refusal{http.StatusBadRequest, "", "customer_email"},
		checkoutWith(func(g *target, p *stripe.CheckoutSessionParams) {
			p.Customer, p.CustomerEmail = &g.customer("").ID, stripe.String("ada@example.com")
		}),
	},
	"a checkout stays open for 30 minutes at least": {
		refusal{http.StatusBadRequest, "", "expires_at"},
		checkoutWith(func(g *target, p *stripe.CheckoutSessionParams) {
			p.ExpiresAt = stripe.Int64(g.now().Add(29 * time.Minute).Unix())
		}),
	},
	"a checkout stays open for 24 hours at most": {
		refusal{http.StatusBadRequest, "", "expires_at"},
		checkoutWith(func(g *target, p *stripe.CheckoutSessionParams) {
			p.ExpiresAt = stripe.Int64(g.now().Add(25 * time.Hour).Unix())
		}),
	},
	"a checkout is for no less than the least charge": {
		refusal{http.StatusBadRequest, "amount_too_small", ""},
		checkoutWith(func(_ *target, p *stripe.CheckoutSessionParams) {
			p.LineItems[0].PriceData.UnitAmount = stripe.Int64(30)
		}),
	},
	"an expired checkout cannot expire": {
		refusal{http.StatusBadRequest, "", "expired"},
		func(g *target) error {
			session := ok(g.api.CheckoutSessions.New(topupOrder(500)))(g)
			ok(g.api.CheckoutSessions.Expire(session.ID, nil))(g)
			_, err := g.api.CheckoutSessions.Expire(session.ID, nil)
			return err
		},
	},
	"an idempotency key belongs to one request": {
		refusal{http.StatusBadRequest, "", "same parameters"},
		func(g *target) error {
			key := stripe.NewIdempotencyKey()
			named := func(name string) *stripe.ProductParams {
				params := &stripe.ProductParams{Name: &name}
				params.SetIdempotencyKey(key)
				return params
			}
			ok(g.api.Products.New(named("one")))(g)
			_, err := g.api.Products.New(named("another"))
			return err
		},
	},
	"a parameter that is not known is named": {
		refusal{http.StatusBadRequest, "parameter_unknown", "colour"},
		func(g *target) error {
			params := &stripe.ProductParams{Name: stripe.String("Pro")}
			params.AddExtra("colour", "red")
			_, err := g.api.Products.New(params)
			return err
		},
	},
	"what is not there is missing": {
		refusal{http.StatusNotFound, "resource_missing", "No such subscription"},
		func(g *target) error {
			_, err := g.api.Subscriptions.Get("sub_none", nil)
			return err
		},
	},
}

// pendingWith upgrades with one thing more than may be in the request.
func pendingWith(change func(*stripe.SubscriptionParams)) func(*target) error {
	return func(g *target) error {
		s := g.subscribed(2900, "pm_card_visa")
		params := upgradeTo(s, g.price(9900))
		change(params)
		_, err := g.api.Subscriptions.Update(s.ID, params)
		return err
	}
}

func checkoutWith(change func(*target, *stripe.CheckoutSessionParams)) func(*target) error {
	return func(g *target) error {
		params := topupOrder(500)
		change(g, params)
		_, err := g.api.CheckoutSessions.New(params)
		return err
	}
}
