package api

import (
	"purser/billing"
	"purser/ids"
	"purser/payments/cashier"
)

// checkoutReply is a hosted checkout page.
type checkoutReply struct {
	ID  string `json:"id"`
	URL string `json:"url"`
}

type portalReply struct {
	URL string `json:"url"`
}

func showCheckout(p cashier.Page) checkoutReply {
	return checkoutReply{ID: p.ID.Format(ids.Checkout), URL: p.URL}
}

func (s *Server) createSubscriptionCheckout(c *call) (reply, error) {
	page, err := s.cashier.SubscriptionCheckout(c.ctx, c.scope, billing.CheckoutRequest{
		Identity:   c.body.Text("identity"),
		PlanKey:    c.body.Text("planKey"),
		SuccessURL: c.body.Text("successUrl"),
		CancelURL:  c.body.Text("cancelUrl"),
	}, c.body.Text("idempotencyKey"))
	return okOr(showCheckout(page), err)
}

func (s *Server) createTopupCheckout(c *call) (reply, error) {
	page, err := s.cashier.TopUpCheckout(c.ctx, c.scope, billing.TopUpRequest{
		Identity:    c.body.Text("identity"),
		CreditKey:   c.body.Text("creditKey"),
		Amount:      c.body.Amount("amountNanocredits"),
		AmountCents: c.body.Int("amountCents"),
		Currency:    c.body.Text("currency"),
		SuccessURL:  c.body.Text("successUrl"),
		CancelURL:   c.body.Text("cancelUrl"),
	}, c.body.Text("idempotencyKey"))
	return okOr(showCheckout(page), err)
}

func (s *Server) createBillingPortal(c *call) (reply, error) {
	url, err := s.cashier.Portal(c.ctx, c.scope, c.body.Text("identity"), c.body.Text("returnUrl"))
	return okOr(portalReply{URL: url}, err)
}
