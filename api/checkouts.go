package api

import (
	"cmp"
	"context"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/payments/cashier"
	"purser/tenancy/audit"
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
	request := billing.CheckoutRequest{
		Identity:   c.body.Text("identity"),
		PlanKey:    c.body.Text("planKey"),
		SuccessURL: c.body.Text("successUrl"),
		CancelURL:  c.body.Text("cancelUrl"),
	}
	return s.recorded(c, "checkout.create", request.Identity, audit.Fields{"plan": request.PlanKey}, func() (reply, error) {
		page, err := s.cashier.SubscriptionCheckout(c.ctx, c.scope, request, c.body.Text("idempotencyKey"))
		return okOr(showCheckout(page), err)
	})
}

func (s *Server) createTopupCheckout(c *call) (reply, error) {
	request := billing.TopUpRequest{
		Identity:    c.body.Text("identity"),
		CreditKey:   c.body.Text("creditKey"),
		Amount:      c.body.Amount("amountNanocredits"),
		AmountCents: c.body.Int("amountCents"),
		Currency:    c.body.Text("currency"),
		SuccessURL:  c.body.Text("successUrl"),
		CancelURL:   c.body.Text("cancelUrl"),
	}
	return s.recorded(c, "topup.create", request.Identity, audit.Fields{
		"credit": request.CreditKey, "amountNanocredits": request.Amount.String(), "price": billing.FormatMoney(request.AmountCents, request.Currency),
	}, func() (reply, error) {
		page, err := s.cashier.TopUpCheckout(c.ctx, c.scope, request, c.body.Text("idempotencyKey"))
		return okOr(showCheckout(page), err)
	})
}

// recordTimeout bounds a write to the audit log after a slow payment provider.
const recordTimeout = 3 * time.Second

// recorded writes an action to the audit log before it is run, by the id of the wallet: an
// erasure could not remove the identity. A wallet that the action makes has no id before,
// so it is recorded after it.
func (s *Server) recorded(c *call, action, identity string, fields audit.Fields, run func() (reply, error)) (reply, error) {
	app := s.audited(c)
	record := func(ctx context.Context) (found bool, err error) {
		wallet, err := app.Wallet(ctx, identity)
		if fault.Is(err, fault.WalletNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return true, app.RecordAction(ctx, action, wallet.ID.Format(ids.Wallet), fields)
	}
	found, err := record(c.ctx)
	if err != nil {
		return reply{}, err
	}
	answer, err := run()
	if !found { // also after an error: the provider may carry it out later
		ctx, done := context.WithTimeout(context.WithoutCancel(c.ctx), recordTimeout)
		defer done()
		_, failed := record(ctx)
		err = cmp.Or(err, failed)
	}
	return answer, err
}

func (s *Server) createBillingPortal(c *call) (reply, error) {
	url, err := s.cashier.Portal(c.ctx, c.scope, c.body.Text("identity"), c.body.Text("returnUrl"))
	return okOr(portalReply{URL: url}, err)
}
