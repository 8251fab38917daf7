package demo

import (
	"context"
	"fmt"
	"net/url"
)

// customer is a customer with daily usage.
type customer struct {
	identity string
	plan     string // empty for a prepaid customer
	pace     float64
	weekly   int64 // credits deposited each week
}

// The sandbox's cards.
const (
	cardPays       = "4242424242424242"
	cardFailsLater = "4000000000000341"
	cardAsks       = "4000002760003184"
)

// customers have plans, prepay, or are small.
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
		{identity: "lucerne", pace: 4, weekly: 45}, // the balance is used up before the week ends
	}
	for i := range 24 {
		list = append(list, customer{identity: fmt.Sprintf("user_%d", 48_100+37*i), pace: 0.6 + float64(i%5)/4, weekly: 14 + int64(i%5)*7})
	}
	return list
}()

// createCustomers creates wallets, subscriptions and first deposits.
func (s *story) createCustomers(ctx context.Context) {
	for _, c := range customers {
		switch c.plan {
		case "":
		case free:
			s.change(ctx, c.identity, free)
		default:
			s.subscribe(ctx, c.identity, c.plan, cardPays)
		}
	}
	s.deposit(ctx, 0)
}

// deposit makes the weekly deposits.
func (s *story) deposit(ctx context.Context, week int) {
	for _, c := range customers {
		if c.weekly > 0 {
			s.depositFor(ctx, c.identity, c.weekly, fmt.Sprintf("order-%d-%s", 1000+week, c.identity))
		}
	}
}

func (s *story) depositFor(ctx context.Context, identity string, amount int64, key string) {
	s.backend.post(ctx, "/v1/deposits", object{
		"identity": identity, "creditKey": credits, "amountNanocredits": nano(amount), "idempotencyKey": key,
	}, nil)
}

func (s *story) checkout(ctx context.Context, identity, plan string) (p page) {
	s.backend.post(ctx, "/v1/subscription-checkout", object{
		"identity": identity, "planKey": plan, "idempotencyKey": "subscribe-" + identity,
		"successUrl": "https://studio.example/welcome", "cancelUrl": "https://studio.example/plans",
	}, &p)
	return p
}

func (s *story) subscribe(ctx context.Context, identity, plan, card string) {
	s.backend.pay(ctx, s.checkout(ctx, identity, plan), card)
}

func (s *story) change(ctx context.Context, identity, plan string) {
	s.backend.post(ctx, "/v1/subscriptions/"+url.PathEscape(identity)+"/change",
		object{"planKey": plan, "idempotencyKey": "change-" + identity + "-" + plan}, nil)
}

// topUp pays a dollar for ten credits and returns the checkout's id.
func (s *story) topUp(ctx context.Context, identity string, amount int64) (id string) {
	var p page
	s.backend.post(ctx, "/v1/topup-checkout", object{
		"identity": identity, "creditKey": credits, "amountNanocredits": nano(amount), "amountCents": amount * 10, "currency": "usd",
		"successUrl": "https://studio.example/thanks", "cancelUrl": "https://studio.example/wallet", "idempotencyKey": "topup-" + identity,
	}, &p)
	s.backend.pay(ctx, p, cardPays)
	return p.ID
}

// swapCard saves another card at the billing portal.
func (s *story) swapCard(ctx context.Context, identity, card string) {
	var p page
	s.backend.post(ctx, "/v1/billing-portal", object{"identity": identity, "returnUrl": "https://studio.example/account"}, &p)
	s.backend.pay(ctx, p, card)
}
