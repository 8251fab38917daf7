package demo

import (
	"context"
	"fmt"
	"net/url"
)

// customer is who uses the application from day to day.
type customer struct {
	identity string
	plan     string // none when they prepay
	pace     float64
	weekly   int64 // credits that are deposited each week
}

// The sandbox's cards.
const (
	cardPays       = "4242424242424242"
	cardFailsLater = "4000000000000341"
	cardAsks       = "4000002760003184"
)

// customers are some with plans, some that prepay, and many small ones.
var customers = func() []customer {
	list := []customer{
		{identity: "northwind", plan: team, pace: 11},
		{identity: "adatum", plan: teamYearly, pace: 9},
		{identity: "fabrikam", plan: starter, pace: 7},
		{identity: "contoso", plan: starter, pace: 6, weekly: 30},
		{identity: "ana@wingtip.example", plan: free, pace: 2},
		{identity: "li@wingtip.example", plan: free, pace: 2},
		{identity: "tailspin", pace: 7, weekly: 220},
		{identity: "woodgrove", pace: 5, weekly: 160},
		{identity: "lucerne", pace: 4, weekly: 45}, // runs dry before the week is over
	}
	for i := range 24 {
		list = append(list, customer{identity: fmt.Sprintf("user_%d", 48_100+37*i), pace: 0.6 + float64(i%5)/4, weekly: 14 + int64(i%5)*7})
	}
	return list
}()

// openShop brings the customers.
func (t *tale) openShop(ctx context.Context) error {
	for _, c := range customers {
		var err error
		switch c.plan {
		case "":
		case free:
			err = t.change(ctx, c.identity, free)
		default:
			err = t.subscribe(ctx, c.identity, c.plan, cardPays)
		}
		if err != nil {
			return err
		}
	}
	return t.deposit(ctx, 0)
}

// deposit is what customers bring in a week.
func (t *tale) deposit(ctx context.Context, week int) error {
	for _, c := range customers {
		if c.weekly == 0 {
			continue
		}
		if err := t.fund(ctx, c.identity, c.weekly, fmt.Sprintf("order-%d-%s", 1000+week, c.identity)); err != nil {
			return err
		}
	}
	return nil
}

func (t *tale) fund(ctx context.Context, identity string, amount int64, key string) error {
	return t.backend.post(ctx, "/v1/deposits", object{
		"identity": identity, "creditKey": credits, "amountNanocredits": nano(amount), "idempotencyKey": key,
	}, nil)
}

// checkout opens a page where a plan is bought.
func (t *tale) checkout(ctx context.Context, identity, plan string) (p page, err error) {
	err = t.backend.post(ctx, "/v1/subscription-checkout", object{
		"identity": identity, "planKey": plan, "idempotencyKey": "subscribe-" + identity,
		"successUrl": "https://studio.example/welcome", "cancelUrl": "https://studio.example/plans",
	}, &p)
	return p, err
}

func (t *tale) subscribe(ctx context.Context, identity, plan, card string) error {
	p, err := t.checkout(ctx, identity, plan)
	if err != nil {
		return err
	}
	return t.backend.pay(ctx, p.URL, card)
}

func (t *tale) change(ctx context.Context, identity, plan string) error {
	return t.backend.post(ctx, "/v1/subscriptions/"+url.PathEscape(identity)+"/change",
		object{"planKey": plan, "idempotencyKey": "change-" + identity + "-" + plan}, nil)
}

// topUp pays a dollar for ten credits, and gives the checkout's id.
func (t *tale) topUp(ctx context.Context, identity string, amount int64) (id string, err error) {
	var p page
	err = t.backend.post(ctx, "/v1/topup-checkout", object{
		"identity": identity, "creditKey": credits, "amountNanocredits": nano(amount), "amountCents": amount * 10, "currency": "usd",
		"successUrl": "https://studio.example/thanks", "cancelUrl": "https://studio.example/wallet", "idempotencyKey": "topup-" + identity,
	}, &p)
	if err != nil {
		return "", err
	}
	return p.ID, t.backend.pay(ctx, p.URL, cardPays)
}

// swapCard puts another card on file, at the billing portal.
func (t *tale) swapCard(ctx context.Context, identity, card string) error {
	var p page
	if err := t.backend.post(ctx, "/v1/billing-portal", object{"identity": identity, "returnUrl": "https://studio.example/account"}, &p); err != nil {
		return err
	}
	return t.backend.pay(ctx, p.URL, card)
}
